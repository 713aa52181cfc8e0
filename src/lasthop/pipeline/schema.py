"""The event schema of `lasthop.events` as Spark types, and functions that make rows conform to a
schema."""

from __future__ import annotations

from typing import Any

import msgspec
from pyspark.sql import Column, DataFrame, functions as fn
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    DateType,
    DoubleType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from lasthop.events import Event, Kind

ENDS = (
    Kind.SENT,
    Kind.DELIVERED,
    Kind.EXPIRED,
    Kind.CANCELLED,
    Kind.REPLACED,
    Kind.ABORTED,
    Kind.TIMED_OUT,
    Kind.UNDELIVERABLE,
    Kind.REASSIGNED,
    Kind.SUPPRESSED,
)
"""The outcomes of a delivery, in the order of their codes."""

LIFE = (
    Kind.ACCEPTED,
    Kind.HELD,
    Kind.CONSULTED,
    Kind.RELEASED,
    Kind.TRANSMITTED,
    Kind.COUNTED,
    Kind.RECEIVED,
    Kind.REQUEUED,
    Kind.PARKED,
    *ENDS,
)
"""Every kind of event that belongs to one delivery."""

_TYPES: dict[Any, DataType] = {
    int: LongType(),
    str: StringType(),
    float: DoubleType(),
    bool: BooleanType(),
    tuple[int, ...]: ArrayType(LongType()),
}

BAD = "_bad"
"""The column with the text of a line that is not an event."""


def _fields() -> list[tuple[str, DataType, Any]]:
    hints = msgspec.inspect.type_info(Event)
    assert isinstance(hints, msgspec.inspect.StructType)
    types = Event.__annotations__
    named = {"int": int, "str": str, "float": float, "bool": bool, "Micros": int}
    named["tuple[int, ...]"] = tuple[int, ...]
    return [
        (field.name, _TYPES[named[types[field.name]]], field.default)
        for field in msgspec.structs.fields(Event)
    ]


FIELDS = _fields()

REQUIRED = ("v", "gw", "boot", "n", "t", "kind")
"""The fields that every event has."""

EVENT = StructType([StructField(name, kind) for name, kind, _ in FIELDS])
"""The schema of an event as a segment holds it: fields that were left out are null."""

LINE = StructType([*EVENT.fields, StructField(BAD, StringType())])
"""The schema of a line of a segment: an event, or a text that could not be read as one."""

DATED_EVENT = StructType([*EVENT.fields, StructField("date", DateType())])
"""The schema of an event with the UTC day on which it happened."""

BRONZE_EVENT = StructType([*DATED_EVENT.fields, StructField("log", StringType())])
"""The schema of an event of bronze: with the directory of its log, within what was read."""

STORED_EVENT = StructType([*DATED_EVENT.fields, StructField("store", StringType())])
"""The schema of an event whose store is known: its gateway, whatever that is called."""


def day_of(micros: Column) -> Column:
    """Return the UTC day of a time in microseconds."""
    return fn.to_date(fn.timestamp_micros(micros))


def filled(events: DataFrame) -> DataFrame:
    """Return the events with defaults in place of fields that were left out."""
    columns = []
    for name, kind, default in FIELDS:
        if default is msgspec.NODEFAULT:
            columns.append(fn.col(name))
        elif isinstance(kind, ArrayType):
            columns.append(fn.coalesce(fn.col(name), fn.array().cast(kind)).alias(name))
        else:
            columns.append(fn.coalesce(fn.col(name), fn.lit(default).cast(kind)).alias(name))
    return events.select(*columns, "date", "store")


def conform(frame: DataFrame, schema: StructType) -> DataFrame:
    """Return a table with exactly the schema's columns, in its order and with its types; other
    columns are dropped."""
    return frame.select(*(fn.col(f.name).cast(f.dataType).alias(f.name) for f in schema.fields))


def ratio(part: Column, whole: Column) -> Column:
    """Return part / whole; null if the whole is 0."""
    return fn.when(whole > 0, part / whole)
