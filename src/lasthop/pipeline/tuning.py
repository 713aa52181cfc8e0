"""Which forwarding policy suits a reader: every candidate is tried on the reader's own past.

A device's history is replayed under each candidate, and counted in three parts. The first says what
each candidate wastes and loses, the second how much loss a choice really means, and the last part
takes no part in the choice: it shows what the choice achieves. `lasthop.pipeline.learn` chooses.
This module does not use Spark.
"""

from __future__ import annotations

from collections.abc import Sequence
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
    audit,
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
    Forwarding(policy="predictive", price=10.0),
    ON_LINE,
)
"""The policies that are tried. Few, and far apart: neighbours differ less than two weeks of one
reader do. The last one loses nothing, for apps whose budget of loss is next to none."""

BASELINE = CANDIDATES.index(Forwarding(policy="predictive"))
"""The number of the candidate that a choice has to beat: the predictive policy with its defaults,
from the device's first day on, which needs no pipeline."""

ENOUGH_READS = 8
"""The least number of reads for which a device gets its own policy; with fewer reads a choice would
be luck, and the policy of the segment is used."""

SURE_READS = 40
"""The number of reads from which on the confidence in a choice is full."""

DIGITS = 6
"""Decimals of the numbers that a policy remembers: its rates are not known any better."""


class Score(NamedTuple):
    """How one candidate did with one topic of one device: counts of the three parts."""

    topic: str
    segment: str
    candidate: int
    reads: int
    forwarded: int
    wasted: int
    read_online: int
    lost: int
    fit_forwarded: int
    fit_wasted: int
    fit_read_online: int
    fit_lost: int
    held_forwarded: int
    held_wasted: int
    held_read_online: int
    held_lost: int
    messages: int
    """Messages of the whole device; `agreed` says how many of them the model of the live policies
    treats as the log does."""
    agreed: int
    memory: str
    """What the candidate knew at the end, as JSON; empty for the live policy."""


def tune(
    rows: Sequence[ReplayRow],
    *,
    fit: Micros,
    split: Micros,
    candidates: Sequence[Forwarding] = CANDIDATES,
) -> list[Score]:
    """Return the scores of a device: of the messages accepted before `fit`, from then on, and from
    `split` on."""
    given = moments(rows)
    accepted = {row.msg: row.t for row in rows if row.kind == Kind.ACCEPTED}
    on_line = estimate(given, lambda _, terms: decider(ON_LINE, terms.as_subscription()))
    span = (given[-1].at - given[0].at) / DAY if given else 0.0
    reads = {topic: [row for row in rows if _looked(row, topic)] for topic in on_line}
    audited = audit(rows)
    found: list[Score] = []
    histories = {LIVE: (as_logged(rows, on_line), dict[str, Policy]())}
    for number, candidate in enumerate(candidates):
        histories[number] = _tried(given, candidate)
    for topic, best in on_line.items():
        segment = _segment(reads[topic], span)
        for number, (history, policies) in histories.items():
            parts = [
                counts(history[topic], best, accepted, since, until)
                for since, until in ((None, fit), (fit, split), (split, None))
            ]
            memory = ""
            if topic in policies:
                memory = msgspec.json.encode(_rounded(memory_of(policies[topic]))).decode()
            first, second, held = parts
            found.append(
                Score(
                    *(topic, segment, number, len(reads[topic]), *first, *second, *held),
                    *(audited.messages, audited.agreed, memory),
                )
            )
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

    # The log may begin after a message that it says was read.
    forwarded = {key for key in history.forwarded if key in accepted and within(key)}
    read = {key for key in history.read if key in accepted and within(key)}
    online = {key for key in best.read if within(key)}
    return len(forwarded), len(forwarded - read), len(online), len(online - read)


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, DIGITS)
    if isinstance(value, dict):
        return {name: _rounded(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_rounded(item) for item in value]
    return value
