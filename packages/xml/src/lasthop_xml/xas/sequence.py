"""Sequences of events: the list, the lazy stream, and the sink that events are written to.

Everything that takes a sequence takes any iterable of events; a cursor (`reader`) also needs to
look ahead by index, which both classes here allow.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol, TypeAlias, runtime_checkable

from lasthop_xml.xas.events import Event

EventSequence: TypeAlias = Iterable[Event]
"""Any iterable of events, in document order."""


class Sink(Protocol):
    """An object that events can be written to: a list, or the serializer of a format."""

    def append(self, event: Event, /) -> None: ...


@runtime_checkable
class Indexed(Protocol):
    """A sequence whose events a cursor can look up by index."""

    def at(self, index: int) -> Event | None:
        """Return the event at `index`, or None after the last one."""
        ...

    def release(self, before: int) -> None:
        """Allow the sequence to forget its events before the index `before`."""
        ...


class EventList(list[Event]):
    """A sequence in memory; also a sink that keeps the events instead of writing bytes."""

    __slots__ = ()

    def at(self, index: int) -> Event | None:
        return self[index] if index < len(self) else None

    def release(self, before: int) -> None:
        """Do nothing: a list keeps all its events."""


class EventStream:
    """A sequence that is produced while it is read (thesis, section 4.3).

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
        # Removing released events moves the others, so it is done only when at least half can go.
        count = min(before - self._first, len(self._kept))
        if 2 * count > len(self._kept):
            del self._kept[:count]
            self._first += count

    def __iter__(self) -> Iterator[Event]:
        """Yield the rest of the stream, releasing each event; the stream can be read once."""
        index = self._first
        while (event := self.at(index)) is not None:
            index += 1
            self.release(index)
            yield event
