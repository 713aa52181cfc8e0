"""Prints a report for people: the results of each system, ratios, and which goals were reached."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

from rich.console import Console
from rich.table import Table

from bench.hop.results import Report, Row, Spread

OURS = "lasthop"
"""The row that goals and ratios are about: durable on both ends."""

ALIKE = "lasthop-memory"
"""The row with the same promises as RabbitMQ's: durable at the broker, nothing stored on the
device."""

RABBITMQ = tuple(
    f"rabbitmq-{kind}{client}" for client in ("", "-pika") for kind in ("classic", "quorum")
)

OVERHEAD_GOAL = 8.0
"""The most bytes of protocol for a message of 256 bytes over TCP, acknowledgement included."""

QOS2_GOAL = 1.5
"""The goal for exactly-once messages per second, as a multiple of Mosquitto's at quality 2."""

Metric: TypeAlias = Callable[[Row], float | None]


def show(report: Report, console: Console) -> None:
    """Print the report for people."""
    console.print(
        f"{report.payload}-byte payloads, {report.cores} cores, Python {report.python}, "
        f"Linux {report.kernel}, load {report.load_before:.1f} before and "
        f"{report.load_after:.1f} after; medians of the rounds (lowest to highest)",
        highlight=False,
    )
    for table in (throughput(report), latency(report), frugality(report), ratios(report)):
        console.print(table)
    console.print(settings(report))
    for line in [*failures(report), *goals(report), *caveats(report)]:
        console.print(line, highlight=False, soft_wrap=True)


def throughput(report: Report) -> Table:
    """Return the table of delivered messages per second and CPU a message; single POSTs stand
    apart."""
    table = Table(title="Delivered messages a second, batched or pipelined", title_justify="left")
    table.add_column("system")
    table.add_column("promise")
    for heading in ("messages/s", "CPU µs/message\nbroker", "CPU µs/message\nclients"):
        table.add_column(heading, justify="right")
    together = [row for row in report.rows if not row.key.endswith("single")]
    apart = [row for row in report.rows if row.key.endswith("single")]
    for section in (together, apart):
        for row in sorted(section, key=lambda r: -(_rate(r) or 0)):
            table.add_row(
                row.label + (" (C clients)" if row.clients == "C" else ""),
                row.promise,
                _spread(row.throughput),
                _spread(row.broker_cpu, 1),
                _spread(row.clients_cpu, 1),
            )
        table.add_section()
    return table


def latency(report: Report) -> Table:
    """Return the table of latencies from publisher to device, at the same rate for all systems."""
    table = Table(title="Publisher to device at a constant rate, µs", title_justify="left")
    table.add_column("system")
    rates = sorted({entry.rate for row in report.rows for entry in row.latency})
    for rate in rates:
        for heading in ("median", "p99"):
            table.add_column(f"{heading}\nat {rate:g}/s", justify="right")
    for row in report.rows:
        if row.latency:
            found = {entry.rate: entry for entry in row.latency}
            cells = [
                _spread(found[rate].median if kind == "median" else found[rate].p99)
                if rate in found
                else "-"
                for rate in rates
                for kind in ("median", "p99")
            ]
            table.add_row(row.label, *cells)
    return table


def frugality(report: Report) -> Table:
    """Return the table of bytes on the wire and memory."""
    table = Table(title="Between broker and device, acks included", title_justify="left")
    table.add_column("system")
    for heading in (
        "bytes of protocol\na message, alone",
        "bytes of protocol\na message, in bulk",
        "bytes on the wire\na message, alone",
        "KiB of memory an\nidle connection",
    ):
        table.add_column(heading, justify="right")
    for row in report.rows:
        if row.wire is not None:
            table.add_row(
                row.label,
                f"{row.wire.alone:.1f}",
                f"{row.wire.bulk:.1f}",
                f"{row.wire.alone + report.payload:.1f}",
                "-" if row.idle_bytes is None else f"{row.idle_bytes / 1024:.1f}",
            )
    return table


def ratios(report: Report) -> Table:
    """Return the table of ratios: every row of lasthop against every other system."""
    table = Table(title="Ratios: ours / peer", title_justify="left")
    peers = [row for row in report.rows if not row.ours]
    table.add_column("metric")
    table.add_column("ours")
    for peer in peers:
        table.add_column(peer.label, justify="right")
    for name, metric in _metrics(report):
        measured = [row for row in report.rows if row.ours and metric(row) is not None]
        for number, row in enumerate(measured):
            ratios = (_ratio(metric(row), metric(peer)) for peer in peers)
            table.add_row("" if number else name, row.label, *ratios)
        table.add_section()
    return table


def settings(report: Report) -> Table:
    """Return the table of the systems' settings."""
    table = Table(title="Settings", title_justify="left")
    for heading in ("system", "version", "settings"):
        table.add_column(heading)
    for row in report.rows:
        table.add_row(row.label, row.version, row.settings)
    return table


def failures(report: Report) -> Iterator[str]:
    """Yield a line for each system that failed."""
    for row in report.rows:
        if row.failure:
            yield f"FAILED  {row.label}: {row.failure}"


def goals(report: Report) -> Iterator[str]:
    """Yield a line for each goal, and whether it was reached."""
    us = report.row(OURS)
    if us is None:
        return
    for ours, key, factor, what in (
        (OURS, "qos2", QOS2_GOAL, "goal"),
        *((OURS, key, 1.0, "goal") for key in RABBITMQ),
        *((ALIKE, key, 1.0, "goal") for key in RABBITMQ),
        (OURS, "qos1", 1.0, "stretch"),
    ):
        mine, other = report.row(ours), report.row(key)
        if mine is not None and other is not None:
            yield from _compared(mine, other, factor, what)
    if us.wire is not None:
        yield _verdict(
            us.wire.alone <= OVERHEAD_GOAL,
            f"goal: at most {OVERHEAD_GOAL:g} bytes of protocol a message: {us.wire.alone:.2f}",
        )


def _compared(mine: Row, other: Row, factor: float, what: str) -> Iterator[str]:
    ours, theirs = mine.throughput, other.throughput
    if ours is None or theirs is None:
        return
    told = (
        f"{what}: {mine.label}: more than {factor:g} x {other.label}: "
        f"{ours.median:,.0f}/s against {theirs.median:,.0f}/s is "
        f"{ours.median / theirs.median:.2f} x"
    )
    if ours.lowest <= factor * theirs.highest and ours.highest > factor * theirs.lowest:
        told += " (but the rounds overlap: run more of them on a quiet machine)"
    yield _verdict(ours.median > factor * theirs.median, told)


def caveats(report: Report) -> Iterator[str]:
    """Yield what a reader must know about the figures."""
    late = [entry.late_p99 for row in report.rows for entry in row.latency]
    if late and max(late) > 1000:
        yield (
            f"The machine was busy: publishers themselves were up to {max(late):,.0f} µs late "
            "(p99); tail latencies say more about the machine than about the systems."
        )
    yield (
        "Latency counts from the time at which a message was due. Bytes are those of the "
        "protocols; TCP and IP headers come on top. Memory is that of the process, not the kernel."
    )


def _metrics(report: Report) -> Iterator[tuple[str, Metric]]:
    yield "messages/s (more is better)", _rate
    yield "broker's CPU (less is better)", _cpu
    for rate in sorted({entry.rate for row in report.rows for entry in row.latency}):
        yield f"median at {rate:g}/s (less is better)", _latency(rate, p99=False)
        yield f"p99 at {rate:g}/s (less is better)", _latency(rate, p99=True)
    yield (
        "bytes on the wire (less is better)",
        lambda row: None if row.wire is None else row.wire.alone + report.payload,
    )
    yield "idle connection (less is better)", lambda row: row.idle_bytes


def _rate(row: Row) -> float | None:
    return None if row.throughput is None else row.throughput.median


def _cpu(row: Row) -> float | None:
    return None if row.broker_cpu is None else row.broker_cpu.median


def _latency(rate: float, *, p99: bool) -> Metric:
    def metric(row: Row) -> float | None:
        for entry in row.latency:
            if entry.rate == rate:
                return (entry.p99 if p99 else entry.median).median
        return None

    return metric


def _spread(spread: Spread | None, digits: int = 0) -> str:
    return "-" if spread is None else spread.text(digits)


def _ratio(ours: float | None, theirs: float | None) -> str:
    return f"{ours / theirs:.2f}" if ours is not None and theirs and theirs > 0 else "-"


def _verdict(reached: bool, text: str) -> str:
    return f"{'REACHED' if reached else 'MISSED '} {text}"
