"""Waste and loss on the last hop, from the gateway's own log, for a span of time.

They are those of the last-hop paper, counted by the code that the pipeline learns with: *waste* is
what was forwarded and never read, of all forwarded; *loss* is what the user would have read had
everything been forwarded at once, and has not, of all that. Messages count by when they came.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from contextlib import closing
from pathlib import Path

import msgspec

from lasthop.clock import Micros
from lasthop.eventlog.reader import LogReader
from lasthop.events import Event, Kind
from lasthop.pipeline.replay import (
    COLUMNS,
    KINDS,
    ON_LINE,
    ReplayRow,
    as_logged,
    decider,
    estimate,
    moments,
)
from lasthop.pipeline.tuning import counts
from lasthop.runtime.places import LOG_DIRECTORY
from lasthop.store.sqlite import SqliteReader

_KINDS = frozenset(str(kind) for kind in KINDS)


class HopWaste(msgspec.Struct):
    """Counts of a span."""

    forwarded: int = 0
    wasted: int = 0
    read_online: int = 0
    """What would have been read, had everything been forwarded at once."""
    lost: int = 0

    @property
    def waste(self) -> float | None:
        return self.wasted / self.forwarded if self.forwarded else None

    @property
    def loss(self) -> float | None:
        return self.lost / self.read_online if self.read_online else None


class History:
    """The log, as a replay wants it: one list of rows for each device."""

    def __init__(self, data: Path) -> None:
        self._rows: defaultdict[tuple[str, str], list[ReplayRow]] = defaultdict(list)
        with (
            closing(SqliteReader.beside(data)) as store,
            LogReader(data / LOG_DIRECTORY, store) as reader,
        ):
            for event in reader.events():
                if event.dev and event.kind in _KINDS:
                    self._rows[event.app, event.dev].append(_row(event))

    def hop(self, topics: Collection[str], since: Micros, until: Micros) -> HopWaste:
        """What became of the messages of these topics that came between two moments."""
        total = HopWaste()
        for rows in self._rows.values():
            best = estimate(
                moments(rows), lambda _, terms: decider(ON_LINE, terms.as_subscription())
            )
            logged = as_logged(rows, best)
            accepted = {row.msg: row.t for row in rows if row.kind == Kind.ACCEPTED}
            for topic in best.keys() & set(topics):
                found = counts(logged[topic], best[topic], accepted, since, until)
                for name, count in zip(HopWaste.__struct_fields__, found, strict=True):
                    setattr(total, name, getattr(total, name) + count)
        return total


def _row(event: Event) -> ReplayRow:
    return ReplayRow(*(getattr(event, name) for name in COLUMNS))
