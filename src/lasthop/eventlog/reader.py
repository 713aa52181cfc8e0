"""Reads the log as one sequence: sealed segments first, then what only the store has yet.

An event is found by its offset in a number of steps that grows with the logarithm of the log: the
names of the segments are sorted by offset, and so are the lines within one. Unknown fields are
skipped, and a newer schema is read as far as it is understood; `newest_schema` says so.
"""

from __future__ import annotations

import mmap
from bisect import bisect_right
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

import msgspec

from lasthop.errors import StoreBroken
from lasthop.eventlog.segment import LogSegment, day_of, directory_of, sealed_segments, stamp_of
from lasthop.eventlog.source import EventPages
from lasthop.events import SCHEMA_VERSION, Event

PAGE_BYTES = 1 << 20
"""Bytes asked of the store at a time while reading what is not exported."""

_decode = msgspec.json.Decoder(Event).decode


class LogReader:
    """The log under `log`, with the store's own pages where `pages` are given.

    Reads while an exporter writes, and looks at the segments only when the store cannot answer or
    `refresh` was called. For one thread at a time; a context manager, since it keeps a file open
    between calls.
    """

    def __init__(self, log: Path, pages: EventPages | None = None) -> None:
        self.newest_schema = SCHEMA_VERSION
        """The highest schema version read so far."""
        self._log = log
        self._pages = pages
        self._segments: list[LogSegment] = []
        self._end = 0
        """The offset after the newest sealed event."""
        self._opened: _OpenedSegment | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the segment that is open."""
        if self._opened is not None:
            self._opened.close()
            self._opened = None

    def refresh(self) -> None:
        """Look for segments that were sealed or removed since the last look."""
        self._segments = sealed_segments(self._log)
        self._end = stamp_of(self._segments[-1].last_line()).n + 1 if self._segments else 0

    @property
    def segments(self) -> list[LogSegment]:
        """The sealed segments as of the last look."""
        return list(self._segments)

    def end(self) -> int:
        """Return the offset after the newest event."""
        if self._pages is None:
            self.refresh()
            return self._end
        end = max(self._end, self._pages.exported_to())
        while pages := self._pages.events(end, PAGE_BYTES):
            end = pages[-1].first + pages[-1].count
        return end

    def line(self, offset: int) -> bytes | None:
        """Return the line of one event, without its newline; None when it was removed or does not
        exist yet."""
        for last_try in (False, True):
            if 0 <= offset < self._end:
                opened = self._open(self._segment_with(offset))
                if opened is not None:
                    return opened.line(offset)
            elif self._pages is not None and (line := self._pages.event_at(offset)) is not None:
                return line
            if not last_try:
                self.refresh()
        return None

    def find(self, offset: int) -> Event | None:
        """Return the event at an offset; None when it was removed or does not exist yet."""
        line = self.line(offset)
        return None if line is None else self.decode(line)

    def lines(self, start: int = 0, stop: int | None = None) -> Iterator[bytes]:
        """Yield the lines from offset `start` up to `stop` that exist now, without their newlines.

        Lines are counted, not looked into: `check` reports a gap or a damaged line.
        """
        for block in self._blocks(start):
            for offset, line in enumerate(block.lines, block.first):
                if stop is not None and offset >= stop:
                    return
                yield line

    def events(self, start: int = 0, stop: int | None = None) -> Iterator[Event]:
        """Yield the events from offset `start` up to `stop` that exist now."""
        return map(self.decode, self.lines(start, stop))

    def on(self, day: int) -> Iterator[Event]:
        """Yield the events of one UTC day, counted from 1970-01-01, in the order of their
        offsets."""
        self.refresh()
        end = self._end
        name = directory_of(day)
        for segment in self.segments:
            opened = self._open(segment) if segment.path.parent.name == name else None
            if opened is not None:
                yield from map(self.decode, opened.lines(segment.first))
        for event in self.events(end):
            if day_of(event.t) == day:
                yield event

    def decode(self, line: bytes) -> Event:
        """Decode a line as an event; raise StoreBroken if it is none."""
        try:
            event = _decode(line)
        except msgspec.DecodeError as error:
            raise StoreBroken(
                f"a line of the event log cannot be read: {error}", line=line[:80].decode("latin-1")
            ) from None
        self.newest_schema = max(self.newest_schema, event.v)
        return event

    def _blocks(self, offset: int) -> Iterator[_Block]:
        """Yield what follows from an offset on, one segment or page of the store at a time."""
        fresh = False
        while True:
            if offset < self._end:
                segment = self._segment_with(offset)
                opened = self._open(segment)
                if opened is None:
                    self.refresh()
                    continue
                end = self._first_after(segment)
                yield _Block(max(offset, segment.first), end, opened.lines(offset))
                offset = end
                continue
            pages = self._pages.events(offset, PAGE_BYTES) if self._pages is not None else ()
            if not fresh and not (pages and pages[0].first == offset) and self._lags(offset):
                fresh = True
                self.refresh()
                continue
            if not pages:
                return
            fresh = False
            for page in pages:
                end = page.first + page.count
                yield _Block(page.first, end, iter(page.lines.splitlines()))
                offset = end

    def _lags(self, offset: int) -> bool:
        """Whether this offset may have been sealed since the last look: asking the store is cheap,
        listing all segments is not."""
        return self._pages is None or offset < self._pages.exported_to()

    def _segment_with(self, offset: int) -> LogSegment:
        """Return the segment that has this offset, or the oldest if even that begins later."""
        i = bisect_right(self._segments, offset, key=lambda segment: segment.first)
        return self._segments[max(0, i - 1)]

    def _first_after(self, segment: LogSegment) -> int:
        """Return the offset at which the next segment begins."""
        i = bisect_right(self._segments, segment)
        return self._segments[i].first if i < len(self._segments) else self._end

    def _open(self, segment: LogSegment) -> _OpenedSegment | None:
        """Return a sealed segment opened for reading; None when an operator has removed it."""
        if self._opened is None or self._opened.segment != segment:
            try:
                opened = _OpenedSegment(segment)
            except FileNotFoundError:
                return None
            self.close()
            self._opened = opened
        return self._opened


class _Block(NamedTuple):
    """Consecutive lines of the log, from offset `first` to below `end`."""

    first: int
    end: int
    lines: Iterator[bytes]


class _OpenedSegment:
    """A sealed segment, mapped into memory; its file never changes."""

    def __init__(self, segment: LogSegment) -> None:
        self.segment = segment
        with segment.path.open("rb") as file:
            self._data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)

    def close(self) -> None:
        self._data.close()

    def line(self, offset: int) -> bytes | None:
        """Return the line with this offset; None if the segment lacks it."""
        start, end = self._place(offset)
        line = self._data[start:end]
        return line if line and stamp_of(line).n == offset else None

    def lines(self, offset: int) -> Iterator[bytes]:
        """Yield all lines from this offset on."""
        start = 0 if offset <= self.segment.first else self._place(offset)[0]
        with self.segment.path.open("rb") as file:
            file.seek(start)
            for line in file:
                yield line.rstrip(b"\n")

    def _place(self, offset: int) -> tuple[int, int]:
        """Return where the first line at or above this offset starts and ends, by binary search."""
        data = self._data
        low, high = 0, len(data)
        while low < high:
            middle = (low + high) // 2
            start = data.rfind(b"\n", low, middle) + 1 or low
            end = data.find(b"\n", middle)
            if stamp_of(data[start:end]).n < offset:
                low = end + 1
            else:
                high = start
        return low, data.find(b"\n", low)
