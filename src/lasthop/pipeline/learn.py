"""From gold to policies: which forwarding policy suits each device and topic, and what to fall back
on.

The choice wastes least under a budget of loss, which an app sets; without one it may lose as much
as the predictive policy with its defaults, which needs no pipeline. At a price for each lost
message every device has a best candidate, and the lowest price is taken at which the app stays
within its budget, on days that the choice had not seen.

Devices that were observed for long enough get a choice of their own. The others share the choice of
their segment; new devices and new topics share that of the fleet. Nothing is learned from a device
whose log the model of its live policy does not reproduce. A version says which days it comes from
and what it achieved on the last part of them, beside the live policy and the predictive one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta, timezone
from typing import Any, NamedTuple

import msgspec
from pyspark.sql import Column, DataFrame, Window, functions as fn
from pyspark.sql.types import StructType

from lasthop import __version__
from lasthop.clock import Micros
from lasthop.decision.volume.policy_choice import DEFAULT_POLICY
from lasthop.errors import Conflict, NotFound
from lasthop.pipeline.audit import NAMED, TRUSTED
from lasthop.pipeline.gold import calendar, heartbeat
from lasthop.pipeline.gold.last_hop import by_device
from lasthop.pipeline.jobs import Pipeline
from lasthop.pipeline.replay import ReplayRow
from lasthop.pipeline.silver import NUMBER, TEXT, table
from lasthop.pipeline.tuning import (
    BASELINE,
    CANDIDATES,
    ENOUGH_READS,
    LIVE,
    SURE_READS,
    Score,
    tune,
)
from lasthop.policy import (
    FORMAT,
    LONGEST_INTERVAL,
    SHORTEST_INTERVAL,
    Calendar,
    DevicePolicy,
    Forwarding,
    Lineage,
    Policies,
    TopicPolicy,
)

HELD_OUT = 0.2
"""The share of the days, the last ones, on which the choice of a policy is judged. As many days
before them show how much is lost at which price."""

PRICES = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)
"""How many wasted messages one lost message may be worth, from an app that does not mind to one
that minds nothing else."""

AGAINST = {"live_": LIVE, "predictive_": BASELINE}
"""What a version is compared with on the held-out days: the policy in force, and the predictive
policy with its defaults from the first day on."""

EVERY_APP = ""
"""The key of the budget for all apps that have none of their own."""

FEW_DAYS = 2
"""A log of no more days than this is not split between days: the last fifth of a young log may be
minutes."""

SCORES: StructType = table(
    store=TEXT,
    app=TEXT,
    dev=TEXT,
    topic=TEXT,
    segment=TEXT,
    candidate=NUMBER,
    reads=NUMBER,
    forwarded=NUMBER,
    wasted=NUMBER,
    read_online=NUMBER,
    lost=NUMBER,
    fit_forwarded=NUMBER,
    fit_wasted=NUMBER,
    fit_read_online=NUMBER,
    fit_lost=NUMBER,
    held_forwarded=NUMBER,
    held_wasted=NUMBER,
    held_read_online=NUMBER,
    held_lost=NUMBER,
    messages=NUMBER,
    agreed=NUMBER,
    memory=TEXT,
)

DEVICE = ("store", "app", "dev", "topic")
"""The columns that identify a topic of a device."""

COUNTS = ("forwarded", "wasted", "read_online", "lost")

PARTS = ("", "fit_")
"""The parts of the days that a choice is made on, once its price is known."""

LEAST_IN_A_SEGMENT = 5
"""The least number of devices in a segment; a smaller segment uses the choice of the fleet."""


class FittedPrice(NamedTuple):
    """What a lost message is worth to an app, in wasted messages."""

    price: float
    budget: float
    """The share of messages that may be lost."""
    within: bool
    """Whether the choices at this price stay within the budget; at no price otherwise."""


@dataclass(frozen=True, slots=True)
class DaySpan:
    """Days of the log, both included, and where their last parts begin."""

    first: date
    last: date

    @property
    def split(self) -> date:
        """The first of the days on which the choice is judged."""
        return self.last - timedelta(days=self._part - 1)

    @property
    def fit(self) -> date:
        """The first of the days on which prices are fitted."""
        return self.split - timedelta(days=self._part)

    @property
    def _part(self) -> int:
        return max(1, round(((self.last - self.first).days + 1) * HELD_OUT))


def micros_of(day: date) -> Micros:
    """Return the first moment of a UTC day, in microseconds."""
    moment = datetime.combine(day, time(), timezone(timedelta()))
    return int(moment.timestamp()) * 1_000_000


def splits_of(events: DataFrame, span: DaySpan) -> tuple[Micros, Micros]:
    """Return the time from which on the log is used to fit prices, and the time from which on it is
    only used to judge the choice of a policy."""
    if (span.last - span.first).days >= FEW_DAYS:
        return micros_of(span.fit), micros_of(span.split)
    ends = events.agg(fn.min("t").alias("first"), fn.max("t").alias("last")).first()
    if ends is None or ends["first"] is None:
        return micros_of(span.fit), micros_of(span.split)
    first, last = int(ends["first"]), int(ends["last"])
    part = round(HELD_OUT * (last - first))
    return last - 2 * part, last - part


def scores(events: DataFrame, span: DaySpan) -> DataFrame:
    """Return the score of every candidate on every device and topic; one shuffle by device."""
    first, split = splits_of(events, span)

    def work(app: str, dev: str, rows: list[ReplayRow]) -> dict[str, list[Any]]:
        found = tune(rows, fit=first, split=split)
        return {name: [getattr(score, name) for score in found] for name in Score._fields}

    of_feeds = events.where(fn.col("date").between(span.first, span.last))
    return by_device(of_feeds, work, SCORES)


def chosen_at(scores: DataFrame, price: Column, *keys: str, parts: Sequence[str]) -> DataFrame:
    """Return the candidate of each group of keys that wastes least at this price of a lost message,
    over these parts of the days; one shuffle by keys."""
    wasted, lost = (
        sum((fn.col(f"{part}{name}") for part in parts), fn.lit(0)) for name in ("wasted", "lost")
    )
    order = Window.partitionBy(*keys).orderBy(wasted + price * lost, "candidate")
    return scores.withColumn("place", fn.row_number().over(order)).where("place = 1").drop("place")


def fitted_prices(scores: DataFrame, budgets: Mapping[str, float]) -> dict[str, FittedPrice]:
    """Return the price of a lost message for each app: the lowest at which the choices made on the
    first part of the days stay within the app's budget on the second. One shuffle by device and
    one by app; the result has a row for each app and price."""
    sums = [fn.sum(f"fit_{name}").alias(name) for name in ("lost", "read_online")]
    tried = scores.where((fn.col("candidate") != LIVE) & (fn.col("reads") >= ENOUGH_READS)).drop(
        "memory", "segment"
    )
    at_prices = tried.withColumn("price", fn.explode(fn.array(*map(fn.lit, PRICES))))
    chosen = chosen_at(at_prices, fn.col("price"), "price", *DEVICE, parts=[""])
    rows = chosen.groupBy("app", "price").agg(*sums)
    base = tried.where(fn.col("candidate") == BASELINE).groupBy("app").agg(*sums)
    found: dict[str, FittedPrice] = {}
    for row in base.toLocalIterator():
        budget = budgets.get(row["app"], budgets.get(EVERY_APP, _loss(row)))
        found[row["app"]] = FittedPrice(PRICES[-1], budget, within=False)
    for row in rows.orderBy(fn.desc("price")).toLocalIterator():
        fitted = found[row["app"]]
        if _loss(row) <= fitted.budget:
            found[row["app"]] = FittedPrice(row["price"], fitted.budget, within=True)
    return found


def _loss(row: Any) -> float:
    return float(row["lost"] / row["read_online"]) if row["read_online"] else 0.0


def price_of(prices: Mapping[str, FittedPrice]) -> Column:
    """Return the price of a row's app; 1 for an app that has no device with enough reads."""
    price = fn.lit(1.0)
    for app, fitted in prices.items():
        price = fn.when(fn.col("app") == app, fitted.price).otherwise(price)
    return price


def shared_choices(scores: DataFrame, price: Column, *keys: str) -> DataFrame:
    """Return the best candidate over all devices with the same keys, and the number of these
    devices."""
    counted = scores.where(fn.col("candidate") != LIVE).groupBy(*keys, "candidate")
    sums = counted.agg(
        *(fn.sum(f"{part}{name}").alias(f"{part}{name}") for part in PARTS for name in COUNTS),
        fn.count_distinct("app", "dev").alias("devices"),
        fn.sum("reads").alias("reads"),
    )
    return chosen_at(sums, price, *keys, parts=PARTS)


def learn(
    pipeline: Pipeline,
    span: DaySpan,
    *,
    made_at: Micros,
    note: str = "",
    budgets: Mapping[str, float] | None = None,
) -> Policies:
    """Learn a version of the policies from the events of these days.

    `budgets` has the share of messages that an app may lose, by app; `EVERY_APP` is for all others.
    """
    events = pipeline.silver("events").where(fn.col("date").between(span.first, span.last))
    every = scores(events, span).persist()
    try:
        total = events.count()
        if not total:
            raise NotFound("the log has no events of these days", first=span.first, last=span.last)
        found, agreement, refused = trusted_scores(every)
        prices = fitted_prices(found, budgets or {})
        price = price_of(prices)
        devices, held_out = _of_devices(found, price)
        segments = [
            TopicPolicy(row["app"], row["segment"], row["topic"], _chosen(row))
            for row in shared_choices(found, price, "app", "segment", "topic").toLocalIterator()
            if row["devices"] >= LEAST_IN_A_SEGMENT
        ]
        fleet = [
            TopicPolicy(row["app"], "", row["topic"], _chosen(row))
            for these in (found, found.withColumn("topic", fn.lit("")))
            for row in shared_choices(these, price, "app", "topic").toLocalIterator()
        ]
        about = _about(pipeline, found, span)
        return Policies(
            FORMAT,
            "draft",
            Lineage(
                code=__version__,
                made_at=made_at,
                first_day=span.first.isoformat(),
                last_day=span.last.isoformat(),
                events=total,
                held_out=held_out | agreement,
                budgets={app: round(fitted.budget, 6) for app, fitted in prices.items()},
                over_budget=tuple(app for app, fitted in prices.items() if not fitted.within),
                refused=tuple(refused),
                note=note,
            ),
            default=Forwarding(policy=DEFAULT_POLICY),
            fleet=tuple(fleet),
            segments=tuple(segments),
            devices=tuple(devices),
            about=tuple(about),
            heartbeats=_heartbeats(pipeline, span),
        )
    finally:
        every.unpersist()


def trusted_scores(every: DataFrame) -> tuple[DataFrame, dict[str, float], list[str]]:
    """Return the scores of the devices whose log the model of their live policies reproduces; what
    share of all messages it reproduces, and how many devices are refused; and some of their
    names."""
    trusted = fn.col("agreed") >= fn.col("messages") * TRUSTED
    devices = every.select("store", "app", "dev", "messages", "agreed").distinct()
    sums = devices.agg(
        fn.sum("messages").alias("messages"),
        fn.sum("agreed").alias("agreed"),
        fn.count("*").alias("devices"),
        fn.count(fn.when(~trusted, 1)).alias("refused"),
    ).first()
    assert sums is not None
    share = sums["agreed"] / sums["messages"] if sums["messages"] else 1.0
    worst = devices.where(~trusted).orderBy(fn.col("agreed") / fn.col("messages"), "app", "dev")
    names = [f"{row['app']}/{row['dev']}" for row in worst.limit(NAMED).collect()]
    if sums["refused"] and sums["refused"] == sums["devices"]:
        raise Conflict(
            "nothing can be learned from this log: the model of the live policies does not do what"
            " the log says",
            agreement=f"{share:.2%}",
            devices=", ".join(names),
        )
    figures = {"agreement": round(share, 6), "refused": float(sums["refused"])}
    return every.where(trusted), figures, names


def _of_devices(found: DataFrame, price: Column) -> tuple[list[TopicPolicy], dict[str, float]]:
    """Return what suits each device, and what that achieved on the held-out part.

    The result has as many rows as the file will have: one process writes the file, and one reads
    it. A device that has been with several gateways gets what suits it where it read most.
    """
    sure = found.where(fn.col("reads") >= ENOUGH_READS)
    best = chosen_at(sure.where(fn.col("candidate") != LIVE), price, *DEVICE, parts=PARTS)
    most = Window.partitionBy("app", "dev", "topic").orderBy(fn.desc("reads"), "store")
    chosen = best.withColumn("place", fn.row_number().over(most)).where("place = 1")
    devices = []
    for row in chosen.toLocalIterator():
        memory = msgspec.json.decode(row["memory"]) if row["memory"] else {}
        forwarding = msgspec.structs.replace(_chosen(row), memory=memory)
        devices.append(TopicPolicy(row["app"], row["dev"], row["topic"], forwarding))
    judged = {"": best} | {
        prefix: sure.where(fn.col("candidate") == number) for prefix, number in AGAINST.items()
    }
    held_out: dict[str, float] = {}
    for prefix, frame in judged.items():
        held_out |= {f"{prefix}{name}": value for name, value in _figures(frame).items()}
    return devices, held_out


def _figures(scores: DataFrame) -> dict[str, float]:
    """Return waste and loss on the held-out days."""
    sums = scores.agg(*(fn.sum(f"held_{name}").alias(name) for name in COUNTS)).first()
    assert sums is not None
    forwarded, wasted, online, lost = (int(sums[name] or 0) for name in COUNTS)
    waste = wasted / forwarded if forwarded else 0.0
    loss = lost / online if online else 0.0
    figures = {"waste": waste, "loss": loss, "waste_and_loss": waste + loss}
    return {name: round(value, 6) for name, value in figures.items()}


def _chosen(row: Any) -> Forwarding:
    confidence = round(min(1.0, row["reads"] / SURE_READS), 3)
    candidate: Forwarding = CANDIDATES[row["candidate"]]
    return msgspec.structs.replace(candidate, confidence=confidence)


def _about(pipeline: Pipeline, found: DataFrame, span: DaySpan) -> list[DevicePolicy]:
    """Return segments and link calendars; as many rows as there are devices and links."""
    days = fn.col("date").between(span.first, span.last)
    until = micros_of(span.last + timedelta(days=1))
    events = pipeline.silver("events").where(days)
    hours = calendar.link_hours(
        pipeline.silver("contacts").where(days), calendar.zones(events), until=until
    )
    weeks: dict[tuple[str, str], tuple[str, dict[str, tuple[int, ...]]]] = {}
    for row in calendar.link_calendar(hours).toLocalIterator():
        percent = tuple(round(100 * chance) for chance in row["hours"])
        _, links = weeks.setdefault((row["app"], row["dev"]), (row["zone"], {}))
        links[row["link"]] = percent
    segments = found.groupBy("app", "dev").agg(fn.max_by("segment", "reads").alias("segment"))
    about = []
    for row in segments.toLocalIterator():
        zone, links = weeks.pop((row["app"], row["dev"]), ("UTC", {}))
        week = Calendar(zone, links) if links else None
        about.append(DevicePolicy(row["app"], row["dev"], row["segment"], week))
    for (app, dev), (zone, links) in weeks.items():
        about.append(DevicePolicy(app, dev, "", Calendar(zone, links)))
    return sorted(about, key=lambda device: (device.app, device.name))


def _heartbeats(pipeline: Pipeline, span: DaySpan) -> dict[str, Micros]:
    """Return the heartbeat interval of each network; the shortest if several links share its
    name."""
    beats = pipeline.silver("heartbeats").where(fn.col("date").between(span.first, span.last))
    best = heartbeat.best_intervals(heartbeat.survival(beats), beats)
    intervals: dict[str, Micros] = {}
    for row in best.orderBy("network").toLocalIterator():
        interval = min(max(int(row["interval"]), SHORTEST_INTERVAL), LONGEST_INTERVAL)
        intervals[row["network"]] = min(interval, intervals.get(row["network"], interval))
    return intervals
