"""A store with a history made up for a test: nothing but numbered events at given times."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec

from lasthop.clock import DAY, Micros
from lasthop.eventlog.segment import sealed_segments
from lasthop.events import SCHEMA_VERSION, Event, Kind
from lasthop.store.commit import Commit
from lasthop.store.memory import MemoryStore

NOON: Micros = 20_772 * DAY + DAY // 2
"""2026-11-15T12:00Z."""


class History:
    """Commits events one page at a time, and remembers every line."""

    def __init__(self) -> None:
        self.store = MemoryStore(incarnation=7)
        self.store.open()
        self.lines: list[bytes] = []
        self._commit = 0

    def commit(self, times: Iterable[Micros]) -> None:
        """One commit with an event at each of these times."""
        lines = [event_line(len(self.lines) + i, time) for i, time in enumerate(times)]
        self._commit += 1
        self.store.apply(
            Commit(
                n=self._commit,
                first_event=len(self.lines),
                events=bytearray(b"".join(line + b"\n" for line in lines)),
                event_count=len(lines),
            )
        )
        self.lines += lines

    def drop_exported(self) -> None:
        """Let the store forget everything that it may."""
        self.store.retire(messages_before=0, keys_before=0)


def event_line(n: int, time: Micros) -> bytes:
    """Some event."""
    return msgspec.json.encode(
        Event(SCHEMA_VERSION, "gateway", 1, n, time, Kind.HEARTBEAT, reason="x" * (n % 40))
    )


def sealed_lines(log: Path) -> list[bytes]:
    """All lines of all sealed segments, in the order of their names."""
    return [
        line for segment in sealed_segments(log) for line in segment.path.read_bytes().splitlines()
    ]
