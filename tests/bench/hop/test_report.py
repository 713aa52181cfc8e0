"""The report says what was measured, and whether it is what we set out to reach."""

from __future__ import annotations

import io

import msgspec
from rich.console import Console

from bench.hop import report
from bench.hop.pair import Run
from bench.hop.results import Latency, Report, Row, Spread, Wire


def row(key: str, rate: float, *, ours: bool = False, overhead: float = 8.0) -> Row:
    return Row(
        key=key,
        label=f"<{key}>",
        promise="as promised",
        settings="as set",
        version="1",
        ours=ours,
        throughput=Spread.of([rate * 0.9, rate, rate * 1.1]),
        broker_cpu=Spread.of([10.0]),
        clients_cpu=Spread.of([5.0]),
        latency=[Latency(500, Spread.of([200.0]), Spread.of([900.0]), late_p99=100.0)],
        wire=Wire(alone=overhead, bulk=4.0),
        idle_bytes=2048.0,
    )


def made(*rows: Row) -> Report:
    return Report.of(list(rows), load_before=0.5, load_after=1.5)


def printed(result: Report) -> str:
    out = io.StringIO()
    report.show(result, Console(file=out, width=200))
    return out.getvalue()


def test_goals_are_reached_or_missed() -> None:
    result = made(row("lasthop", 30_000, ours=True), row("qos2", 19_000), row("qos1", 70_000))
    verdicts = list(report.goals(result))
    assert [verdict.split()[0] for verdict in verdicts] == ["REACHED", "MISSED", "REACHED"]
    assert "1.58 x" in verdicts[0]


def test_rabbitmq_is_compared_with_what_promises_the_same_too() -> None:
    result = made(
        row("lasthop", 30_000, ours=True),
        row("lasthop-memory", 40_000, ours=True),
        row("rabbitmq-quorum", 35_000),
    )
    verdicts = list(report.goals(result))
    assert [verdict.split()[0] for verdict in verdicts] == ["MISSED", "REACHED", "REACHED"]
    assert (
        "<lasthop-memory>: more than 1 x <rabbitmq-quorum>: 40,000/s against 35,000/s is 1.14 x"
        in verdicts[1]
    )


def test_rounds_that_overlap_are_admitted() -> None:
    close = made(row("lasthop", 30_000, ours=True), row("qos2", 19_000), row("qos1", 70_000))
    assert ["overlap" in verdict for verdict in report.goals(close)] == [True, False, False]


def test_half_a_byte_too_much_is_too_much() -> None:
    result = made(row("lasthop", 30_000, ours=True, overhead=8.5))
    assert [verdict.split()[0] for verdict in report.goals(result)] == ["MISSED"]


def test_ratios_are_ours_to_theirs() -> None:
    text = printed(made(row("lasthop", 30_000, ours=True), row("qos2", 20_000)))
    assert "1.50" in text
    assert "30,000 (27,000 to 33,000)" in text


def test_a_system_that_failed_is_named_and_not_compared() -> None:
    broken = row("qos2", 20_000)
    broken.failure = "3 missing"
    result = made(row("lasthop", 30_000, ours=True), broken)
    assert "FAILED  <qos2>: 3 missing" in printed(result)
    assert not any("qos2" in verdict for verdict in report.goals(result))


def test_a_busy_machine_is_admitted() -> None:
    busy = row("qos1", 1000)
    busy.latency = [Latency(500, Spread.of([200.0]), Spread.of([9000.0]), late_p99=5000.0)]
    assert "busy" in printed(made(busy))


def test_the_better_clients_are_taken() -> None:
    quick = Run(1000, 0.1, 0.1, 0.01, 0.01, 0.01, [], [])
    for own, expected in ((5_000.0, ("Python", 10_000.0)), (20_000.0, ("C", 20_000.0))):
        taken = row("qos1", 1)
        taken.c_clients = [own]
        taken.add_throughput([quick])
        assert taken.throughput is not None
        assert (taken.clients, round(taken.throughput.median)) == expected


def test_json_says_the_same() -> None:
    result = made(row("qos1", 5))
    assert msgspec.json.decode(msgspec.json.encode(result), type=Report) == result
