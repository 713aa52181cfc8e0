"""Checks that the log is complete and agrees with the store, for `lasthop log check`.

The events are read once, as a stream; memory grows with the devices and the open deliveries, not
with the log. Then the store's deliveries are compared with it. Nothing above this layer is
imported: states are their names, and a delivery of the store is a plain tuple.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple

from lasthop.errors import StoreBroken
from lasthop.eventlog.reader import LogReader
from lasthop.events import SCHEMA_VERSION, Event, Kind

BATCH = 20_000
"""How many rows of the store are sorted by their newest event before these events are looked up.
Rows come in the order of messages, and so of time: one batch reads a few neighbouring segments in
order."""

_SEEN = ("PENDING", "SENDING", "RECEIVED")
_OPEN = (*_SEEN, "PARKED")

LIFE: dict[str, tuple[tuple[str, ...], str]] = {
    Kind.ACCEPTED: ((), "PENDING"),
    Kind.HELD: (("PENDING",), "PENDING"),
    Kind.CONSULTED: (("PENDING",), "PENDING"),
    Kind.RELEASED: (("PENDING",), "SENDING"),
    Kind.TRANSMITTED: (("SENDING",), "SENDING"),
    Kind.COUNTED: (("SENDING",), "SENDING"),
    Kind.RECEIVED: (("SENDING",), "RECEIVED"),
    Kind.REQUEUED: (("SENDING", "RECEIVED", "PARKED"), "PENDING"),
    Kind.PARKED: (_SEEN, "PARKED"),
    Kind.SENT: (("SENDING",), "SENT"),
    Kind.DELIVERED: (_SEEN, "DELIVERED"),
    Kind.EXPIRED: (_OPEN, "EXPIRED"),
    Kind.CANCELLED: (_OPEN, "CANCELLED"),
    Kind.REPLACED: (_OPEN, "REPLACED"),
    Kind.ABORTED: (_SEEN, "ABORTED"),
    Kind.TIMED_OUT: (_OPEN, "TIMED_OUT"),
    Kind.UNDELIVERABLE: (_OPEN, "UNDELIVERABLE"),
    Kind.REASSIGNED: (("PENDING", "PARKED"), "REASSIGNED"),
    Kind.SUPPRESSED: (_SEEN, "SUPPRESSED"),
}
"""For every event of a delivery: the states in which it may come, and the state after it. The life
cycle itself is defined in the core; a test compares the two."""

ENDS = frozenset(kind for kind, (_, state) in LIFE.items() if state not in _OPEN)


class StoredDelivery(NamedTuple):
    """A delivery as the store has it."""

    message: int
    device: int
    state: str
    open: bool
    last_event: int


class _Life(NamedTuple):
    """An open delivery as the log has it."""

    app: str
    dev: str
    msg: int
    state: str


@dataclass(slots=True)
class AppTally:
    """The deliveries of one app. Conservation: every accepted delivery has ended or is open."""

    accepted: int = 0
    older: int = 0
    """Deliveries that were accepted before the log begins."""
    ended: Counter[str] = field(default_factory=Counter)
    """The number of deliveries that ended, by kind of end."""
    open: int = 0

    @property
    def conserved(self) -> bool:
        return self.accepted + self.older == self.ended.total() + self.open


@dataclass(slots=True)
class LogReport:
    """The findings of a check. `problems` holds the first of them, `counts` the number of each
    sort."""

    first: int = 0
    end: int = 0
    apps: dict[str, AppTally] = field(default_factory=lambda: defaultdict(AppTally))
    compared: int = 0
    """Deliveries of the store that were compared with the log."""
    newer: int = 0
    """Deliveries that changed in the store after the log was read."""
    older: int = 0
    """Deliveries whose newest event is older than the log."""
    newest_schema: int = SCHEMA_VERSION
    problems: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)

    @property
    def good(self) -> bool:
        return not self.counts


class LogCheck:
    """Takes every event in order, then the store's deliveries, and reports problems.

    End with either `finish` or `compare`. On a gateway that runs, read the log first and the store
    afterwards.
    """

    def __init__(self, *, show: int = 20) -> None:
        self._show = show
        self._report = LogReport()
        self._next: int | None = None
        self._boot = 0
        self._device_next: dict[tuple[str, str], int] = {}
        self._open: dict[int, _Life] = {}
        """Open deliveries by the offset of their newest event, which the next event has as its
        `prev`."""

    def read(self, reader: LogReader, stop: int | None = None) -> None:
        """Check the whole log up to the offset `stop`; events that are in segments are read from
        there."""
        reader.refresh()
        for line in reader.lines(stop=stop):
            try:
                self.event(reader.decode(line))
            except StoreBroken as error:
                self.unreadable(self._next or 0, str(error))

    def event(self, event: Event) -> None:
        """Check the next event of the log."""
        if self._next is None:
            self._report.first = event.n
        elif event.n != self._next:
            self._problem("order", f"event {event.n} where {self._next} was expected")
        if event.boot < self._boot:
            self._problem("order", f"event {event.n} is of boot {event.boot}, after {self._boot}")
        self._next = event.n + 1
        self._boot = event.boot
        self._report.newest_schema = max(self._report.newest_schema, event.v)
        if event.dev:
            self._count_of_device(event)
        if event.kind in LIFE:
            self._step(event)
        elif event.prev in self._open:
            # A remark about an open delivery is part of the chain and changes no state.
            self._open[event.n] = self._open.pop(event.prev)

    def unreadable(self, offset: int, reason: str) -> None:
        """Note that the line in the place of this offset is not an event."""
        self._problem("unreadable", f"event {offset} cannot be read: {reason}")
        self._next = offset + 1

    def compare(
        self, rows: Iterable[StoredDelivery], find: Callable[[int], Event | None]
    ) -> LogReport:
        """Return the report about the log and the store's deliveries; `find` looks an event up by
        its offset."""
        report = self.finish()
        moved_on: Counter[int] = Counter()
        left = dict(self._open)
        remaining = iter(rows)
        while batch := sorted(islice(remaining, BATCH), key=lambda row: row.last_event):
            for row in batch:
                if row.last_event >= report.end:
                    report.newer += 1
                    moved_on[row.message] += 1
                elif row.last_event < report.first:
                    report.older += 1
                else:
                    report.compared += 1
                    self._row(row, left.pop(row.last_event, None), find)
        for offset, life in left.items():
            if moved_on[life.msg]:
                moved_on[life.msg] -= 1
            else:
                self._problem(
                    "store",
                    f"{_name(life)} is {life.state} by event {offset}, but not in the store",
                )
        return report

    def finish(self) -> LogReport:
        """Return the report about the log alone."""
        report = self._report
        report.end = self._next or 0
        for life in self._open.values():
            report.apps[life.app].open += 1
        for app, tally in sorted(report.apps.items()):
            if not tally.conserved:
                self._problem(
                    "conservation",
                    f"app {app!r}: {tally.accepted + tally.older} accepted, but"
                    f" {tally.ended.total()} ended and {tally.open} open",
                )
        return report

    def _count_of_device(self, event: Event) -> None:
        device = (event.app, event.dev)
        expected = self._device_next.get(device)
        if expected is None and not self._report.first:
            expected = 0
        if expected is not None and event.dn != expected:
            self._problem(
                "device order",
                f"event {event.n} is number {event.dn} of device {event.app}/{event.dev},"
                f" where {expected} was expected",
            )
        self._device_next[device] = event.dn + 1
        if event.kind == Kind.REMOVED:
            # A device of that name that registers later is another device, and counts from 0.
            del self._device_next[device]

    def _step(self, event: Event) -> None:
        before, after = LIFE[event.kind]
        tally = self._report.apps[event.app]
        life = self._life_before(event, tally)
        if life is not None and life.state not in before:
            self._problem("life", f"{_where(event)} while {life.state}")
        if event.state != after:
            self._problem("life", f"{_where(event)}, with state {event.state!r}, not {after!r}")
        if event.kind not in ENDS:
            self._open[event.n] = _Life(event.app, event.dev, event.msg, after)
            return
        tally.ended[event.kind] += 1
        if not event.reason and event.kind != Kind.DELIVERED:
            self._problem("reason", f"{_where(event)} without a reason")

    def _life_before(self, event: Event, tally: AppTally) -> _Life | None:
        """Return the delivery as it was before the event; None at its beginning, and where that is
        unknown."""
        if event.kind == Kind.ACCEPTED:
            tally.accepted += 1
            if event.prev >= 0:
                self._problem("chain", f"{_where(event)} after event {event.prev}")
            return None
        life = self._open.pop(event.prev, None)
        if life is not None and (life.app, life.dev, life.msg) == (event.app, event.dev, event.msg):
            return life
        if life is not None:
            self._open[event.prev] = life
            self._problem("chain", f"{_where(event)} after event {event.prev} of {_name(life)}")
        elif 0 <= event.prev < self._report.first:
            tally.older += 1
        else:
            self._problem(
                "chain",
                f"{_where(event)} after event {event.prev}, which leaves no such delivery open",
            )
        return None

    def _row(
        self, row: StoredDelivery, life: _Life | None, find: Callable[[int], Event | None]
    ) -> None:
        name = f"message {row.message:016x} for device number {row.device}"
        if row.open or life is not None:
            if life is None or not row.open or (life.msg, life.state) != (row.message, row.state):
                in_log = f"open and {life.state}" if life is not None else "not open there"
                self._problem(
                    "store",
                    f"{name} is {row.state} by event {row.last_event} in the store, and {in_log}"
                    " in the log",
                )
            return
        try:
            event = find(row.last_event)
        except StoreBroken:
            event = None
        if event is None or (event.msg, event.state) != (row.message, row.state):
            found = f"{event.state} of {event.msg:016x}" if event is not None else "missing"
            self._problem(
                "store",
                f"{name} is {row.state} in the store, and its event {row.last_event} is {found}",
            )

    def _problem(self, sort: str, text: str) -> None:
        self._report.counts[sort] += 1
        if len(self._report.problems) < self._show:
            self._report.problems.append(f"{sort}: {text}")


def _name(life: _Life | Event) -> str:
    return f"message {life.msg:016x} for {life.app}/{life.dev}"


def _where(event: Event) -> str:
    return f"event {event.n}: {_name(event)} was {event.kind.replace('_', ' ')}"
