"""The energy that messaging takes from a battery: a model of the radio, and Odin's efficiency
index.

Nothing here is measured with a meter. A radio draws its full power while it transfers and for a
tail afterwards, and little otherwise; how long that was follows from the events.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, Window, functions as fn

from lasthop.clock import DAY, MILLISECOND, SECOND
from lasthop.events import Kind
from lasthop.pipeline.schema import conform, ratio
from lasthop.pipeline.silver import DAY as DATE, NUMBER, REAL, TEXT, table


@dataclass(frozen=True, slots=True)
class Radio:
    """The radio of one technology: milliwatts while awake (figure 2.1 of the McGill thesis) and
    asleep, and how long it stays awake after the last byte."""

    awake: float
    asleep: float
    tail: int


RADIOS = {
    "wifi": Radio(1000, 20, 250 * MILLISECOND),
    "bluetooth": Radio(120, 5, 100 * MILLISECOND),
    "sms": Radio(600, 10, 4 * SECOND),
    "mno": Radio(1500, 10, 12 * SECOND),
}
OTHER = RADIOS["mno"]
"""The radio that is assumed for an unknown link: the one with the highest power."""

BASE = 25.0
"""Milliwatts of a device that does nothing."""

BATTERY = 5600.0
"""Milliwatt-hours of a battery: a phone of the time of the measurements (1,500 mAh at 3.7 V)."""

ENERGY = table(
    app=TEXT,
    dev=TEXT,
    link=TEXT,
    transfers=NUMBER,
    awake=NUMBER,
    milliwatts=REAL,
    operational_hours=REAL,
    idle_hours=REAL,
    efficiency=REAL,
    date=DATE,
)

ACTIVE = (Kind.TRANSMITTED, Kind.HEARTBEAT, Kind.CONTACT_STARTED, Kind.READ, Kind.RECEIVED)
"""Kinds of events that wake a radio, if they name a link."""


def energy(events: DataFrame) -> DataFrame:
    """Apply the model to every device, link and day on which the link was used.

    - **awake**: microseconds that the radio was awake: every use keeps it so for a tail, and uses
      within a tail of one another share it.
    - **operational hours**: how long a battery would last at the day's mean power; **idle hours**:
      how long if nothing was transferred.
    - **efficiency**: Odin's index (section 5.2.4) in our reading, since the paper's formula lost
      its operators: (T_operational / max T_operational) / (T_idle / max T_idle), divided by the
      largest such value of the day, so that it lies between 0 and 1.

    This takes one shuffle by device and day, and one by day for the maxima of a few numbers.
    """
    tail = _of_link(lambda radio: radio.tail)
    use = Window.partitionBy("date", "app", "dev", "link").orderBy("t", "n")
    gap = fn.lead("t").over(use) - fn.col("t")
    used = (
        events.where(fn.col("kind").isin(*ACTIVE) & (fn.col("link") != ""))
        .select("date", "app", "dev", "link", "t", "n", tail.alias("tail"))
        .withColumn("awake", fn.least(fn.coalesce(gap, "tail"), "tail"))
        .groupBy("date", "app", "dev", "link")
        .agg(fn.count("*").alias("transfers"), fn.sum("awake").alias("awake"))
    )
    share = fn.least(fn.col("awake") / DAY, fn.lit(1.0))
    idle = BASE + _of_link(lambda radio: radio.asleep)
    more = _of_link(lambda radio: radio.awake) - _of_link(lambda radio: radio.asleep)
    day = Window.partitionBy("date")
    relative = ratio(
        fn.col("operational_hours") / fn.max("operational_hours").over(day),
        fn.col("idle_hours") / fn.max("idle_hours").over(day),
    )
    rows = (
        used.withColumn("milliwatts", idle + more * share)
        .withColumn("operational_hours", BATTERY / fn.col("milliwatts"))
        .withColumn("idle_hours", BATTERY / idle)
        .withColumn("relative", relative)
        .withColumn("efficiency", fn.col("relative") / fn.max("relative").over(day))
    )
    return conform(rows, ENERGY)


def _of_link(what: object) -> Column:
    assert callable(what)
    chosen = fn.when(fn.lit(False), fn.lit(None))
    for label, radio in RADIOS.items():
        chosen = chosen.when(fn.col("link") == label, fn.lit(what(radio)))
    return chosen.otherwise(fn.lit(what(OTHER)))
