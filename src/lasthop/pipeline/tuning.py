"""Which forwarding policy suits a reader: every candidate is tried on the reader's own past.

A device's history is replayed under each candidate, and the one that wasted and lost least is
taken, with what it had learned by then. The last part of the history does not take part in the
choice; it shows what the choice achieves. This module does not use Spark.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import msgspec

from lasthop.clock import DAY, Micros
from lasthop.decision.policies import Policy
from lasthop.decision.policies.memory import memory_of
from lasthop.events import Kind
from lasthop.pipeline.replay import (
    ON_LINE,
    LoggedMoment,
    LoggedTerms,
    ReplayRow,
    TopicHistory,
    as_logged,
    decider,
    estimate,
    moments,
)
from lasthop.policy import Forwarding

LIVE = -1
"""The number that stands for the live policy in place of a candidate."""

CANDIDATES: tuple[Forwarding, ...] = (
    Forwarding(policy="unified"),
    Forwarding(policy="on-demand"),
    Forwarding(policy="predictive", price=0.25),
    Forwarding(policy="predictive", price=1.0),
    Forwarding(policy="predictive", price=3.0),
)
"""The policies that are tried. Few, and far apart: neighbours differ less than two weeks of one
reader do."""

ENOUGH_READS = 8
"""The least number of reads for which a device gets its own policy; with fewer reads a choice would
be luck, and the policy of the segment is used."""

SURE_READS = 40
"""The number of reads from which on the confidence in a choice is full."""

DIGITS = 6
"""Decimals of the numbers that a policy remembers: its rates are not known any better."""


class Score(NamedTuple):
    """How one candidate did with one topic of one device: counts, before and after the split."""

    topic: str
    segment: str
    candidate: int
    reads: int
    forwarded: int
    wasted: int
    read_online: int
    lost: int
    held_forwarded: int
    held_wasted: int
    held_read_online: int
    held_lost: int
    best: bool
    """Whether the candidate is this device's own choice; only then `memory` is filled."""
    memory: str


def tune(
    rows: Sequence[ReplayRow], *, split: Micros, candidates: Sequence[Forwarding] = CANDIDATES
) -> list[Score]:
    """Return the scores of a device. Messages accepted from `split` on only count as held out."""
    given = moments(rows)
    accepted = {row.msg: row.t for row in rows if row.kind == Kind.ACCEPTED}
    on_line = estimate(given, lambda _, terms: decider(ON_LINE, terms.as_subscription()))
    span = (given[-1].at - given[0].at) / DAY if given else 0.0
    reads = {topic: [row for row in rows if _looked(row, topic)] for topic in on_line}
    found: list[Score] = []
    histories = {LIVE: (as_logged(rows, on_line), dict[str, Policy]())}
    for number, candidate in enumerate(candidates):
        histories[number] = _tried(given, candidate)
    for topic, best in on_line.items():
        segment = _segment(reads[topic], span)
        scores = []
        for number, (history, policies) in histories.items():
            early = counts(history[topic], best, accepted, None, split)
            late = counts(history[topic], best, accepted, split, None)
            memory = ""
            if topic in policies:
                memory = msgspec.json.encode(_rounded(memory_of(policies[topic]))).decode()
            score = Score(topic, segment, number, len(reads[topic]), *early, *late, False, memory)
            scores.append(score)
        found.extend(_marked(scores))
    return found


def _tried(
    given: Sequence[LoggedMoment], candidate: Forwarding
) -> tuple[dict[str, TopicHistory], dict[str, Policy]]:
    """Return what a candidate would have done, and the policies of the topics after it."""
    made: dict[str, Policy] = {}

    def choose(topic: str, terms: LoggedTerms) -> Policy:
        made[topic] = decider(candidate, terms.as_subscription())
        return made[topic]

    return estimate(given, choose), made


def _looked(row: ReplayRow, topic: str) -> bool:
    return row.kind == Kind.READ and not row.msg and row.topic == topic


def _segment(reads: Sequence[ReplayRow], days: float) -> str:
    """Return the segment of a reader: how often the reader looks, and how often without contact."""
    often = len(reads) / max(days, 1.0)
    rate = "seldom" if often < 1 else "daily" if often < 3 else "often"
    alone = sum(1 for row in reads if row.at) / max(1, len(reads))
    where = "reached" if alone < 0.25 else "sometimes" if alone < 0.75 else "alone"
    return f"{rate}/{where}"


def counts(
    history: TopicHistory,
    best: TopicHistory,
    accepted: dict[int, Micros],
    since: Micros | None,
    until: Micros | None,
) -> tuple[int, int, int, int]:
    """Return the numbers forwarded, wasted, read on-line (`best`) and lost, of the messages that
    were accepted from `since` on and before `until`."""

    def within(key: int) -> bool:
        at = accepted[key]
        return (since is None or at >= since) and (until is None or at < until)

    forwarded = {key for key in history.forwarded if within(key)}
    read = {key for key in history.read if within(key)}
    online = {key for key in best.read if within(key)}
    return len(forwarded), len(forwarded - read), len(online), len(online - read)


def cost(forwarded: int, wasted: int, read_online: int, lost: int) -> float:
    """Return the sum of waste and loss; the lower, the better."""
    waste = wasted / forwarded if forwarded else 0.0
    loss = lost / read_online if read_online else 0.0
    return waste + loss


def _marked(scores: Iterable[Score]) -> list[Score]:
    """Mark the best candidate, unless there are too few reads; drop the memory of the others."""
    scores = list(scores)
    candidates = [score for score in scores if score.candidate != LIVE]
    best = min(
        candidates, key=lambda s: (cost(s.forwarded, s.wasted, s.read_online, s.lost), s.candidate)
    )
    sure = best.reads >= ENOUGH_READS
    return [
        score._replace(best=True) if sure and score is best else score._replace(memory="")
        for score in scores
    ]


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, DIGITS)
    if isinstance(value, dict):
        return {name: _rounded(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_rounded(item) for item in value]
    return value
