"""`lasthop bench`: us against our peers, side by side, in one run.

Benchmarks are part of the source tree and not of the package: they start brokers that nobody who
only runs a gateway has installed.
"""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Annotated

import typer
from rich.console import Console
from rich.status import Status

import lasthop
from lasthop.runtime.cli.options import Json, described, new_commands
from lasthop.runtime.failure import Failure

commands = new_commands("Measure lasthop against its peers, side by side.")

WorkIn = Annotated[
    Path | None,
    typer.Option(
        "--in",
        metavar="DIR",
        help="Where stores are kept during the run; its disk is what durable rows depend on.",
        exists=True,
        file_okay=False,
    ),
]


@commands.command(
    help=described(
        "Compare throughput, CPU, latency, bytes and memory with Mosquitto and RabbitMQ.",
        "lasthop bench hop",
        "lasthop bench hop --rounds 5 --rate 500 --rate 2000 --json",
        "lasthop bench hop --only lasthop --only mosquitto --messages 10000",
        "lasthop bench hop --against ../before --rounds 9",
    )
)
def hop(
    messages: Annotated[int, typer.Option(min=100, help="Messages of a throughput run.")] = 40_000,
    rounds: Annotated[int, typer.Option(min=1, help="Times that everyone is measured.")] = 3,
    rate: Annotated[
        list[float] | None, typer.Option(help="Messages a second of latency runs. [500, 2000]")
    ] = None,
    seconds: Annotated[float, typer.Option(min=1, help="Length of a latency run.")] = 4.0,
    idle: Annotated[int, typer.Option(min=10, help="Idle connections to measure.")] = 1000,
    only: Annotated[
        list[str] | None, typer.Option(help="lasthop, mosquitto or rabbitmq. [all]")
    ] = None,
    against: Annotated[
        Path | None,
        typer.Option(
            metavar="CHECKOUT",
            help="Compare throughput and CPU with another working tree of lasthop instead.",
        ),
    ] = None,
    directory: WorkIn = None,
    as_json: Json = False,
) -> None:
    known = ("lasthop", "mosquitto", "rabbitmq")
    if unknown := [name for name in only or () if name not in known]:
        raise Failure(f"--only {unknown[0]}: choose from {', '.join(known)}", exit_code=2)
    if against is not None:
        if only:
            raise Failure("--only names peers, and --against compares with none", exit_code=2)
        if not all((against / part / "__init__.py").is_file() for part in ("src/lasthop", "bench")):
            raise Failure(f"--against {against}: that is no checkout of lasthop", exit_code=2)
        raise typer.Exit(
            _benchmark("hop.against").run(
                against=against,
                messages=messages,
                rounds=rounds,
                directory=directory,
                as_json=as_json,
            )
        )
    status = _benchmark("hop.command").run(
        messages=messages,
        rounds=rounds,
        rates=rate or (500.0, 2000.0),
        seconds=seconds,
        idle=idle,
        only=only or known,
        directory=directory,
        as_json=as_json,
    )
    raise typer.Exit(status)


@commands.command(
    help=described(
        "Hold thousands of idle devices: memory, heartbeats, and latency against ten devices.",
        "lasthop bench idle",
        "lasthop bench idle --devices 2000 --rounds 3 --json",
    )
)
def idle(
    devices: Annotated[int, typer.Option(min=20, help="Devices that are connected.")] = 10_000,
    rounds: Annotated[int, typer.Option(min=1, help="Latency runs of each side, in turn.")] = 5,
    rate: Annotated[float, typer.Option(min=1, help="Messages a second of latency runs.")] = 200.0,
    seconds: Annotated[float, typer.Option(min=1, help="Length of a latency run.")] = 5.0,
    heartbeat: Annotated[
        int, typer.Option(min=15, help="Seconds of silence after which a device pings.")
    ] = 20,
    directory: WorkIn = None,
    as_json: Json = False,
) -> None:
    status = _benchmark("idle").run(
        devices=devices,
        rounds=rounds,
        rate=rate,
        seconds=seconds,
        heartbeat=heartbeat,
        directory=directory,
        as_json=as_json,
    )
    raise typer.Exit(status)


@commands.command(
    help=described(
        "Compare the Push Proxy Gateway with Kannel's: pushes a second from POST to datagram, "
        "latency, and the encoder of binary XML.",
        "lasthop bench pap",
        "lasthop bench pap --pushes 2000 --rounds 1 --only lasthop --json",
    )
)
def pap(
    pushes: Annotated[int, typer.Option(min=10, help="Pushes of a throughput run.")] = 10_000,
    rounds: Annotated[int, typer.Option(min=1, help="Times that everyone is measured.")] = 3,
    rate: Annotated[
        list[float] | None, typer.Option(help="Pushes a second of latency runs. [500, 1500]")
    ] = None,
    seconds: Annotated[float, typer.Option(min=0.5, help="Length of a latency run.")] = 4.0,
    connections: Annotated[
        int, typer.Option(min=1, help="Of the initiator; one push in flight on each.")
    ] = 128,
    only: Annotated[list[str] | None, typer.Option(help="lasthop or kannel. [both]")] = None,
    directory: WorkIn = None,
    as_json: Json = False,
) -> None:
    known = ("lasthop", "kannel")
    if unknown := [name for name in only or () if name not in known]:
        raise Failure(f"--only {unknown[0]}: choose from {', '.join(known)}", exit_code=2)
    status = _benchmark("pap.command").run(
        pushes=pushes,
        rounds=rounds,
        rates=rate or (500.0, 1500.0),
        seconds=seconds,
        connections=connections,
        only=only or known,
        directory=directory,
        as_json=as_json,
    )
    raise typer.Exit(status)


@commands.command(
    help=described(
        "Compare sizes and speeds of XML messages with lxml and compressed XML.",
        "lasthop bench xml",
        "lasthop bench xml --input ~/messages --json",
    )
)
def xml(
    folder: Annotated[
        Path | None,
        typer.Option(
            "--input",
            metavar="DIR",
            help="XML files, in the order of their names. [200 notifications]",
            exists=True,
            file_okay=False,
        ),
    ] = None,
    rounds: Annotated[int, typer.Option(min=1, help="Times that every message is measured.")] = 9,
    as_json: Json = False,
) -> None:
    raise typer.Exit(_benchmark("xml.command").run(folder=folder, rounds=rounds, as_json=as_json))


@commands.command(
    "last-hop",
    help=described(
        "Virtual years a second of the last hop's rehearsal, beside the same model on SimPy.",
        "lasthop bench last-hop",
        "lasthop bench last-hop --years 3 --rounds 9 --json",
    ),
)
def last_hop(
    years: Annotated[float, typer.Option(min=0.1, help="Virtual years of a round.")] = 1.0,
    rounds: Annotated[int, typer.Option(min=1, help="Times that both run, in turn.")] = 5,
    as_json: Json = False,
) -> None:
    status = _benchmark("last_hop.command").run(years=years, rounds=rounds, as_json=as_json)
    raise typer.Exit(status)


@commands.command(
    help=described(
        "Match messages against many XPath subscriptions, beside lxml one by one.",
        "lasthop bench xpath",
        "lasthop bench xpath --subscriptions 100000 --messages 10 --json",
    )
)
def xpath(
    subscriptions: Annotated[
        list[int] | None, typer.Option(min=1, help="How many. [10, 1000, 10000]")
    ] = None,
    messages: Annotated[int, typer.Option(min=2, max=200, help="Of the sample.")] = 50,
    rounds: Annotated[int, typer.Option(min=1, help="Times that every message is measured.")] = 5,
    as_json: Json = False,
) -> None:
    status = _benchmark("xpath_routing").run(
        sizes=subscriptions or (10, 1000, 10_000),
        messages=messages,
        rounds=rounds,
        as_json=as_json,
    )
    raise typer.Exit(status)


@commands.command(
    help=described(
        "What our policies and other systems waste and lose for a device that comes and goes, on "
        "the same events; and how much of the rank they save. The others are models of the rules "
        "that they document.",
        "lasthop bench volume",
        "lasthop bench volume --years 0.5 --seeds 5 --json",
    )
)
def volume(
    years: Annotated[float, typer.Option(min=0.05, help="Virtual years of a run.")] = 1.0,
    seeds: Annotated[int, typer.Option(min=1, help="Runs in every world.")] = 3,
    as_json: Json = False,
) -> None:
    raise typer.Exit(_benchmark("volume").run(years=years, seeds=seeds, as_json=as_json))


@commands.command(
    help=described(
        "Calls over LAN, WLAN and GPRS on virtual time: hop with Xebu beside HTTP with XML. With "
        "--live the same calls through a running gateway to a device that has the service: bytes "
        "a call on its link, by what they are for.",
        "lasthop bench exchange",
        "lasthop bench exchange --seeds 3 --out figures",
        "lasthop bench exchange --live --calls 250",
    )
)
def exchange(
    calls: Annotated[
        list[int] | None, typer.Option(min=1, help="How many. [50, 100, 150, 200, 250]")
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Runs of each, with other delays.")] = 10,
    folder: Annotated[
        Path | None,
        typer.Option("--out", metavar="DIR", help="Draw the figures here (PNG and CSV)."),
    ] = None,
    live: Annotated[
        bool, typer.Option("--live", help="Through a gateway over real sockets instead.")
    ] = False,
    as_json: Json = False,
) -> None:
    if live:
        if folder is not None:
            raise Failure("--out draws what runs on virtual time, and --live does not", exit_code=2)
        most = max(calls or (250,))
        raise typer.Exit(_benchmark("exchange.live").run(calls=most, as_json=as_json))
    status = _benchmark("exchange.command").run(
        calls=calls or (50, 100, 150, 200, 250), seeds=seeds, folder=folder, as_json=as_json
    )
    raise typer.Exit(status)


@commands.command(
    help=described(
        "Run the pipeline over the log of a rehearsal fleet: events a second of every stage, by "
        "cores and by size, and the same questions in DuckDB.",
        "lasthop bench pipeline",
        "lasthop bench pipeline --events 20000000 --cores 2 --json",
    )
)
def pipeline(
    events: Annotated[
        list[int] | None, typer.Option(min=1000, help="Events; repeatable. [2 and 20 million]")
    ] = None,
    cores: Annotated[list[int] | None, typer.Option(min=1, help="Repeatable. [1, 2]")] = None,
    log: Annotated[
        list[Path] | None,
        typer.Option(metavar="DIR", exists=True, help="A log that is there already; repeatable."),
    ] = None,
    directory: WorkIn = None,
    as_json: Json = False,
) -> None:
    status = _benchmark("pipeline.command").run(
        events=events or [2_000_000, 20_000_000],
        cores=cores or [1, 2],
        logs=log or [],
        directory=directory,
        as_json=as_json,
    )
    raise typer.Exit(status)


@commands.command(
    help=described(
        "Close the loop: let the rehearsal fleet go by learned policies from a day on, beside the "
        "ones that they were learned from and the predictive policy with nothing learned.",
        "lasthop bench loop --policies data/policies/20261115T101500-1f3a9c02/policies.json",
    )
)
def loop(
    policies: Annotated[
        Path, typer.Option(metavar="FILE", exists=True, dir_okay=False, help="A version's file.")
    ],
    devices: Annotated[int, typer.Option(min=1, help="Of the fleet.")] = 2000,
    days: Annotated[int, typer.Option(min=2, help="Virtual days.")] = 60,
    switch: Annotated[int, typer.Option(min=1, help="Days before the switch.")] = 40,
    seed: Annotated[int, typer.Option(min=0, help="The fleet that was learned from.")] = 0,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="A plot (PNG).")] = None,
    as_json: Json = False,
) -> None:
    status = _benchmark("pipeline.command").run_loop(
        policies=policies,
        devices=devices,
        days=days,
        switch=switch,
        seed=seed,
        out=out,
        as_json=as_json,
    )
    raise typer.Exit(status)


@commands.command(
    help=described(
        "Follow a running gateway with the pipeline: seconds from an event to the tables.",
        "lasthop bench stream",
        "lasthop bench stream --rate 500 --seconds 60 --json",
    )
)
def stream(
    rate: Annotated[float, typer.Option(min=1, help="Messages a second.")] = 100.0,
    seconds: Annotated[float, typer.Option(min=1, help="How long they are published.")] = 120.0,
    directory: WorkIn = None,
    as_json: Json = False,
) -> None:
    status = _benchmark("pipeline.follow").run(
        rate=rate, seconds=seconds, directory=directory, as_json=as_json
    )
    raise typer.Exit(status)


@commands.command(
    help=described(
        "The experiments of the Odin paper: loss, order, latency, bytes and energy on WiFi and 3G, "
        "with and without breaks, beside emulated push services; and load over real sockets.",
        "lasthop bench odin",
        "lasthop bench odin --out figures --no-load --json",
    )
)
def odin(
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", file_okay=False, help="Where PNG and HTML go. [nowhere]"),
    ] = None,
    load: Annotated[bool, typer.Option(help="Also the load test over real sockets.")] = True,
    messages: Annotated[int, typer.Option(min=100, help="Messages of a load run.")] = 5000,
    as_json: Json = False,
) -> None:
    with Status("odin", console=Console(stderr=True)) as status:
        code = _benchmark("odin.command").run(
            out=out, load=load, messages=messages, as_json=as_json, say=status.update
        )
    raise typer.Exit(code)


@commands.command(
    "xml-tables",
    help=described(
        "Time, memory and footprint of XML processing: the thesis's tables 7.5, 7.7 and 7.9.",
        "lasthop bench xml-tables",
        "lasthop bench xml-tables --messages 50 --rounds 2 --json",
    ),
)
def xml_tables(
    messages: Annotated[int, typer.Option(min=2, max=200, help="Of the sample.")] = 200,
    files: Annotated[int, typer.Option(min=50, help="Files in the one large document.")] = 20_000,
    rounds: Annotated[int, typer.Option(min=1, help="Times that everything is measured.")] = 5,
    as_json: Json = False,
) -> None:
    status = _benchmark("xml_tables.command").run(
        messages=messages, files=files, rounds=rounds, as_json=as_json
    )
    raise typer.Exit(status)


def _benchmark(name: str) -> ModuleType:
    root = Path(lasthop.__file__).resolve().parents[2]
    if not (root / "bench" / "__init__.py").is_file():
        raise Failure("benchmarks come with the source tree only: run this from a checkout")
    if str(root) not in sys.path:
        sys.path.insert(0, str(root))
    return import_module(f"bench.{name}")
