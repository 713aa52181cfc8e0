"""Segments: how the files of the log are named, found, written and sealed.

    log/date=2026-11-15/events-00000000000000004711.jsonl         sealed: whole, and never changed
    log/date=2026-11-15/.events-00000000000000009000.jsonl.open   being written; not part of the log

A segment holds consecutive offsets from the one in its name on, all with times of the UTC date in
its directory's name. It appears by a rename once its bytes are on the disk, so every segment that
exists is complete. The hidden name keeps Spark and shell patterns away from what is not sealed, the
suffix keeps out tools whose patterns match hidden files.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

import msgspec

from lasthop.clock import DAY, Micros
from lasthop.errors import StoreBroken
from lasthop.eventlog.files import RealFiles

_SEALED = re.compile(r"events-(\d{20})\.jsonl")
_OPEN = re.compile(r"\.events-\d{20}\.jsonl\.open")
_DATE = re.compile(r"date=\d{4}-\d\d-\d\d")
_UNIX_EPOCH = date(1970, 1, 1).toordinal()
_TAIL = 16 << 10
"""Bytes read from the end of a file to find its last line; most lines have 200 to 400."""


class EventStamp(msgspec.Struct, gc=False):
    """The place of an event in the log: its offset and its time."""

    n: int
    t: Micros


_decode_stamp = msgspec.json.Decoder(EventStamp).decode
_decode_stamps = msgspec.json.Decoder(EventStamp).decode_lines


def stamp_of(line: bytes) -> EventStamp:
    """Return the offset and time of one line; raise StoreBroken if it is damaged."""
    try:
        return _decode_stamp(line)
    except msgspec.DecodeError as error:
        raise StoreBroken(f"a line of the event log cannot be read: {error}") from None


def end_stamps(lines: bytes) -> tuple[EventStamp, EventStamp]:
    """Return the offset and time of the first and the last line, each of which ends with a
    newline."""
    start = lines.rfind(b"\n", 0, -1) + 1
    return stamp_of(lines[: lines.find(b"\n")]), stamp_of(lines[start:])


def stamps_of(lines: bytes) -> list[EventStamp]:
    """Return the offsets and times of many lines; raise StoreBroken if one is damaged."""
    try:
        return _decode_stamps(lines)
    except msgspec.DecodeError as error:
        raise StoreBroken(f"a line of the event log cannot be read: {error}") from None


def day_of(time: Micros) -> int:
    """Return the UTC day of a time, counted from 1970-01-01."""
    return time // DAY


def directory_of(day: int) -> str:
    """Return the name of the directory of a day's segments.

    >>> directory_of(20772)
    'date=2026-11-15'
    """
    return f"date={date.fromordinal(_UNIX_EPOCH + day).isoformat()}"


@dataclass(frozen=True, slots=True, order=True)
class LogSegment:
    """A sealed segment: a complete file of the log, which never changes."""

    first: int
    path: Path = field(compare=False)

    @property
    def date(self) -> str:
        """The UTC date of all events in the segment, as YYYY-MM-DD."""
        return self.path.parent.name.removeprefix("date=")

    def last_line(self) -> bytes:
        """Return the newest event of the segment, without the newline; raise StoreBroken if it is
        damaged."""
        with self.path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            length = 0
            while length < size:
                length = min(size, max(_TAIL, length * 4))
                file.seek(size - length)
                *before, line, rest = file.read(length).rsplit(b"\n", 2)
                if rest:
                    break
                if before or length == size:
                    return line
        raise StoreBroken("a sealed segment is damaged at its end", path=str(self.path))


def sealed_segments(log: Path) -> list[LogSegment]:
    """Return all sealed segments, in the order of their offsets."""
    found = [
        LogSegment(int(match[1]), Path(entry.path))
        for entry in _entries(log)
        if (match := _SEALED.fullmatch(entry.name))
    ]
    return sorted(found)


def unsealed_files(log: Path) -> list[Path]:
    """Return the files that an interrupted export left behind."""
    return [Path(entry.path) for entry in _entries(log) if _OPEN.fullmatch(entry.name)]


def _entries(log: Path) -> Iterator[os.DirEntry[str]]:
    try:
        days = [entry.path for entry in os.scandir(log) if _DATE.fullmatch(entry.name)]
    except FileNotFoundError:
        return
    for day in days:
        try:
            yield from os.scandir(day)
        except FileNotFoundError:
            continue  # An operator removed an old day in the meantime.


class OpenSegment:
    """A segment that is being written, under a hidden name until it is sealed."""

    def __init__(self, files: RealFiles, log: Path, *, first: int, day: int) -> None:
        self.day = day
        self.size = 0
        self._files = files
        self._directory = log / directory_of(day)
        name = f"events-{first:020d}.jsonl"
        self._sealed = self._directory / name
        self._path = self._directory / f".{name}.open"
        files.make_directory(self._directory)
        files.sync_directory(log)
        self._file: int | None = files.create(self._path)

    def add(self, lines: bytes) -> None:
        """Append whole lines to the segment."""
        assert self._file is not None
        self._files.write(self._file, lines)
        self.size += len(lines)

    def seal(self) -> None:
        """Make the segment part of the log: its bytes are on the disk before it gets its name."""
        assert self._file is not None
        self._files.sync(self._file)
        self._close()
        self._files.rename(self._path, self._sealed)
        self._files.sync_directory(self._directory)

    def discard(self) -> None:
        """Remove the unfinished segment and free its room."""
        self._close()
        self._files.remove(self._path)

    def _close(self) -> None:
        if self._file is not None:
            file, self._file = self._file, None
            self._files.close(file)
