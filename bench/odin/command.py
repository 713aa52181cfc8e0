"""Runs `lasthop bench odin`: reliability, latency, bytes and energy on virtual time; load over real
sockets.

Ours is the real gateway, session and device, over simulated links. The other services are emulated
by what is known of their policies (`lasthop.simulation.odin.services`); on virtual time no service
is faster for having a better machine. Load is measured in processes on this machine.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

import msgspec
from rich.console import Console
from rich.table import Table

from bench.hop import peers, systems
from bench.hop.gateway import gateway, ours
from bench.hop.pair import paired
from bench.odin.drawing import can_draw, write_html, write_png
from lasthop.clock import DAY, Micros
from lasthop.simulation.odin.energy import OURS, Energy, energy
from lasthop.simulation.odin.ours import Experiment
from lasthop.simulation.odin.radio import BEARERS
from lasthop.simulation.odin.services import SERVICES, emulate
from lasthop.simulation.odin.setting import BREAKS, ServiceNotes, Setting


@dataclass(frozen=True, slots=True)
class Load:
    """The result of a load test over real sockets: 256-byte messages to one device, each
    confirmed."""

    system: str
    messages_per_second: float


@dataclass(frozen=True, slots=True)
class Report:
    """All results of the experiments."""

    reliability: list[ServiceNotes]
    energy: list[Energy]
    load: list[Load]


def run(
    *,
    out: Path | None,
    load: bool = True,
    messages: int = 5000,
    as_json: bool = False,
    day: Micros = DAY,
    say: Callable[[str], None] = lambda line: None,
) -> int:
    """Measure, print and draw; return the exit status."""
    say("two hours over WiFi and 3G, with and without breaks")
    noted = list(reliability())
    say("24 hours for the energy")
    spent = [row for bearer in BEARERS for row in energy(bearer, Setting(length=day))]
    say("load over real sockets" if load else "without the load test")
    report = Report(noted, spent, list(loads(messages)) if load else [])
    files = draw(report, out) if out is not None else []
    if as_json:
        sys.stdout.write(msgspec.json.encode(asdict(report)).decode() + "\n")
    else:
        show(report, Console(width=110, highlight=False))
        for path in files:
            sys.stdout.write(f"{path}\n")
    good = all(row.lost == row.misordered == row.duplicated == 0 for row in noted if ours_is(row))
    return 0 if good else 1


def ours_is(row: ServiceNotes) -> bool:
    return row.service == OURS


def reliability() -> Iterator[ServiceNotes]:
    """Yield the results of every service in the four experiments of two hours."""
    for bearer in BEARERS:
        for breaks in ((), BREAKS):
            setting = Setting(breaks=breaks)
            yield Experiment(bearer, setting).run()
            for service in SERVICES:
                yield emulate(service, bearer, setting)


def loads(messages: int) -> Iterator[Load]:
    """Yield how many messages per second one device can be sent, on this machine."""
    with (
        tempfile.TemporaryDirectory(prefix="lasthop-odin-") as place,
        ExitStack() as stack,
    ):
        directory = Path(place)
        inboxes = directory / "inboxes"
        inboxes.mkdir()
        full = stack.enter_context(gateway(directory / "full"))
        compared = [ours(full, inbox=inboxes, single=True), ours(full, inbox=inboxes)]
        if not any(name.startswith("mosquitto") for name in peers.missing()):
            broker = stack.enter_context(peers.mosquitto(directory / "mosquitto"))
            compared.append(systems.mosquitto(broker, qos=2))
        for system in compared:
            with paired(system, "odin", directory=directory) as pair:
                pair.run(messages // 4)
                yield Load(system.label, median(pair.run(messages).rate for _ in range(3)))


def draw(report: Report, out: Path) -> list[Path]:
    """Write PNG files and a page with all results; return the files."""
    out.mkdir(parents=True, exist_ok=True)
    files: list[Path] = []
    if can_draw():
        files += write_png(report, out)
    page = out / "odin.html"
    write_html(report, files, page)
    return [*files, page]


def show(report: Report, console: Console) -> None:
    """Print the report for people."""
    table = Table(title="Two hours, 3 messages of 256 bytes a minute")
    table.add_column("service")
    table.add_column("link")
    for column in ("lost", "out of order", "twice", "median latency", "bytes/message"):
        table.add_column(column, justify="right")
    for row in report.reliability:
        sized = row.bytes_per_message
        table.add_row(
            row.service,
            f"{row.bearer}, breaks" if row.broken else row.bearer,
            f"{row.lost} of {row.submitted}",
            str(row.misordered),
            str(row.duplicated),
            f"{row.latency_ms:.0f} ms",
            "not public" if sized is None else f"{sized:.1f}",
        )
    console.print(table)
    table = Table(title="24 hours of the same (radio model, index as we read it)")
    table.add_column("service")
    table.add_column("link")
    for column in ("radio", "battery lasts", "idle it would", "index"):
        table.add_column(column, justify="right")
    for spent in report.energy:
        table.add_row(
            spent.service,
            spent.bearer,
            f"{spent.radio_joules / 1000:.2f} kJ",
            f"{spent.hours:.1f} h",
            f"{spent.idle_hours:.0f} h",
            f"{spent.index:.3f}",
        )
    console.print(table)
    if report.load:
        table = Table(title="Load over real sockets, 256 bytes to one device")
        table.add_column("system")
        table.add_column("messages/s", justify="right")
        for load in report.load:
            table.add_row(load.system, f"{load.messages_per_second:,.0f}")
        console.print(table)
