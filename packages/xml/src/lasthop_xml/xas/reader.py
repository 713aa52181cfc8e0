"""A cursor into a sequence, with which application code reads documents (thesis, section 4.3).

The cursor stands before an event. Methods that read something leave the cursor after it, or raise
an error and leave the cursor where it was. A start block is an element's prefix mappings, its start
and its attributes.
"""

from __future__ import annotations

from typing import Any

from lasthop_xml.xas.errors import MalformedEvents
from lasthop_xml.xas.events import (
    ATTRIBUTE,
    COMMENT,
    CONTENT,
    ELEMENT_END,
    ELEMENT_START,
    PREFIX_MAPPING,
    PROCESSING_INSTRUCTION,
    TYPED_CONTENT,
    Event,
    Kind,
)
from lasthop_xml.xas.names import Name
from lasthop_xml.xas.scope import Scope, outermost
from lasthop_xml.xas.sequence import EventList, EventSequence, EventStream, Indexed
from lasthop_xml.xas.types.table import lexical

_PASSED_OVER = (COMMENT, PROCESSING_INSTRUCTION)


class Reader:
    """A cursor that reads `events` once from front to back and may look ahead any number of events.

    `scope` has the meaning of prefixes where the cursor is.
    """

    __slots__ = ("_events", "_index", "_mappings", "_open", "scope")

    def __init__(self, events: EventSequence | Indexed, *, scope: Scope | None = None) -> None:
        self._events = events if isinstance(events, Indexed) else EventStream(events)
        self._index = 0
        self._open: list[Scope] = []
        self._mappings: list[Name] = []
        self.scope = outermost() if scope is None else scope

    @property
    def position(self) -> int:
        """Return the number of events that the cursor has passed."""
        return self._index

    @property
    def depth(self) -> int:
        """Return the number of open elements around the cursor."""
        return len(self._open)

    def peek(self, ahead: int = 0) -> Event | None:
        """Return the next event, or the one `ahead` after it, without moving; None after the
        end."""
        return self._events.at(self._index + ahead)

    def advance(self) -> Event | None:
        """Return the next event and move past it; None at the end."""
        event = self._events.at(self._index)
        if event is None:
            return None
        self._index += 1
        kind = event.kind
        if kind is ELEMENT_START:
            self._open.append(self.scope)
            if self._mappings:
                self.scope = self.scope.declare(self._mappings)
                self._mappings = []
        elif kind is ELEMENT_END:
            if not self._open:
                raise MalformedEvents("an element ends that is not open", name=str(event.name))
            self.scope = self._open.pop()
        elif kind is PREFIX_MAPPING and event.name is not None:
            self._mappings.append(event.name)
        return event

    def release(self) -> None:
        """Let a stream forget all events that the cursor has passed."""
        self._events.release(self._index)

    def skip_ignorable(self) -> None:
        """Move past comments, processing instructions and texts of white space."""
        while (event := self.peek()) is not None and (
            event.kind in _PASSED_OVER
            or (event.kind is CONTENT and not event.value.strip(" \t\n\r"))
        ):
            self.advance()

    def at_start(self, name: Name | None = None) -> bool:
        """Return whether the start block of an element comes next, and has this name if one is
        given."""
        found = self.start_name()
        return found is not None and name in {None, found}

    def start_name(self) -> Name | None:
        """Return the name of the element whose start block comes next, or None."""
        ahead = 0
        while (event := self.peek(ahead)) is not None and event.kind is PREFIX_MAPPING:
            ahead += 1
        return event.name if event is not None and event.kind is ELEMENT_START else None

    def start(self, name: Name | None = None) -> dict[Name, str]:
        """Read a start block and return its attributes; raise MalformedEvents if another element
        comes."""
        if not self.at_start(name):
            raise MalformedEvents(
                "another element was expected", name=str(name), found=self._next()
            )
        while (event := self.advance()) is not None and event.kind is PREFIX_MAPPING:
            pass
        attributes: dict[Name, str] = {}
        while (event := self.peek()) is not None and event.kind is ATTRIBUTE:
            if event.name is not None:
                attributes[event.name] = event.value
            self.advance()
        return attributes

    def end(self, name: Name | None = None) -> None:
        """Read the end of an element; raise MalformedEvents if no end comes next, or the end of an
        element with another name."""
        event = self.peek()
        if event is None or event.kind is not ELEMENT_END or name not in {None, event.name}:
            raise MalformedEvents(
                "the end of an element was expected", name=str(name), found=self._next()
            )
        self.advance()

    def text(self) -> str:
        """Read and return all text up to the next tag, with values in their lexical form and
        without comments."""
        texts = []
        while (event := self.peek()) is not None:
            if event.kind is CONTENT:
                texts.append(event.value)
            elif event.kind is TYPED_CONTENT:
                texts.append(lexical(event.name, event.value))
            elif event.kind not in _PASSED_OVER:
                break
            self.advance()
        return "".join(texts)

    def value(self, type_: Name | None = None) -> Any:
        """Read and return a typed value; raise MalformedEvents if no value comes next, or a value
        of another type."""
        event = self.peek()
        if event is None or event.kind is not TYPED_CONTENT or type_ not in {None, event.name}:
            raise MalformedEvents("a value was expected", type=str(type_), found=self._next())
        self.advance()
        return event.value

    def element(self) -> EventList:
        """Read and return the events of a whole element, from its prefix mappings to its end."""
        if not self.at_start():
            raise MalformedEvents("an element was expected", found=self._next())
        found = EventList()
        outside = self.depth
        while (event := self.advance()) is not None:
            found.append(event)
            if event.kind is ELEMENT_END and self.depth == outside:
                return found
        raise MalformedEvents("the events end inside an element")

    def skip(self) -> None:
        """Move past a whole element if one comes next, otherwise past one event."""
        if not self.at_start():
            self.advance()
            return
        outside = self.depth
        while (event := self.advance()) is not None:
            if event.kind is ELEMENT_END and self.depth == outside:
                return

    def expect(self, kind: Kind) -> Event:
        """Read and return an event of this kind; raise MalformedEvents if another kind comes
        next."""
        event = self.peek()
        if event is None or event.kind is not kind:
            raise MalformedEvents("another event was expected", kind=kind.name, found=self._next())
        self.advance()
        return event

    def _next(self) -> str:
        return repr(self.peek())[:80]
