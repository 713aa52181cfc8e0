"""A document as a tree, without building one: elements are places in the list of events.

One pass finds the ends of all elements. After that an element is two numbers, and a fragment is a
slice; the thesis suggests this view as future work (section 8.2).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property

from lasthop_xml.xas.canonical import canonical
from lasthop_xml.xas.errors import MalformedEvents
from lasthop_xml.xas.events import (
    ATTRIBUTE,
    CONTENT,
    ELEMENT_END,
    ELEMENT_START,
    PREFIX_MAPPING,
    TYPED_CONTENT,
    Event,
    prefix,
)
from lasthop_xml.xas.names import Name
from lasthop_xml.xas.scope import Scope, outermost
from lasthop_xml.xas.sequence import EventList, EventSequence
from lasthop_xml.xas.types.table import lexical


class Tree:
    """All elements of a document or a fragment, found in one pass over its events."""

    __slots__ = ("_ends", "_parents", "events", "roots")

    def __init__(self, events: EventSequence) -> None:
        self.events = events if isinstance(events, EventList) else EventList(events)
        # By the index of an ELEMENT_START: where its end is, and the start of its parent or -1.
        self._ends: dict[int, int] = {}
        self._parents: dict[int, int] = {}
        roots = []
        open_: list[int] = []
        for index, event in enumerate(self.events):
            if event.kind is ELEMENT_START:
                self._parents[index] = open_[-1] if open_ else -1
                if not open_:
                    roots.append(index)
                open_.append(index)
            elif event.kind is ELEMENT_END:
                if not open_ or self.events[open_[-1]].name != event.name:
                    raise MalformedEvents("an element ends that is not open", name=str(event.name))
                self._ends[open_.pop()] = index
        if open_:
            raise MalformedEvents("the events end inside an element")
        self.roots = [Element(self, index) for index in roots]

    @property
    def root(self) -> Element:
        """Return the only element at the top; raise MalformedEvents if there is none or more than
        one."""
        if len(self.roots) != 1:
            raise MalformedEvents(
                "a document must have exactly one root element", found=len(self.roots)
            )
        return self.roots[0]

    def end_of(self, start: int) -> int:
        """Return the index of the ELEMENT_END that belongs to the ELEMENT_START at `start`."""
        return self._ends[start]

    def parent_of(self, start: int) -> int:
        """Return the index of the parent's ELEMENT_START, or -1 for an element at the top."""
        return self._parents[start]


class Element:
    """One element of a tree, as the index of its start. Two are equal if they are the same place of
    the same tree."""

    def __init__(self, tree: Tree, start: int) -> None:
        self.tree = tree
        self.start = start

    def __eq__(self, other: object) -> bool:
        same = isinstance(other, Element) and other.tree is self.tree
        return same and other.start == self.start  # type: ignore[attr-defined]

    def __hash__(self) -> int:
        return hash((id(self.tree), self.start))

    def __repr__(self) -> str:
        return f"<Element {self.name} at {self.start}>"

    @property
    def name(self) -> Name:
        name = self.tree.events[self.start].name
        return name if name is not None else Name("", "")

    @property
    def end(self) -> int:
        """Return the index of the element's ELEMENT_END."""
        return self.tree.end_of(self.start)

    @property
    def first(self) -> int:
        """Return the index of the element's first event, which is a prefix mapping if it declares
        any."""
        return self.start - len(self._mappings())

    @property
    def parent(self) -> Element | None:
        index = self.tree.parent_of(self.start)
        return None if index < 0 else Element(self.tree, index)

    @cached_property
    def attributes(self) -> Mapping[Name, str]:
        found: dict[Name, str] = {}
        for event in self._from(self.start + 1):
            if event.kind is not ATTRIBUTE:
                break
            if event.name is not None:
                found[event.name] = event.value
        return found

    @property
    def scope(self) -> Scope:
        """Return what prefixes mean inside the element."""
        outer = self.parent
        scope = outermost() if outer is None else outer.scope
        mappings = [event.name for event in self._mappings() if event.name is not None]
        return scope.declare(mappings) if mappings else scope

    @property
    def text(self) -> str:
        """Return all text inside the element, that of its descendants included."""
        texts = []
        for event in self.tree.events[self.start : self.end]:
            if event.kind is CONTENT:
                texts.append(event.value)
            elif event.kind is TYPED_CONTENT:
                texts.append(lexical(event.name, event.value))
        return "".join(texts)

    def __iter__(self) -> Iterator[Element]:
        """Yield the element's children."""
        index, end = self.start + 1, self.end
        events = self.tree.events
        while index < end:
            if events[index].kind is ELEMENT_START:
                yield Element(self.tree, index)
                index = self.tree.end_of(index)
            index += 1

    def descendants(self) -> Iterator[Element]:
        """Yield all elements below this one, in document order."""
        for index in range(self.start + 1, self.end):
            if self.tree.events[index].kind is ELEMENT_START:
                yield Element(self.tree, index)

    def find_all(self, *path: Name) -> Iterator[Element]:
        """Yield the elements at the end of a path of child names."""
        if not path:
            yield self
            return
        for child in self:
            if child.name == path[0]:
                yield from child.find_all(*path[1:])

    def find(self, *path: Name) -> Element | None:
        """Return the first element at the end of a path of child names, or None."""
        return next(self.find_all(*path), None)

    def fragment(self) -> EventList:
        """Return the element's events, with the prefixes that it inherits declared on it, so that
        they can stand alone."""
        own = {event.name for event in self._mappings()}
        inherited = [
            prefix(ns, to)
            for to, ns in self.scope.prefixes.items()
            if to != "xml" and (to or ns) and Name(ns, to) not in own
        ]
        return EventList([*inherited, *self.tree.events[self.first : self.end + 1]])

    def canonical(self, *, comments: bool = False) -> bytes:
        """Return the canonical form of the element's fragment (`lasthop_xml.xas.canonical`)."""
        return canonical(self.fragment(), comments=comments)

    def _mappings(self) -> list[Event]:
        events = self.tree.events
        first = self.start
        while first > 0 and events[first - 1].kind is PREFIX_MAPPING:
            first -= 1
        return events[first : self.start]

    def _from(self, index: int) -> Iterator[Event]:
        events = self.tree.events
        return (events[place] for place in range(index, len(events)))
