"""Asks four questions about all events, in Spark and in DuckDB, on the same Parquet files.

Both get the same number of cores and write their answers nowhere; the sizes of the answers are
compared, to make sure that both answer the same question. Neither DuckDB nor Spark keeps anything
between questions but what the system caches of the files.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import duckdb
from pyspark.sql import DataFrame, SparkSession, Window, functions as fn

from lasthop.pipeline.lake import Lake
from lasthop.pipeline.silver import EVENTS

SQL = {
    "events by day and kind": "select date, kind, count(*) from e group by all",
    "latency by day and link": """
        with d as (select app, dev, msg, min(t) filter (kind = 'accepted') as a,
                min(t) filter (kind = 'delivered') as f, max(link) as link
            from e where msg != 0 and kind in ('accepted', 'delivered') group by all)
        select make_timestamp(a)::date as day, link, approx_quantile(f - a, 0.5),
            approx_quantile(f - a, 0.9), approx_quantile(f - a, 0.99)
        from d where f is not null group by all""",
    "order violations": """
        with r as (select dev, msg, min(n) filter (kind = 'released') as r,
                min(n) filter (kind = 'delivered') as d
            from e where kind in ('released', 'delivered') group by all),
        w as (select dev, r, max(r) over (partition by dev order by d
                rows between unbounded preceding and 1 preceding) as before from r)
        select dev, count(*) filter (before > r) from w group by all""",
    "distinct events": "select count(*) from (select distinct gw, boot, n from e)",
}


def _by_kind(e: DataFrame) -> DataFrame:
    return e.groupBy("date", "kind").count()


def _latency(e: DataFrame) -> DataFrame:
    kind = fn.col("kind")
    d = (
        e.where((fn.col("msg") != 0) & kind.isin("accepted", "delivered"))
        .groupBy("app", "dev", "msg")
        .agg(
            fn.min(fn.when(kind == "accepted", fn.col("t"))).alias("a"),
            fn.min(fn.when(kind == "delivered", fn.col("t"))).alias("f"),
            fn.max("link").alias("link"),
        )
        .where(fn.col("f").isNotNull())
    )
    late = fn.col("f") - fn.col("a")
    return d.groupBy(fn.to_date(fn.timestamp_micros("a")).alias("day"), "link").agg(
        *(fn.percentile_approx(late, share, 1000).alias(f"p{share}") for share in (0.5, 0.9, 0.99))
    )


def _violations(e: DataFrame) -> DataFrame:
    kind = fn.col("kind")
    r = (
        e.where(kind.isin("released", "delivered"))
        .groupBy("dev", "msg")
        .agg(
            fn.min(fn.when(kind == "released", fn.col("n"))).alias("r"),
            fn.min(fn.when(kind == "delivered", fn.col("n"))).alias("d"),
        )
    )
    before = Window.partitionBy("dev").orderBy("d").rowsBetween(Window.unboundedPreceding, -1)
    return (
        r.withColumn("before", fn.max("r").over(before))
        .groupBy("dev")
        .agg(fn.count(fn.when(fn.col("before") > fn.col("r"), 1)).alias("violations"))
    )


def _distinct(e: DataFrame) -> DataFrame:
    return e.select("gw", "boot", "n").distinct().groupBy().count()


SPARK: dict[str, Callable[[DataFrame], DataFrame]] = dict(
    zip(SQL, (_by_kind, _latency, _violations, _distinct), strict=True)
)


def ask_spark(spark: SparkSession, lake: Lake) -> dict[str, tuple[float, int]]:
    """Return the seconds and the rows of every answer of Spark."""
    answers = {}
    for name, question in SPARK.items():
        began = time.monotonic()
        # Fetched whole, as DuckDB's answer is: a count alone would let Spark leave columns out.
        rows = question(lake.read(spark, "silver", "events", EVENTS)).collect()
        answers[name] = (round(time.monotonic() - began, 2), len(rows))
    return answers


def ask_duckdb(lake: Path, *, cores: int) -> dict[str, tuple[float, int]]:
    """Return the seconds and the rows of every answer of DuckDB."""
    answers = {}
    with duckdb.connect(config={"threads": cores, "memory_limit": "4GB"}) as sql:
        files = f"{lake}/silver/events/date=*/*.parquet"
        sql.execute(f"create view e as from read_parquet('{files}', hive_partitioning = true)")
        for name, query in SQL.items():
            began = time.monotonic()
            rows = sql.execute(query).fetchall()
            answers[name] = (round(time.monotonic() - began, 2), len(rows))
    return answers
