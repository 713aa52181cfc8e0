"""Random documents for a schema: valid ones, and such that were changed at random."""

from __future__ import annotations

from random import Random

from lasthop_xml.relaxng.nameclass import (
    AnyInNamespace,
    NameChoice,
    NameClass,
    OneName,
)
from lasthop_xml.relaxng.patterns import (
    Attribute,
    Choice,
    Data,
    ElementPattern,
    Group,
    Interleave,
    ListOf,
    NotAllowed,
    OneOrMore,
    Pattern,
    Text,
    Value,
)
from lasthop_xml.relaxng.schema import Schema
from lasthop_xml.xas.events import (
    ATTRIBUTE,
    CONTENT,
    DOCUMENT_END,
    DOCUMENT_START,
    ELEMENT_END,
    ELEMENT_START,
    Event,
    attribute,
    comment,
    content,
    end,
    start,
)
from lasthop_xml.xas.names import Name
from lasthop_xml.xas.sequence import EventList

TEXTS = {
    "int": ("7", "-1", "007", "2147483647"),
    "boolean": ("true", "false", "1"),
    "date": ("2004-02-29", "1999-12-31Z"),
    "NCName": ("x", "y-1"),
}
ANY_TEXT = ("x", "y z", " x", "some text", "")


class DeadEnd(Exception):
    """There is nothing to write here, or it would never end."""


class Sampler:
    """Writes documents, the same ones for the same seed."""

    def __init__(self, schema: Schema, seed: int) -> None:
        self.random = Random(seed)
        self._schema = schema
        self._size = 0

    def valid(self) -> EventList | None:
        """A document that the schema most likely allows."""
        for _ in range(20):
            self._size = 0
            try:
                events = self._children(self._schema.start, 0)
            except DeadEnd:
                continue
            if events:
                return EventList([DOCUMENT_START, *events, DOCUMENT_END])
        return None

    def changed(self, events: EventList) -> EventList:
        """The same document with a few changes; still well-formed."""
        events = EventList(events)
        for _ in range(self.random.randrange(1, 4)):
            self._change(events)
        return events

    # Patterns: attributes first, then everything else

    def _element(self, element: ElementPattern, depth: int) -> list[Event]:
        self._size += 1
        if depth > 8 or self._size > 60:
            raise DeadEnd
        name = self._name(element.names)
        attributes: dict[Name, Event] = {}
        inner = self._children(element.content, depth + 1, attributes)
        return [start(name), *attributes.values(), *inner, end(name)]

    def _children(
        self, pattern: Pattern, depth: int, attributes: dict[Name, Event] | None = None
    ) -> list[Event]:
        match pattern:
            case NotAllowed():
                raise DeadEnd
            case ElementPattern():
                return self._element(pattern, depth)
            case Attribute():
                if attributes is not None:
                    name = self._name(pattern.names)
                    attributes[name] = attribute(name, self._text(pattern.content))
                return []
            case Choice():
                parts = pattern.parts
                if depth > 4 and pattern.nullable:
                    parts = parts[:1]
                return self._children(self.random.choice(parts), depth, attributes)
            case Group():
                found: list[Event] = []
                for part in pattern.parts:
                    found += self._children(part, depth, attributes)
                return found
            case Interleave():
                return self._shuffled(
                    [self._children(part, depth, attributes) for part in pattern.parts]
                )
            case OneOrMore():
                found = []
                for _ in range(self.random.randrange(1, 4 if depth < 5 else 2)):
                    found += self._children(pattern.content, depth, attributes)
                return found
            case _:
                text = self._text(pattern)
                return [content(text)] if text else []

    def _text(self, pattern: Pattern) -> str:
        match pattern:
            case Text():
                return self.random.choice(ANY_TEXT)
            case Value():
                return pattern.text
            case Data():
                return self.random.choice(TEXTS.get(pattern.type.name, ANY_TEXT))
            case ListOf():
                return self._text(pattern.content)
            case Choice():
                return self._text(self.random.choice(pattern.parts))
            case Group():
                return " ".join(map(self._text, pattern.parts))
            case OneOrMore():
                return " ".join(self._text(pattern.content) for _ in range(2))
            case _:
                return ""

    def _shuffled(self, parts: list[list[Event]]) -> list[Event]:
        queues = [_pieces(part) for part in parts]
        found: list[Event] = []
        while any(queues):
            queue = self.random.choice([queue for queue in queues if queue])
            found += queue.pop(0)
        return found

    def _name(self, names: NameClass) -> Name:
        match names:
            case OneName(name):
                return name
            case NameChoice(parts):
                return self._name(self.random.choice(parts))
            case AnyInNamespace(ns, _):
                candidates = [Name(ns, local) for local in "abcxyz"]
            case _:
                candidates = [Name(ns, local) for ns in ("", "urn:n", "urn:z") for local in "abx"]
        allowed = [name for name in candidates if names.contains(name)]
        if not allowed:
            raise DeadEnd
        return self.random.choice(allowed)

    # Changes

    def _change(self, events: EventList) -> None:
        at = self.random.randrange(1, len(events) - 1)
        kind, name, _ = events[at]
        match self.random.randrange(6):
            case 0 if kind is ELEMENT_START and at > 1:
                del events[at : _end_of(events, at) + 1]
            case 1 if kind is ELEMENT_START and at > 1:
                events[at:at] = events[at : _end_of(events, at) + 1]
            case 2 if kind is ELEMENT_START:
                other = Name("", self.random.choice("abcdz"))
                events[_end_of(events, at)] = end(other)
                events[at] = start(other)
            case 3 if kind is ATTRIBUTE:
                del events[at]
            case 4 if kind is ATTRIBUTE and name is not None:
                events[at] = attribute(name, self.random.choice(ANY_TEXT))
            case 5 if kind is not ATTRIBUTE and at > 1:
                new = self.random.choice(
                    [
                        [content("?")],
                        [comment("?")],
                        [start(Name("", "z")), end(Name("", "z"))],
                        [start(Name("", "a")), content("x"), end(Name("", "a"))],
                    ]
                )
                if events[at - 1].kind is not CONTENT and kind is not CONTENT:
                    events[at:at] = new
            case _:
                if kind is CONTENT:
                    events[at] = content(self.random.choice(("?", "7", "x y")))


def _end_of(events: list[Event], at: int) -> int:
    depth = 0
    for place in range(at, len(events)):
        depth += (events[place].kind is ELEMENT_START) - (events[place].kind is ELEMENT_END)
        if depth == 0:
            return place
    raise AssertionError("an element has no end")


def _pieces(events: list[Event]) -> list[list[Event]]:
    """Whole elements, and texts between them."""
    found: list[list[Event]] = []
    at = 0
    while at < len(events):
        behind = _end_of(events, at) + 1 if events[at].kind is ELEMENT_START else at + 1
        found.append(events[at:behind])
        at = behind
    return found
