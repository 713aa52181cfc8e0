"""Makes the report from the ledger, the traffic on the links, and the log's figures of waste and
loss."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from lasthop.clock import SECOND, Micros
from lasthop.runtime.demo import messages
from lasthop.runtime.demo.ledger import DemoLedger, LedgerLane
from lasthop.runtime.demo.play import Cast
from lasthop.runtime.demo.publishers import PapInitiator
from lasthop.runtime.demo.report import (
    DemoPeriod,
    DemoReport,
    LearningReport,
    LinkReport,
    latency,
    period,
)
from lasthop.runtime.demo.script import TOPICS
from lasthop.runtime.demo.waste import History
from lasthop.runtime.failure import Failure

LEARNED_TOPICS = frozenset(topic.name for topic in TOPICS if topic.policy is None)
"""The topics for which the gateway chooses the forwarding policy. Topics for which the subscriber
chooses it are not compared."""

MOST_ASKED = 200
"""The largest number of missing messages about which the gateway is asked, one by one; the other
missing messages are considered to be under way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Act:
    """One run of a script. Only messages that were sent after the lead and expired before the end
    of the run are counted."""

    began: Micros
    length: Micros
    lead: Micros
    tail: Micros
    bytes_per_second: float
    """The number of bytes per second on all links together, on average over this run."""

    @property
    def since(self) -> Micros:
        return self.began + self.lead

    @property
    def until(self) -> Micros:
        return max(self.since, self.began + self.length - self.tail)

    def cut_to(self, other: Act) -> Act:
        """Return this run, shortened to the length of the other run."""
        return replace(self, length=min(self.length, other.length))


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """The data from which a report is made."""

    ledger: DemoLedger
    """A copy of the ledger to which nothing is added any more."""
    lost: int
    learning: LearningReport
    before: Act | None
    after: Act | None
    seconds: float
    complete: bool


def make_report(data: Path, cast: Cast, found: Findings) -> DemoReport:
    """Return a report of everything that is known now. This reads the log, so it must not run on an
    event loop."""
    ledger, lost = found.ledger, found.lost
    sent, looks = ledger.verdict(), ledger.looks
    history = History(data)
    seen = sent.delivered + looks.shown
    return DemoReport(
        complete=found.complete,
        seconds=round(found.seconds, 1),
        devices=len(cast.fleet.members),
        good=sent.good and looks.good and lost == 0,
        lost=lost,
        under_way=sent.missing - lost,
        messages=sent,
        looks=looks,
        latency=latency([took for _, took in ledger.latencies()]),
        links=_links(cast, ledger),
        bytes_per_message=round(cast.bytes_on_links / seen, 1) if seen else None,
        payload_per_message=messages.SIZE,
        learning=found.learning,
        before=_period(history, found.before),
        after=_period(history, found.after),
    )


def _period(history: History, act: Act | None) -> DemoPeriod | None:
    if act is None:
        return None
    hop = history.hop(LEARNED_TOPICS, act.since, act.until)
    return period(hop, (act.until - act.since) / SECOND, act.bytes_per_second)


async def count_lost(ledger: DemoLedger, cast: Cast) -> int:
    """Count the messages that no application saw and that the gateway considers ended.

    An application may see a message while the gateway is being asked, so only messages that are
    still missing after the answer are lost.
    """
    asked = ledger.missing()[:MOST_ASKED]
    ended = await asyncio.to_thread(_ended, asked, cast)
    return len(ended & set(ledger.missing()))


def _ended(asked: list[tuple[LedgerLane, str]], cast: Cast) -> set[tuple[LedgerLane, str]]:
    found = set()
    for lane, message in asked:
        ended: Callable[[str], bool] = cast.shop.ended
        if lane.publisher == PapInitiator.NAME:
            ended = cast.initiator.ended
        try:
            if ended(message):
                found.add((lane, message))
        except Failure:
            # A gateway that does not know an accepted message has lost it.
            found.add((lane, message))
    return found


def _links(cast: Cast, ledger: DemoLedger) -> dict[str, LinkReport]:
    kind_of = {member.name: member.person.profile.name for member in cast.fleet.members}
    took: defaultdict[str, list[float]] = defaultdict(list)
    for device, seconds in ledger.latencies():
        took[kind_of[device]].append(seconds)
    found: dict[str, LinkReport] = {}
    for member in cast.fleet.members:
        profile, link = member.person.profile, member.link
        row = found.setdefault(
            profile.name,
            LinkReport(
                devices=0,
                away=round(profile.away, 3),
                delivered=len(took[profile.name]),
                latency=latency(took[profile.name]),
                resets=0,
                bytes=0,
                bytes_per_message=None,
            ),
        )
        row.devices += 1
        row.resets += link.resets
        row.bytes += link.up_bytes + link.down_bytes
    for name, row in found.items():
        shown = sum(count for device, count in ledger.shown.items() if kind_of[device] == name)
        seen = row.delivered + shown
        row.bytes_per_message = round(row.bytes / seen, 1) if seen else None
    return found
