"""What if another policy had been in force: the log replayed through the real feeds.

Contacts and reads are taken as given and what would have been sent is modelled, so that every
figure for another policy is an estimate and is called one. The live policy is also replayed as it
was, and must repeat every logged decision: that is what makes the estimates worth reading.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import sqrt
from statistics import NormalDist
from typing import Any

from pyspark.sql import DataFrame, functions as fn

from lasthop.decision.policies import POLICIES
from lasthop.errors import InvalidRequest
from lasthop.events import Kind
from lasthop.pipeline.gold.last_hop import by_device
from lasthop.pipeline.replay import (
    ON_LINE,
    ReplayRow,
    TopicHistory,
    as_logged,
    check,
    decider,
    estimate,
    moments,
)
from lasthop.pipeline.silver import NUMBER, REAL, TEXT, table
from lasthop.policy import Forwarding, Policies, PolicyIndex

LEVEL = 0.95
"""The confidence level of the confidence intervals."""

MEASURED = (
    "forwarded",
    "wasted",
    "read",
    "read_online",
    "lost",
    "bytes",
    "money",
    "waiting",
    "rank",
)
"""The sums for a device, as it was (`live_`) and as it would have been (`what_`)."""

COMPARED = table(
    store=TEXT,
    app=TEXT,
    dev=TEXT,
    decisions=NUMBER,
    same=NUMBER,
    difference=TEXT,
    **{f"live_{name}": REAL for name in MEASURED},
    **{f"what_{name}": REAL for name in MEASURED},
)

RATIOS = {
    "waste": ("wasted", "forwarded"),
    "loss": ("lost", "read_online"),
    "bytes_per_read": ("bytes", "read"),
    "money_per_read": ("money", "read"),
    "latency": ("waiting", "forwarded"),
    "rank_read": ("rank", "read"),
}
"""Ratios of sums. Latency is the time in microseconds from acceptance until a message was on the
device, of those that got there; `rank_read` is the mean rank of the messages that were read."""


@dataclass(frozen=True, slots=True)
class MeasuredFigure:
    """One measure of one policy, with its confidence interval over devices."""

    value: float
    low: float
    high: float


@dataclass(slots=True)
class PolicyComparison:
    """The comparison of a policy with the live one."""

    policy: str
    devices: int = 0
    decisions: int = 0
    reproduced: int = 0
    first_difference: str = ""
    live: dict[str, MeasuredFigure] = field(default_factory=dict)
    estimate: dict[str, MeasuredFigure] = field(default_factory=dict)
    difference: dict[str, MeasuredFigure] = field(default_factory=dict)
    totals: dict[str, dict[str, float]] = field(default_factory=dict)
    note: str = (
        "Figures under `estimate` are estimates: contacts and reads are those of the log, "
        "what would have been sent is modelled."
    )


def named(policy: str) -> Forwarding:
    """Return a policy by its name, with optional parameters: `predictive:price=2`."""
    name, _, settings = policy.partition(":")
    if name not in POLICIES:
        raise InvalidRequest("unknown policy", policy=name, known=", ".join(POLICIES))
    chosen: dict[str, Any] = {}
    for pair in filter(None, settings.split(",")):
        key, _, value = pair.partition("=")
        convert = {"price": float, "prefetch_limit": int, "expiration_threshold": int}.get(key)
        if convert is None:
            raise InvalidRequest(
                "no such setting of a policy: use price, prefetch_limit or expiration_threshold",
                setting=key,
            )
        try:
            chosen[key] = convert(value)
        except ValueError:
            raise InvalidRequest(
                "the setting of a policy is not a number", setting=key, value=value
            ) from None
    return Forwarding(policy=name, **chosen)


def compared(events: DataFrame, policy: Forwarding | Policies) -> DataFrame:
    """Return every device as it was and as it would have been; one shuffle by device."""

    index = PolicyIndex(policy) if isinstance(policy, Policies) else None

    def work(app: str, dev: str, rows: list[ReplayRow]) -> dict[str, list[Any]]:
        def forwarding(topic: str) -> Forwarding:
            if index is not None:
                return index.forwarding(app, dev, topic).forwarding
            assert isinstance(policy, Forwarding)
            return policy

        given = moments(rows)
        best = estimate(given, lambda _, terms: decider(ON_LINE, terms.as_subscription()))
        what = estimate(
            given, lambda topic, terms: decider(forwarding(topic), terms.as_subscription())
        )
        live = as_logged(rows, best)
        agreement = check(rows)
        measure = _Measure(rows, best)
        found: dict[str, list[Any]] = {
            "decisions": [agreement.decisions],
            "same": [agreement.same],
            "difference": [agreement.first_difference],
        }
        for prefix, histories in (("live", live), ("what", what)):
            for name, value in measure.of(histories).items():
                found[f"{prefix}_{name}"] = [value]
        return found

    return by_device(events, work, COMPARED)


class _Measure:
    """Adds up what a policy did on one device."""

    def __init__(self, rows: Sequence[ReplayRow], best: dict[str, TopicHistory]) -> None:
        self._messages = {row.msg: row for row in rows if row.kind == Kind.ACCEPTED}
        self._online = {topic: set(history.read) for topic, history in best.items()}
        sent = [row for row in rows if row.kind == Kind.TRANSMITTED and row.msg in self._messages]
        bodies = sum(self._messages[row.msg].size for row in sent)
        self._overhead = (sum(row.bytes for row in sent) - bodies) / max(1, len(sent))
        """Bytes that the protocol adds to a body, on average."""
        self._price: dict[str, float] = {}
        for link in {row.link for row in sent}:
            over = [row for row in sent if row.link == link]
            self._price[link] = sum(row.cost for row in over) / max(1, sum(r.bytes for r in over))

    def of(self, histories: dict[str, TopicHistory]) -> dict[str, float]:
        total = dict.fromkeys(MEASURED, 0.0)
        for topic, history in histories.items():
            online = self._online.get(topic, set())
            total["forwarded"] += len(history.forwarded)
            total["read"] += len(history.read)
            total["wasted"] += len(history.forwarded.keys() - history.read.keys())
            total["read_online"] += len(online)
            total["lost"] += len(online - history.read.keys())
            for key, at in history.forwarded.items():
                message = self._messages.get(key)
                if message is not None:
                    size = message.size + self._overhead
                    total["bytes"] += size
                    total["money"] += size * self._price.get(history.links.get(key, ""), 0.0)
                    total["waiting"] += at - message.t
            for key in history.read:
                if key in self._messages:
                    total["rank"] += self._messages[key].rank
        return total


def answer(events: DataFrame, policy: Forwarding | Policies, *, name: str) -> PolicyComparison:
    """Compare a policy with the live one, over all devices of the events.

    Ratios are of sums. Their intervals treat devices as independent: the variance of a ratio
    follows from how much each device deviates from it, and a difference is taken pairwise.
    """
    table = compared(events, policy).persist()
    try:
        sums = table.agg(
            fn.count("*").alias("devices"),
            fn.sum("decisions").alias("decisions"),
            fn.sum("same").alias("same"),
            fn.min(fn.when(fn.col("difference") != "", fn.col("difference"))).alias("difference"),
            *(fn.sum(column).alias(column) for column in COMPARED.names[6:]),
        ).first()
        result = PolicyComparison(name)
        if sums is None or not sums["devices"]:
            return result
        result.devices = int(sums["devices"])
        result.decisions, result.reproduced = int(sums["decisions"]), int(sums["same"])
        result.first_difference = sums["difference"] or ""
        for side, into in (("live", result.live), ("what", result.estimate)):
            result.totals["live" if side == "live" else "estimate"] = {
                measure: float(sums[f"{side}_{measure}"]) for measure in MEASURED
            }
            for ratio, (above, below) in RATIOS.items():
                value = _ratio(sums, side, above, below)
                into[ratio] = MeasuredFigure(value, value, value)
        spread = _spread(table, sums)
        z = NormalDist().inv_cdf((1 + LEVEL) / 2)
        for ratio in RATIOS:
            for side, into in (("live", result.live), ("what", result.estimate)):
                margin = z * spread[f"{side}_{ratio}"]
                value = into[ratio].value
                into[ratio] = MeasuredFigure(value, value - margin, value + margin)
            change = result.estimate[ratio].value - result.live[ratio].value
            margin = z * spread[f"both_{ratio}"]
            result.difference[ratio] = MeasuredFigure(change, change - margin, change + margin)
        return result
    finally:
        table.unpersist()


def _ratio(sums: Any, side: str, above: str, below: str) -> float:
    whole = float(sums[f"{side}_{below}"])
    return float(sums[f"{side}_{above}"]) / whole if whole else 0.0


def _spread(table: DataFrame, sums: Any) -> dict[str, float]:
    """Return the standard errors of all ratios and of their differences, in one pass."""
    devices = int(sums["devices"])
    deviations = {}
    for ratio, (above, below) in RATIOS.items():
        parts = {}
        for side in ("live", "what"):
            whole = float(sums[f"{side}_{below}"])
            value = _ratio(sums, side, above, below)
            residual = fn.col(f"{side}_{above}") - fn.lit(value) * fn.col(f"{side}_{below}")
            parts[side] = residual / whole if whole else fn.lit(0.0)
            deviations[f"{side}_{ratio}"] = parts[side]
        deviations[f"both_{ratio}"] = parts["what"] - parts["live"]
    row = table.agg(*(fn.sum(d * d).alias(name) for name, d in deviations.items())).first()
    assert row is not None
    correction = devices / (devices - 1) if devices > 1 else 1.0
    return {name: sqrt(max(0.0, float(row[name])) * correction) for name in deviations}
