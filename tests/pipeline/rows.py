"""Events and rows for small hand-made histories."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import msgspec
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from lasthop.clock import DAY, Micros
from lasthop.eventlog.segment import directory_of
from lasthop.events import SCHEMA_VERSION, Event, Kind
from lasthop.pipeline.schema import STORED_EVENT

NOON: Micros = 20_700 * DAY + 12 * 3600 * 1_000_000
"""2026-09-04, a Friday."""

TODAY = date(2026, 9, 4)


class History:
    """Writes events down, one after the other."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def tell(self, kind: Kind, t: Micros = NOON, **facts: Any) -> Event:
        """The next event; of the device `phone` unless another is named."""
        facts = {"app": "app", "dev": "phone", **facts}
        n = len(self.events)
        event = Event(SCHEMA_VERSION, "gw", 1, n, t, kind, **facts)
        self.events.append(event)
        return event

    def frame(self, spark: SparkSession) -> DataFrame:
        """As silver has them."""
        return frame(spark, STORED_EVENT, [as_row(event) for event in self.events])

    def write(self, log: Path) -> list[Path]:
        """As the gateway writes them: a segment a day."""
        return write_segments(log, self.events)


def as_row(event: Event) -> dict[str, Any]:
    """An event with all its fields and its date."""
    row = {name: getattr(event, name) for name in Event.__struct_fields__}
    row["keys"] = list(event.keys)
    row["store"] = event.incarnation or event.gw
    row["date"] = day(event.t)
    return row


def day(t: Micros) -> date:
    """The UTC day of a time."""
    return datetime.fromtimestamp(t / 1e6, UTC).date()


def frame(spark: SparkSession, schema: StructType, rows: Iterable[dict[str, Any]]) -> DataFrame:
    """Rows of a schema; what is not named is null."""
    names = schema.fieldNames()
    rows = list(rows)
    for row in rows:
        assert set(row) <= set(names), set(row) - set(names)
    return spark.createDataFrame([tuple(row.get(name) for name in names) for row in rows], schema)


def write_segments(log: Path, events: Iterable[Event]) -> list[Path]:
    """Segments of consecutive events of one day."""
    groups: dict[int, list[Event]] = {}
    for event in events:
        groups.setdefault(event.t // DAY, []).append(event)
    paths = []
    for number, group in groups.items():
        directory = log / directory_of(number)
        directory.mkdir(parents=True, exist_ok=True)
        path = directory / f"events-{group[0].n:020d}.jsonl"
        path.write_bytes(msgspec.json.Encoder().encode_lines(group))
        paths.append(path)
    return paths


def keeps_to(table: DataFrame, schema: StructType) -> None:
    """A table has exactly the columns of a schema; whether they may be empty is not said."""
    assert [(f.name, f.dataType) for f in table.schema] == [(f.name, f.dataType) for f in schema]


def rows_of(table: DataFrame) -> list[tuple[Any, ...]]:
    """All rows, in an order of their own."""
    return sorted((tuple(row) for row in table.collect()), key=repr)
