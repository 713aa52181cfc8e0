"""Which ids came, against counting them one by one."""

from __future__ import annotations

from collections import Counter
from datetime import date, timedelta
from random import Random

from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from lasthop.events import Kind
from lasthop.pipeline.ids import ID, clashes, days_with_copies, offsets
from lasthop.pipeline.schema import STORED_EVENT
from tests.pipeline.rows import TODAY, History

Id = tuple[date, str, int, int]


def ids() -> list[Id]:
    """Logs of many gateways, each with gaps or copies or neither, around the ends of blocks."""
    draw = Random(5)
    rows: list[Id] = []
    for number in range(80):
        first, length = draw.choice((0, 1, 62, 63, 64, 2**40 - 3)), draw.randint(1, 150)
        numbers = [*range(first, first + length)]
        if number % 2:
            numbers = sorted(draw.sample(numbers, max(1, length * 3 // 4)))
        for n in numbers:
            day = TODAY + timedelta(days=number % 40)
            boot = 1 if n < first + 70 else 2
            copies = 2 if number % 5 == 0 and not draw.randrange(10) else 1
            rows += [(day, f"gw-{number}", boot, n)] * copies
    # The same number of another boot is another event, and no copy.
    rows += [(TODAY + timedelta(days=50), "again", boot, 7) for boot in (1, 2)]
    draw.shuffle(rows)
    return rows


def test_copies_and_gaps_are_those_of_counting_one_by_one(spark: SparkSession) -> None:
    rows = ids()
    named = StructType([STORED_EVENT[name] for name in ("date", *ID)])
    events = spark.createDataFrame(rows, named)
    copied = {row["date"] for row in days_with_copies(events.repartition(3)).collect()}
    assert copied == {day for (day, *_), times in Counter(rows).items() if times > 1}
    assert copied
    assert len(copied) < 40
    found = {row["store"]: (row["missing"], row["twice"]) for row in offsets(events).collect()}
    for gateway in {gw for _, gw, _, _ in rows}:
        seen = {n for _, gw, _, n in rows if gw == gateway}
        twice = len({row for row in rows if row[1] == gateway}) - len(seen)
        assert found[gateway] == (max(seen) - min(seen) + 1 - len(seen), twice), gateway
    assert found["again"] == (0, 1)


def test_offsets_that_never_came_are_counted(spark: SparkSession) -> None:
    history = History()
    for _ in range(6):
        history.tell(Kind.REGISTERED)
    del history.events[2:4]
    (row,) = offsets(history.frame(spark)).collect()
    assert (row["first"], row["last"], row["events"], row["missing"]) == (0, 5, 4, 2)


def test_events_that_differ_are_no_copies(spark: SparkSession) -> None:
    history = History()
    for dev in ("a", "b", "c"):
        history.tell(Kind.REGISTERED, dev=dev)
    other = History()
    for dev in ("a", "x"):
        other.tell(Kind.REGISTERED, dev=dev)
    both = history.frame(spark).unionByName(other.frame(spark))
    assert [tuple(row) for row in clashes(both).collect()] == [("gw", 1, 1)]
