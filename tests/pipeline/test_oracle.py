"""The same questions to the same log, asked in DuckDB and by brute force, have the same answers.

About `pipeline/gold/`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pytest

from lasthop.events import Event
from lasthop.pipeline.jobs import Pipeline
from tests.pipeline.rows import as_row
from tests.pipeline.test_replay import histories

SKIPPED = {"keys", "date", "store"}


@pytest.fixture(scope="module")
def sql(fleet_log: Path) -> duckdb.DuckDBPyConnection:
    """The log as DuckDB reads it, with the fields that were left out."""
    connection = duckdb.connect()
    columns = {}
    for name, value in as_row(Event(1, "", 0, 0, 0, "")).items():
        if name not in SKIPPED:
            types = {str: "VARCHAR", bool: "BOOLEAN", float: "DOUBLE"}
            columns[name] = types.get(type(value), "BIGINT")
    defaults = as_row(Event(1, "", 0, 0, 0, ""))
    filled = ", ".join(f'coalesce("{n}", {defaults[n]!r}) as "{n}"' for n in columns)
    connection.execute(
        f"create table e as select {filled}, make_timestamp(t)::date as date "
        f"from read_json('{fleet_log}/*/date=*/*.jsonl', columns = {columns})"
    )
    connection.execute("""
        create table d as select app, dev, msg,
            min(t) filter (kind = 'accepted') as accepted_at,
            any_value(topic) filter (kind = 'accepted') as topic,
            any_value(size) filter (kind = 'accepted') as size,
            any_value(before) filter (kind = 'accepted') as before,
            min(t) filter (kind = 'released') as released_at,
            min(t) filter (kind = 'delivered') as delivered_at,
            min(t) filter (kind = 'expired') as expired_at,
            min(if("at" > 0, "at", t)) filter (kind = 'read') as read_at,
            coalesce(arg_max(link, n) filter (kind in ('transmitted', 'delivered')), '') as link,
            coalesce(sum(bytes) filter (kind = 'transmitted'), 0) as bytes
        from e where msg != 0 group by all""")
    return connection


def asked(sql: duckdb.DuckDBPyConnection, query: str) -> list[tuple[Any, ...]]:
    return sorted(sql.execute(query).fetchall(), key=repr)


def made(pipeline: Pipeline, table: str, *columns: str) -> list[tuple[Any, ...]]:
    return sorted((tuple(r) for r in pipeline.gold(table).select(*columns).collect()), key=repr)


def same(ours: list[tuple[Any, ...]], theirs: list[tuple[Any, ...]]) -> None:
    assert len(ours) == len(theirs) > 0
    for mine, other in zip(ours, theirs, strict=True):
        assert list(mine) == pytest.approx(list(other), nan_ok=True)


def test_delivery_quality(fleet: Pipeline, sql: duckdb.DuckDBPyConnection) -> None:
    same(
        made(
            fleet,
            "delivery_quality",
            *("date", "app", "link", "hour", "accepted", "delivered", "expired", "open"),
            *("bytes", "duplicates", "order_violations", "latency_p50", "latency_p99"),
        ),
        asked(
            sql,
            """select make_timestamp(accepted_at)::date, app, link,
                hour(make_timestamp(accepted_at)), count(*), count(delivered_at),
                count(expired_at), count(*) filter (delivered_at is null and expired_at is null),
                sum(bytes)::bigint, 0, 0,
                quantile_disc(delivered_at - accepted_at, 0.5),
                quantile_disc(delivered_at - accepted_at, 0.99)
            from d group by all""",
        ),
    )


def test_channels(fleet: Pipeline, sql: duckdb.DuckDBPyConnection) -> None:
    same(
        made(
            fleet,
            "channels",
            *("date", "link", "network", "samples", "rtt_p50", "contention", "bytes"),
        ),
        asked(
            sql,
            """select date, link, network, count(*) filter (kind = 'measured'),
                quantile_disc(rtt, 0.5) filter (kind != 'transmitted' and rtt >= 0),
                avg(contention) filter (kind = 'measured'),
                coalesce(sum(bytes) filter (kind = 'transmitted'), 0)::bigint
            from e where kind in ('measured', 'heartbeat', 'transmitted') and link != ''
            group by all""",
        ),
    )


def test_usage(fleet: Pipeline, sql: duckdb.DuckDBPyConnection) -> None:
    same(
        made(fleet, "usage", "date", "dev", "link", "messages", "bytes", "money"),
        asked(
            sql,
            """select date, dev, link, count(*), sum(bytes)::bigint, sum(cost)
            from e where kind = 'transmitted' group by all""",
        ),
    )


def test_energy(fleet: Pipeline, sql: duckdb.DuckDBPyConnection) -> None:
    same(
        made(fleet, "energy", "date", "dev", "link", "transfers", "awake"),
        asked(
            sql,
            """with used as (select *, case link when 'wifi' then 250000 else 12000000 end as tail,
                    lead(t) over (partition by date, dev, link order by t, n) - t as gap
                from e where link != '' and kind in
                    ('transmitted', 'heartbeat', 'contact_started', 'read', 'received'))
            select date, dev, link, count(*), sum(least(coalesce(gap, tail), tail))::bigint
            from used group by all""",
        ),
    )


def test_survival(fleet: Pipeline, sql: duckdb.DuckDBPyConnection) -> None:
    same(
        made(fleet, "survival", "network", "interval", "at_risk", "survival"),
        asked(
            sql,
            """with h as (select network, "interval" // 15000000 * 15000000 as i,
                    reason = 'answered' as ok from e where kind = 'heartbeat'),
                steps as (select distinct network, i from h)
            select s.network, s.i,
                count(*) filter ((h.ok and h.i >= s.i) or (not h.ok and h.i <= s.i)) as risk,
                count(*) filter (h.ok and h.i >= s.i) / risk
            from steps s join h using (network) group by s.network, s.i""",
        ),
    )


def test_read_profiles(fleet: Pipeline, sql: duckdb.DuckDBPyConnection) -> None:
    same(
        made(
            fleet, "read_profiles", "dev", "topic", "reads", "arrivals", "offline_share", "wanted"
        ),
        asked(
            sql,
            """with r as (select dev, topic, count(*) as reads, avg(("at" > 0)::int) as off,
                    avg("count") filter ("count" >= 0) as wanted
                from e where kind = 'read' and msg = 0 group by all)
            select d.dev, d.topic, coalesce(any_value(reads), 0), count(*), any_value(off),
                coalesce(any_value(wanted), count(read_at) / any_value(reads))
            from d left join r on d.dev = r.dev and d.topic = r.topic group by all""",
        ),
    )


def test_link_hours(fleet: Pipeline, sql: duckdb.DuckDBPyConnection) -> None:
    ours = fleet.gold("link_hours").groupBy("dev", "link").sum("seen", "up").collect()
    same(
        sorted(map(tuple, ours), key=repr),
        asked(
            sql,
            """with c as (select dev, link, channel, t as s, lead(t) over
                        (partition by dev, channel order by t, n) as f, kind from e
                    where kind in ('contact_started', 'contact_lost')),
                last as (select max(t) as t from e),
                up as (select distinct dev, link, unnest(range(s // 3600000000,
                        greatest((coalesce(f, last.t) - 1) // 3600000000, s // 3600000000) + 1)) h
                    from c, last where kind = 'contact_started'),
                first as (select dev, min(s) // 3600000000 as h from c group by dev)
            select up.dev, link, (any_value(last.t) - 1) // 3600000000 - any_value(first.h) + 1,
                count(*)
            from up, last, first where up.dev = first.dev group by up.dev, link""",
        ),
    )


def read_by_brute_force(rows: list[Any], topic: str, limit: int | None) -> set[int]:
    """The on-line reader without engine, heaps or queues: a list, searched from end to end."""
    moments = []
    for row in rows:
        about = row.topic == topic
        if row.kind == "accepted" and about:
            moments.append((row.t, row.n, "arrived", row))
        elif row.kind == "rank_changed" and about:
            moments.append((row.t, row.n, "fell", row))
        elif row.kind in ("contact_started", "contact_lost"):
            moments.append((row.t, row.n, row.kind, row))
        elif row.kind == "read" and about and not row.msg:
            moments.append((row.at or row.t, row.n, "looked", row))
    known: dict[int, Any] = {}
    on_device: set[int] = set()
    ranks: dict[int, float] = {}
    device_ranks: dict[int, float] = {}
    seen: set[int] = set()
    linked = False
    for t, _, what, row in sorted(moments, key=lambda m: m[:2]):
        if what == "arrived":
            known[row.msg] = row
            ranks[row.msg] = row.rank
        elif what == "fell":
            ranks[row.msg] = row.rank
        elif what == "contact_started":
            linked = True
        elif what == "contact_lost":
            linked = False
        if linked:
            on_device = {key for key in known if ranks[key] >= 0}
            device_ranks = dict(ranks)
        if what == "looked":
            here = [
                key for key in on_device - seen if known[key].before == 0 or known[key].before > t
            ]
            here.sort(key=lambda key: (-device_ranks[key], key))
            seen.update(here if limit is None else here[:limit])
    return seen


def test_what_the_on_line_reader_reads(fleet: Pipeline, fleet_log: Path) -> None:
    expected: dict[str, int] = {}
    for device, rows in histories(fleet_log).items():
        for row in rows:
            if row.kind == "subscribed":
                limit = 4 if '"max":4' in row.terms else 8 if '"max":8' in row.terms else None
                count = len(read_by_brute_force(rows, row.topic, limit))
                expected[f"{device}/{row.topic}"] = count
    found = {
        f"{row['dev']}/{row['topic']}": row["read"]
        for row in fleet.gold("last_hop")
        .groupBy("dev", "topic")
        .sum("read_online")
        .withColumnRenamed("sum(read_online)", "read")
        .collect()
    }
    assert found == expected


def test_waste(fleet: Pipeline, sql: duckdb.DuckDBPyConnection) -> None:
    same(
        made(fleet, "last_hop", "date", "dev", "topic", "arrived", "forwarded", "read", "wasted"),
        asked(
            sql,
            """select make_timestamp(accepted_at)::date, dev, topic, count(*), count(released_at),
                count(read_at), count(*) filter (released_at is not null and read_at is null)
            from d group by all""",
        ),
    )
