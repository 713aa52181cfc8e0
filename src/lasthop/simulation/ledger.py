"""A ledger of a rehearsed gateway's commits, kept apart from it, which checks conservation at every
commit.

Every delivery that the log says was accepted has exactly one row, and each outcome has as many rows
as the log has events of it. The ledger reads nothing but the commits.
"""

from __future__ import annotations

from collections import Counter

import msgspec

from lasthop.core.lifecycle import TRANSITIONS, State
from lasthop.eventlog.check import LogCheck, StoredDelivery
from lasthop.events import Event, Kind
from lasthop.store.base import Store
from lasthop.store.commit import Commit

ENDS: dict[State, Kind] = {state: kind for state, kind in TRANSITIONS.values() if state.final}

_decode = msgspec.json.Decoder(Event).decode


class CommitLedger:
    """Counts rows and events of the commits, and notes every mismatch."""

    def __init__(self) -> None:
        self._states: dict[tuple[int, int], int] = {}
        self._events: Counter[str] = Counter()
        self.problems: list[str] = []

    def note(self, commit: Commit) -> None:
        """Count a durable commit, and check that rows and events match."""
        for row in commit.deliveries:
            self._states[row.message, row.device] = row.state
        self._count(bytes(commit.events))
        self._balance(commit.n)

    def start_over(self, store: Store) -> None:
        """Count everything that the disk kept, after a restart of the gateway, and check it."""
        self._states = {(row.message, row.device): row.state for row in store.all_deliveries()}
        self._events.clear()
        for page in store.events(0, 1 << 40):
            self._count(page.lines)
        self._balance(0)

    def close(self, store: Store) -> None:
        """Check the whole log against the whole store, at the end of a rehearsal."""
        check = LogCheck()
        lines: dict[int, bytes] = {}
        for page in store.events(0, 1 << 40):
            for offset, line in enumerate(page.lines.splitlines(), page.first):
                lines[offset] = line
                check.event(_decode(line))
        rows = (
            StoredDelivery(r.message, r.device, State(r.state).name, r.open, r.last_event)
            for r in store.all_deliveries()
        )
        report = check.compare(rows, lambda offset: _decode(lines[offset]))
        self.problems += report.problems

    def _count(self, lines: bytes) -> None:
        for kind in (Kind.ACCEPTED, *ENDS.values()):
            self._events[kind] += lines.count(b'"kind":"%s"' % kind.encode())

    def _balance(self, n: int) -> None:
        if self._events[Kind.ACCEPTED] != len(self._states):
            accepted = self._events[Kind.ACCEPTED]
            self.problems.append(f"commit {n}: {accepted} accepted, {len(self._states)} rows")
        rows = Counter(self._states.values())
        for state, kind in ENDS.items():
            if rows[state] != self._events[kind]:
                told = self._events[kind]
                self.problems.append(f"commit {n}: {rows[state]} rows {kind}, {told} events")
