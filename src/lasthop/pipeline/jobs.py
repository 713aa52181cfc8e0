"""The batch job: bronze grows, the days that it touched are made again in silver and gold, all else
stays.

Which days a run has to make follows from the files of bronze alone, so that a run that was killed
is simply run again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date, timedelta
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession, functions as fn

from lasthop.clock import Micros
from lasthop.errors import Conflict
from lasthop.events import Kind
from lasthop.pipeline import silver
from lasthop.pipeline.audit import NAMED, Agreed, agreed, counted, orphans
from lasthop.pipeline.bronze import (
    EVENTS as BRONZE_EVENTS,
    Ingested,
    Ingestion,
    fingerprint,
    foreign_files,
    quarantined,
    read_events,
)
from lasthop.pipeline.gold import (
    calendar,
    channels,
    energy,
    heartbeat,
    last_hop,
    quality,
    reading,
    usage as spending,
)
from lasthop.pipeline.ids import ID, clashes, days_with_copies, offsets
from lasthop.pipeline.lake import FORMAT, Lake
from lasthop.pipeline.silver import DELIVERY
from lasthop.pipeline.stores import ASIDE, identified, joined, seen
from lasthop.pipeline.together import Begin, together

Say = Callable[[str], None]

LATENESS = 1
"""How many days before the newest one the stream makes again as events come in. Older days are
counted as late, and left for the next batch."""


@dataclass(slots=True)
class RunOutcome:
    """What one run of the pipeline did, and what it found."""

    ingested: Ingested = field(default_factory=Ingested)
    days: list[str] = field(default_factory=list)
    """Days that the run has made again."""
    late_days: list[str] = field(default_factory=list)
    """Days that were left for the next batch."""
    seconds: dict[str, float] = field(default_factory=dict)
    rows: dict[str, int] = field(default_factory=dict)
    duplicates: int = 0
    problems: dict[str, int] = field(default_factory=dict)
    foreign_files: list[str] = field(default_factory=list)
    missing_offsets: int = 0
    gaps: dict[str, int] = field(default_factory=dict)
    """How many offsets never came, by store; the largest gaps."""
    orphans: int = 0
    """Events of deliveries whose beginning is not in the log."""
    agreement: Agreed = field(default_factory=Agreed)
    """How well the model of the live policies agrees with the log."""


SILVER = {
    "events": silver.EVENTS,
    "deliveries": silver.DELIVERIES,
    "reads": silver.READS,
    "contacts": silver.CONTACTS,
    "heartbeats": silver.HEARTBEATS,
    "rank_changes": silver.RANK_CHANGES,
}

GOLD = {
    "delivery_quality": quality.DELIVERY_QUALITY,
    "channels": channels.CHANNELS,
    "usage": spending.USAGE,
    "energy": energy.ENERGY,
    "last_hop": last_hop.LAST_HOP,
    "agreement": last_hop.AGREEMENT,
    "limits": spending.LIMITS,
    "read_profiles": reading.READ_PROFILES,
    "link_hours": calendar.LINK_HOURS,
    "link_calendar": calendar.LINK_CALENDAR,
    "survival": heartbeat.SURVIVAL,
    "best_intervals": heartbeat.BEST_INTERVALS,
}

OPERATIONAL = ("delivery_quality", "channels", "usage", "energy")
"""Tables that are made day by day, and kept up to date by the stream."""


class Pipeline:
    """A lake, and the log that its tables are made from."""

    def __init__(
        self, spark: SparkSession, log: Path, lake: Lake, *, say: Say = lambda line: None
    ) -> None:
        self.spark = spark
        self.log = log
        self.lake = lake
        self._say = say
        self.outcome = RunOutcome()

    def run(self, *, counterfactual: bool = True) -> RunOutcome:
        """Make bronze, silver and gold from everything that is in the log, once."""
        with self.lake.locked():
            with self._timed("bronze"):
                self.outcome.ingested = Ingestion(self.spark, self.log, self.lake).run()
            self.identify()
            days = self.changed()
            self.check_offsets()
            if days:
                with self._timed("silver"):
                    starts = self.make_silver(days)
                with self._timed("gold"):
                    self.make_gold(starts, days)
                with self._timed("profiles"):
                    self.make_profiles(counterfactual=counterfactual)
                self.settle(days)
            self.outcome.days = [day.isoformat() for day in days]
            with self._timed("audit"):
                self.audit()
        return self.outcome

    def prepare(self) -> list[date]:
        """Bring the tables up to date from which policies are learned. The next run makes the other
        tables, and these days again."""
        with self.lake.locked():
            self.outcome.ingested = Ingestion(self.spark, self.log, self.lake).run()
            self.identify()
            days = self.changed()
            self.check_offsets()
            if days:
                events = self._make_events(days)
                with together() as begin:
                    self._derive(begin, events, {"heartbeats": silver.heartbeats}, days)
                    begin(self._make_contacts, events, days)
        return days

    def changed(self) -> list[date]:
        """Return the days of bronze that have changed since silver was made from them."""
        state = self.lake.state()
        found = set(state.pending)
        for day in self.lake.path("bronze", BRONZE_EVENTS).glob("date=*"):
            name = day.name.removeprefix("date=")
            if state.format != FORMAT or state.bronze.get(name) != fingerprint(day):
                found.add(name)
        return sorted(map(date.fromisoformat, found))

    def identify(self) -> None:
        """Find out whose the new events of bronze are. If they tell more about the store of earlier
        events, all days have to be made again."""
        days = self.changed()
        if not days:
            return
        state = self.lake.state()
        new = read_events(self.spark, self.lake).where(fn.col("date").isin(*days))
        owners = joined(state.owners, seen(new))
        stores = {(owner.log, owner.gateway): owner.store for owner in owners}
        renamed = any(stores[was.log, was.gateway] != was.store for was in state.owners)
        if renamed or state.format != FORMAT:
            every = self.lake.dates("bronze", BRONZE_EVENTS)
            state.pending = [day.isoformat() for day in every]
        state.owners, state.format = owners, FORMAT
        self.lake.remember(state)

    def bronze(self) -> DataFrame:
        """Return all events of bronze, with their stores."""
        return identified(read_events(self.spark, self.lake), self.lake.state().owners)

    def check_offsets(self) -> None:
        """Count the offsets that never came; refuse a log in which a store has given out an offset
        twice: its events are those of several gateways."""
        stores = offsets(self.bronze())
        sums = stores.agg(fn.sum("missing").alias("missing"), fn.sum("twice").alias("twice"))
        found = sums.first()
        if found is None or found["missing"] is None:
            return
        if found["twice"]:
            worst = stores.orderBy(fn.desc("twice")).first()
            assert worst is not None
            raise Conflict(
                f"the log has different events with the same number: {ASIDE}",
                store=worst["store"],
                numbers=worst["twice"],
            )
        self.outcome.missing_offsets = int(found["missing"])
        if found["missing"]:
            gaps = stores.where("missing > 0").orderBy(fn.desc("missing"), "store").limit(NAMED)
            self.outcome.gaps = {row["store"]: row["missing"] for row in gaps.collect()}

    def make_silver(self, days: list[date]) -> list[date]:
        """Make these days of silver again; return the days on which the deliveries began that they
        mention."""
        events = self._make_events(days)
        made = {
            "reads": silver.reads,
            "heartbeats": silver.heartbeats,
            "rank_changes": silver.rank_changes,
        }
        with together() as begin:
            self._derive(begin, events, made, days)
            begin(self._make_contacts, events, days)
            starts = self._starts(events, days)
            self._make_deliveries(events, starts)
        return starts

    def _make_deliveries(self, events: DataFrame, starts: list[date]) -> None:
        """Make the deliveries that began on these days."""
        since = events.where(fn.col("date") >= min(starts))
        begun = since
        if len(starts) < len(self.lake.dates("silver", "events")):
            keys = (
                since.where((fn.col("kind") == Kind.ACCEPTED) & fn.col("date").isin(*starts))
                .select(*DELIVERY)
                .distinct()
            )
            begun = since.join(keys, [*DELIVERY], "left_semi")
        self._write(
            silver.deliveries(begun).where(fn.col("date").isin(*starts)), "deliveries", starts
        )

    def _make_events(self, days: list[date]) -> DataFrame:
        """Make the events of these days again, and return all events."""
        state = self.lake.state()
        state.pending = sorted({*state.pending, *(day.isoformat() for day in days)})
        self.lake.remember(state)
        bronze = self.bronze().where(fn.col("date").isin(*days))
        # The result has at most as many rows as there are days.
        copied = [row["date"] for row in days_with_copies(bronze).collect()]
        if copied:
            self._refuse_clashes(bronze.where(fn.col("date").isin(*copied)))
        self._write(silver.events(bronze, copied=copied), "events", days)
        return self.silver("events")

    def _refuse_clashes(self, events: DataFrame) -> None:
        found = clashes(events).orderBy(*ID).first()
        if found is not None:
            raise Conflict(
                f"the log has different events with the same number: {ASIDE}",
                store=found["store"],
                number=found["n"],
            )

    def _derive(
        self,
        begin: Begin,
        events: DataFrame,
        tables: Mapping[str, Callable[[DataFrame], DataFrame]],
        days: list[date],
    ) -> None:
        """Make the tables of which a day depends on the events of that day alone."""
        today = events.where(fn.col("date").isin(*days))
        for name, make in tables.items():
            # Each row comes from one event, so the rows are already ordered by day like the events.
            begin(self._write, make(today), name, days, gathered=False)

    def _make_contacts(self, events: DataFrame, days: list[date]) -> None:
        """Make the contacts that began on these days, or had not ended before them."""
        contact_days = self._contact_days(days)
        met = events.where(fn.col("date") >= min(contact_days))
        self._write(
            silver.contacts(met).where(fn.col("date").isin(*contact_days)),
            "contacts",
            contact_days,
        )

    def _starts(self, events: DataFrame, days: list[date]) -> list[date]:
        """Return these days, and the days of acceptance of the deliveries that their events belong
        to."""
        known = self.lake.dates("silver", "events")
        if set(known) <= set(days):
            return sorted(set(days))
        told = (
            events.where(fn.col("date").isin(*days) & (fn.col("msg") != 0))
            .select(*DELIVERY)
            .distinct()
        )
        # The result has as many rows as there are days.
        began = (
            events.where((fn.col("kind") == Kind.ACCEPTED) & (fn.col("date") <= max(days)))
            .select(*DELIVERY, "date")
            .join(told, [*DELIVERY], "left_semi")
            .select("date")
            .distinct()
            .collect()
        )
        return sorted({*days, *(row["date"] for row in began)})

    def _contact_days(self, days: list[date]) -> list[date]:
        """Return these days, and those on which a contact began that has not ended."""
        contacts = self.silver("contacts").where(fn.col("ended_at").isNull())
        unfinished = contacts.select("date").distinct().collect()
        return sorted({*days, *(row["date"] for row in unfinished)})

    def make_gold(self, starts: list[date], days: list[date]) -> None:
        """Make the tables of gold that are made day by day."""
        events = self.silver("events").where(fn.col("date").isin(*days))
        deliveries = self.silver("deliveries")
        begun = deliveries.where(fn.col("date").isin(*starts))
        recent = deliveries.where(fn.col("date") <= max(days))
        with together() as begin:
            begin(self._gold_days, quality.delivery_quality(begun), "delivery_quality", starts)
            begin(self._gold_days, channels.channels(events), "channels", days)
            begin(self._gold_days, spending.usage(events, recent), "usage", days)
            begin(self._gold_days, energy.energy(events), "energy", days)

    def make_profiles(self, *, counterfactual: bool = True) -> None:
        """Make the tables of gold that look at the whole log."""
        events, deliveries = self.silver("events"), self.silver("deliveries")
        until = self.end_of_log()
        with together() as begin:
            if counterfactual:
                begin(self._make_last_hop, events, deliveries)
            begin(self._make_intervals)
            begin(self._make_calendar, events, until)
            profiles = reading.read_profiles(
                self.silver("reads"), deliveries, self.silver("rank_changes"), until=until
            )
            begin(self._gold, profiles, "read_profiles")
            begin(self._gold, spending.limits(self.gold("usage"), events), "limits")

    def _make_last_hop(self, events: DataFrame, deliveries: DataFrame) -> None:
        replayed = last_hop.replayed(events).persist()
        try:
            self._gold(last_hop.agreement(replayed), "agreement")
            on_line = last_hop.read_on_line(replayed)
            frame = last_hop.last_hop(deliveries, on_line, last_hop.feeds(events))
            self._gold_days(frame, "last_hop", self.lake.dates("silver", "deliveries"))
        finally:
            replayed.unpersist()

    def _make_intervals(self) -> None:
        heartbeats = self.silver("heartbeats")
        self._gold(heartbeat.survival(heartbeats), "survival")
        self._gold(heartbeat.best_intervals(self.gold("survival"), heartbeats), "best_intervals")

    def _make_calendar(self, events: DataFrame, until: Micros) -> None:
        hours = calendar.link_hours(self.silver("contacts"), calendar.zones(events), until=until)
        self._gold(hours, "link_hours")
        self._gold(calendar.link_calendar(self.gold("link_hours")), "link_calendar")

    def settle(self, days: list[date]) -> None:
        """Note that silver and gold now contain these days as bronze has them."""
        state = self.lake.state()
        path = self.lake.path("bronze", BRONZE_EVENTS)
        for day in days:
            state.bronze[day.isoformat()] = fingerprint(path / f"date={day.isoformat()}")
        done = {day.isoformat() for day in days}
        state.pending = [day for day in state.pending if day not in done]
        state.runs += 1
        self.lake.remember(state)

    def end_of_log(self) -> int:
        """Return the newest time in silver, which is on its last day; 0 if silver is empty."""
        days = self.lake.dates("silver", "events")
        if not days:
            return 0
        last = self.silver("events").where(fn.col("date") == days[-1])
        newest = last.agg(fn.max("t").alias("t")).first()
        return int(newest["t"] or 0) if newest is not None else 0

    def audit(self) -> None:
        """Count bad lines, foreign files, missing offsets and orphans, for the outcome."""
        outcome = self.outcome
        outcome.foreign_files = [str(path) for path in foreign_files(self.log)]
        outcome.problems = {
            row["problem"]: row["lines"]
            for row in quarantined(self.spark, self.lake)
            .groupBy("problem")
            .agg(fn.sum("lines").alias("lines"))
            .collect()
        }
        outcome.rows = counted(
            {
                **{f"silver.{name}": self.silver(name) for name in SILVER},
                **{f"gold.{name}": self.gold(name) for name in GOLD},
                "bronze.events": read_events(self.spark, self.lake),
            }
        )
        outcome.duplicates = outcome.rows["bronze.events"] - outcome.rows["silver.events"]
        outcome.orphans = orphans(self.silver("events"), self.silver("deliveries"))
        outcome.agreement = agreed(self.gold("agreement"))

    def silver(self, name: str) -> DataFrame:
        """Return a table of silver as it is now."""
        return self.lake.read(self.spark, "silver", name, SILVER[name])

    def gold(self, name: str) -> DataFrame:
        """Return a table of gold as it is now."""
        schema = GOLD[name]
        return self.lake.read(self.spark, "gold", name, schema, dated="date" in schema.names)

    def _write(
        self, frame: DataFrame, name: str, days: list[date], *, gathered: bool = True
    ) -> None:
        self._say(f"silver.{name}")
        self.lake.replace_days(frame, "silver", name, days, gathered=gathered)

    def _gold_days(self, frame: DataFrame, name: str, days: list[date]) -> None:
        self._say(f"gold.{name}")
        self.lake.replace_days(frame, "gold", name, days)

    def _gold(self, frame: DataFrame, name: str) -> None:
        self._say(f"gold.{name}")
        self.lake.replace(frame, "gold", name)

    @contextmanager
    def _timed(self, stage: str) -> Iterator[None]:
        began = time.monotonic()
        yield
        self.outcome.seconds[stage] = round(time.monotonic() - began, 3)


def late(days: list[date], *, newest: date | None) -> tuple[list[date], list[date]]:
    """Return the days that a stream makes at once, and those that it leaves for the next batch."""
    if newest is None:
        return [], []
    oldest = newest - timedelta(days=LATENESS)
    return [day for day in days if day >= oldest], [day for day in days if day < oldest]
