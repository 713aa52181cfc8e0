"""Sequences of events: the list, the lazy stream, and what a sequence can be written into.

Everything that takes a sequence takes any iterable of events; a cursor (`reader`) further needs
random access forwards, which both classes here give.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol, TypeAlias, runtime_checkable

from lasthop_xml.xas.events import Event

EventSequence: TypeAlias = Iterable[Event]
"""Any source of events, in order."""


class Sink(Protocol):
    """What events can be written into: a list, or the serializer of a format."""

    def append(self, event: Event, /) -> None: ...


@runtime_checkable
class Indexed(Protocol):
    """A sequence that a cursor can move along."""

    def at(self, index: int) -> Event | None:
        """The event at `index`, or None behind the last one."""
        ...

    def release(self, before: int) -> None:
        """Nobody will ask for events before this index again."""
        ...


class EventList(list[Event]):
    """A sequence in memory; as a sink, the one that keeps events instead of writing bytes."""

    __slots__ = ()

    def at(self, index: int) -> Event | None:
        return self[index] if index < len(self) else None

    def release(self, before: int) -> None:
        """A list keeps what it has."""


class EventStream:
    """A sequence that is produced while it is read (section 4.3).

    Events that were not released can be asked for again, so a cursor may look ahead and come back.
    """

    __slots__ = ("_first", "_kept", "_source")

    def __init__(self, source: EventSequence) -> None:
        self._source = iter(source)
        self._kept: list[Event] = []
        self._first = 0

    def at(self, index: int) -> Event | None:
        if index < self._first:
            raise LookupError(f"event {index} was released")
        while index >= self._first + len(self._kept):
            event = next(self._source, None)
            if event is None:
                return None
            self._kept.append(event)
        return self._kept[index - self._first]

    def release(self, before: int) -> None:
        # Moving the kept events costs their number, so it is done when half of them can go.
        count = min(before - self._first, len(self._kept))
        if 2 * count > len(self._kept):
            del self._kept[:count]
            self._first += count

    def __iter__(self) -> Iterator[Event]:
        """What is left of the stream, which is then used up."""
        index = self._first
        while (event := self.at(index)) is not None:
            index += 1
            self.release(index)
            yield event
