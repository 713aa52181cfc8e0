"""Waste and loss on the last hop during a span of time, from the gateway's own log.

Both are defined as in the last-hop paper, and counted by the code with which the pipeline learns:
*waste* is the share of forwarded messages that were never read; *loss* is the share of messages
that were not read, among those that the user would have read if everything had been forwarded at
once. A message belongs to the span in which it arrived at the gateway.
"""

from __future__ import annotations

from collections.abc import Collection
from contextlib import closing
from pathlib import Path

import msgspec

from lasthop.clock import Micros
from lasthop.eventlog.reader import LogReader
from lasthop.events import Kind
from lasthop.pipeline.replay import ON_LINE, as_logged, decider, estimate, histories, moments
from lasthop.pipeline.tuning import counts
from lasthop.runtime.places import LOG_DIRECTORY
from lasthop.store.sqlite import SqliteReader


class HopWaste(msgspec.Struct):
    """The counts of waste and loss in a span of time."""

    forwarded: int = 0
    wasted: int = 0
    read_online: int = 0
    """The number of messages that would have been read, had everything been forwarded at once."""
    lost: int = 0

    @property
    def waste(self) -> float | None:
        return self.wasted / self.forwarded if self.forwarded else None

    @property
    def loss(self) -> float | None:
        return self.lost / self.read_online if self.read_online else None


class History:
    """The gateway's log in the form that a replay needs: one list of rows for each device."""

    def __init__(self, data: Path) -> None:
        with (
            closing(SqliteReader.beside(data)) as store,
            LogReader(data / LOG_DIRECTORY, store) as reader,
        ):
            self._rows = histories(reader.events())

    def hop(self, topics: Collection[str], since: Micros, until: Micros) -> HopWaste:
        """Return the counts for the messages of these topics that arrived between two times."""
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
