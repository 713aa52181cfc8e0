"""`lasthop bench`: measure lasthop beside comparable systems, in one run.

Benchmarks are part of the source tree and not of the package: they start brokers that a user who
only runs a gateway has not installed.
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

commands = new_commands("Measure lasthop and compare it with other systems.")

WorkIn = Annotated[
    Path | None,
    typer.Option(
        "--in",
        metavar="DIR",
        help="Directory for the stores during the run; results of durable runs depend on its disk.",
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
    messages: Annotated[
        int, typer.Option(min=100, help="Number of messages in a throughput run.")
    ] = 40_000,
    rounds: Annotated[
        int, typer.Option(min=1, help="Number of times that each system is measured.")
    ] = 3,
    rate: Annotated[
        list[float] | None,
        typer.Option(help="Messages per second in latency runs; may be repeated. [500, 2000]"),
    ] = None,
    seconds: Annotated[
        float, typer.Option(min=1, help="Length of a latency run, in seconds.")
    ] = 4.0,
    idle: Annotated[
        int, typer.Option(min=10, help="Number of idle connections to measure.")
    ] = 1000,
    only: Annotated[
        list[str] | None,
        typer.Option(help="Measure only lasthop, mosquitto or rabbitmq; may be repeated. [all]"),
    ] = None,
    against: Annotated[
        Path | None,
        typer.Option(
            metavar="CHECKOUT",
            help="Compare throughput and CPU with this other working tree of lasthop instead.",
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
            raise Failure(
                "--only and --against cannot be used together: --against runs no other systems",
                exit_code=2,
            )
        if not all((against / part / "__init__.py").is_file() for part in ("src/lasthop", "bench")):
            raise Failure(f"--against {against}: this is not a checkout of lasthop", exit_code=2)
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
        "Measure thousands of idle devices: memory, heartbeats, and latency compared with ten"
        " devices.",
        "lasthop bench idle",
        "lasthop bench idle --devices 2000 --rounds 3 --json",
    )
)
def idle(
    devices: Annotated[int, typer.Option(min=20, help="Number of connected devices.")] = 10_000,
    rounds: Annotated[int, typer.Option(min=1, help="Latency runs of each side, in turn.")] = 5,
    rate: Annotated[
        float, typer.Option(min=1, help="Messages per second in latency runs.")
    ] = 200.0,
    seconds: Annotated[
        float, typer.Option(min=1, help="Length of a latency run, in seconds.")
    ] = 5.0,
    heartbeat: Annotated[
        int, typer.Option(min=15, help="Seconds of silence after which a device sends a ping.")
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
        "Compare the Push Proxy Gateway with Kannel's: pushes per second from POST to datagram,"
        " latency, and the encoder of binary XML.",
        "lasthop bench pap",
        "lasthop bench pap --pushes 2000 --rounds 1 --only lasthop --json",
    )
)
def pap(
    pushes: Annotated[
        int, typer.Option(min=10, help="Number of pushes in a throughput run.")
    ] = 10_000,
    rounds: Annotated[
        int, typer.Option(min=1, help="Number of times that each system is measured.")
    ] = 3,
    rate: Annotated[
        list[float] | None,
        typer.Option(help="Pushes per second in latency runs; may be repeated. [500, 1500]"),
    ] = None,
    seconds: Annotated[
        float, typer.Option(min=0.5, help="Length of a latency run, in seconds.")
    ] = 4.0,
    connections: Annotated[
        int,
        typer.Option(min=1, help="Connections of the push initiator; each has one push in flight."),
    ] = 128,
    only: Annotated[
        list[str] | None, typer.Option(help="Measure only lasthop or kannel. [both]")
    ] = None,
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
        "Compare the size and speed of XML messages with lxml and with compressed XML.",
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
            help="Directory of XML files, read in the order of their names. [200 notifications]",
            exists=True,
            file_okay=False,
        ),
    ] = None,
    rounds: Annotated[
        int, typer.Option(min=1, help="Number of times that each message is measured.")
    ] = 9,
    as_json: Json = False,
) -> None:
    raise typer.Exit(_benchmark("xml.command").run(folder=folder, rounds=rounds, as_json=as_json))


@commands.command(
    "last-hop",
    help=described(
        "Compare the speed of the last-hop simulation with the same model on SimPy, in virtual"
        " years per second.",
        "lasthop bench last-hop",
        "lasthop bench last-hop --years 3 --rounds 9 --json",
    ),
)
def last_hop(
    years: Annotated[float, typer.Option(min=0.1, help="Virtual years in a round.")] = 1.0,
    rounds: Annotated[int, typer.Option(min=1, help="Number of rounds of both, in turn.")] = 5,
    as_json: Json = False,
) -> None:
    status = _benchmark("last_hop.command").run(years=years, rounds=rounds, as_json=as_json)
    raise typer.Exit(status)


@commands.command(
    help=described(
        "Match messages against many XPath subscriptions, and compare with lxml, which tries"
        " them one by one.",
        "lasthop bench xpath",
        "lasthop bench xpath --subscriptions 100000 --messages 10 --json",
    )
)
def xpath(
    subscriptions: Annotated[
        list[int] | None,
        typer.Option(min=1, help="Number of subscriptions; may be repeated. [10, 1000, 10000]"),
    ] = None,
    messages: Annotated[int, typer.Option(min=2, max=200, help="Number of sample messages.")] = 50,
    rounds: Annotated[
        int, typer.Option(min=1, help="Number of times that each message is measured.")
    ] = 5,
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
        "Compare what our policies and other systems waste and lose for a device that comes and"
        " goes, and how much of the rank they keep, on the same events. The other systems are"
        " models of the rules that they document.",
        "lasthop bench volume",
        "lasthop bench volume --years 0.5 --seeds 5 --json",
    )
)
def volume(
    years: Annotated[float, typer.Option(min=0.05, help="Virtual years in a run.")] = 1.0,
    seeds: Annotated[int, typer.Option(min=1, help="Number of runs in every world.")] = 3,
    as_json: Json = False,
) -> None:
    raise typer.Exit(_benchmark("volume").run(years=years, seeds=seeds, as_json=as_json))


@commands.command(
    help=described(
        "Compare calls with hop and Xebu to calls with HTTP and XML over LAN, WLAN and GPRS, on"
        " virtual time. With --live, make the same calls through a running gateway to a device"
        " that has the service, and count the bytes of each call on its link by purpose.",
        "lasthop bench exchange",
        "lasthop bench exchange --seeds 3 --out figures",
        "lasthop bench exchange --live --calls 250",
    )
)
def exchange(
    calls: Annotated[
        list[int] | None,
        typer.Option(min=1, help="Number of calls; may be repeated. [50, 100, 150, 200, 250]"),
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Number of runs, each with other delays.")] = 10,
    folder: Annotated[
        Path | None,
        typer.Option("--out", metavar="DIR", help="Directory for the figures (PNG and CSV)."),
    ] = None,
    live: Annotated[
        bool,
        typer.Option("--live", help="Make the calls through a gateway over real sockets instead."),
    ] = False,
    as_json: Json = False,
) -> None:
    if live:
        if folder is not None:
            raise Failure(
                "--out cannot be used with --live: it draws only results on virtual time",
                exit_code=2,
            )
        most = max(calls or (250,))
        raise typer.Exit(_benchmark("exchange.live").run(calls=most, as_json=as_json))
    status = _benchmark("exchange.command").run(
        calls=calls or (50, 100, 150, 200, 250), seeds=seeds, folder=folder, as_json=as_json
    )
    raise typer.Exit(status)


@commands.command(
    help=described(
        "Run the pipeline over the log of a simulated fleet: events per second of every stage,"
        " by cores and by size, and the same queries in DuckDB.",
        "lasthop bench pipeline",
        "lasthop bench pipeline --events 20000000 --cores 2 --json",
    )
)
def pipeline(
    events: Annotated[
        list[int] | None,
        typer.Option(min=1000, help="Number of events; may be repeated. [2 and 20 million]"),
    ] = None,
    cores: Annotated[
        list[int] | None, typer.Option(min=1, help="Number of cores; may be repeated. [1, 2]")
    ] = None,
    log: Annotated[
        list[Path] | None,
        typer.Option(metavar="DIR", exists=True, help="Use this existing log; may be repeated."),
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
        "Test learned policies: let a simulated fleet use them from a certain day on, and"
        " compare them with the policies that they were learned from and with the predictive"
        " policy that has learned nothing. Without --policies, the policies are learned here, from"
        " the logs of fleets that learning was not developed with.",
        "lasthop bench loop --seeds 10 --json",
        "lasthop bench loop --policies data/policies/20261115T101500-1f3a9c02/policies.json",
    )
)
def loop(
    policies: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            exists=True,
            dir_okay=False,
            help="The policies.json file of a version. [learn them]",
        ),
    ] = None,
    seeds: Annotated[
        int, typer.Option(min=1, max=10, help="Number of fleets, without --policies.")
    ] = 10,
    devices: Annotated[
        int | None,
        typer.Option(min=1, help="Number of devices in a fleet. [2000; 100 without --policies]"),
    ] = None,
    days: Annotated[int, typer.Option(min=2, help="Number of virtual days.")] = 60,
    switch: Annotated[
        int, typer.Option(min=1, help="Days before the switch to the learned policies.")
    ] = 40,
    seed: Annotated[
        int, typer.Option(min=0, help="Seed of the fleet that the policies were learned from.")
    ] = 0,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="File for a plot (PNG).")] = None,
    as_json: Json = False,
) -> None:
    if policies is None:
        status = _benchmark("pipeline.command").run_judges(
            seeds=seeds, devices=devices or 100, days=days, switch=switch, as_json=as_json
        )
        raise typer.Exit(status)
    status = _benchmark("pipeline.command").run_loop(
        policies=policies,
        devices=devices or 2000,
        days=days,
        switch=switch,
        seed=seed,
        out=out,
        as_json=as_json,
    )
    raise typer.Exit(status)


@commands.command(
    help=described(
        "Follow a running gateway with the pipeline, and measure the seconds from an event to"
        " the tables.",
        "lasthop bench stream",
        "lasthop bench stream --rate 500 --seconds 60 --json",
    )
)
def stream(
    rate: Annotated[float, typer.Option(min=1, help="Messages per second.")] = 100.0,
    seconds: Annotated[
        float, typer.Option(min=1, help="Seconds during which messages are published.")
    ] = 120.0,
    directory: WorkIn = None,
    as_json: Json = False,
) -> None:
    status = _benchmark("pipeline.follow").run(
        rate=rate, seconds=seconds, directory=directory, as_json=as_json
    )
    raise typer.Exit(status)


@commands.command(
    help=described(
        "Repeat the experiments of the Odin paper: loss, order, latency, bytes and energy on"
        " WiFi and 3G, with and without breaks, compared with emulated push services; and a"
        " load test over real sockets.",
        "lasthop bench odin",
        "lasthop bench odin --out figures --no-load --json",
    )
)
def odin(
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            file_okay=False,
            help="Directory for PNG and HTML files. [none are written]",
        ),
    ] = None,
    load: Annotated[bool, typer.Option(help="Also run the load test over real sockets.")] = True,
    messages: Annotated[
        int, typer.Option(min=100, help="Number of messages in a load run.")
    ] = 5000,
    as_json: Json = False,
) -> None:
    with Status("odin", console=Console(stderr=True)) as status:
        code = _benchmark("odin.command").run(
            out=out, load=load, messages=messages, as_json=as_json, say=status.update
        )
    raise typer.Exit(code)


@commands.command(
    help=described(
        "Run a gateway for hours with devices that come and go, and watch its memory,"
        " descriptors, threads, disk and the delay of its event loop: flat after a warm-up, or"
        " growing, and by how much. Exits with 0 only if nothing grows and every message arrived"
        " once and in order.",
        "lasthop bench soak --hours 2",
        "lasthop bench soak --hours 0.2 --rate 100 --devices 200 --json",
    )
)
def soak(
    hours: Annotated[float, typer.Option(min=0.001, help="How long messages are published.")],
    rate: Annotated[float, typer.Option(min=1, help="Messages per second.")] = 500.0,
    devices: Annotated[int, typer.Option(min=1, help="Number of devices.")] = 1000,
    directory: WorkIn = None,
    as_json: Json = False,
) -> None:
    status = _benchmark("soak.command").run(
        hours=hours, rate=rate, devices=devices, directory=directory, as_json=as_json
    )
    raise typer.Exit(status)


@commands.command(
    help=described(
        "Send a gateway headers without end, slow clients, bombs, mutated requests and mutated hop"
        " frames, and watch its memory and /health from outside. Exits with 0 only if memory grew"
        " by at most 64 MB and /health always answered within 100 ms.",
        "lasthop bench hostile",
        "lasthop bench hostile --frames 10000 --requests 1000 --json",
    )
)
def hostile(
    frames: Annotated[int, typer.Option(min=1, help="Number of mutated hop frames.")] = 10_000_000,
    requests: Annotated[
        int, typer.Option(min=1, help="Number of mutated HTTP requests.")
    ] = 100_000,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the mutations.")] = 1,
    directory: WorkIn = None,
    as_json: Json = False,
) -> None:
    status = _benchmark("soak.hostile").run(
        frame_count=frames,
        request_count=requests,
        seed=seed,
        directory=directory,
        as_json=as_json,
    )
    raise typer.Exit(status)


@commands.command(
    "xml-tables",
    help=described(
        "Measure time, memory and footprint of XML processing, as in the thesis's tables 7.5,"
        " 7.7 and 7.9.",
        "lasthop bench xml-tables",
        "lasthop bench xml-tables --messages 50 --rounds 2 --json",
    ),
)
def xml_tables(
    messages: Annotated[int, typer.Option(min=2, max=200, help="Number of sample messages.")] = 200,
    files: Annotated[
        int, typer.Option(min=50, help="Number of files in the one large document.")
    ] = 20_000,
    rounds: Annotated[
        int, typer.Option(min=1, help="Number of times that everything is measured.")
    ] = 5,
    as_json: Json = False,
) -> None:
    status = _benchmark("xml_tables.command").run(
        messages=messages, files=files, rounds=rounds, as_json=as_json
    )
    raise typer.Exit(status)


def _benchmark(name: str) -> ModuleType:
    root = Path(lasthop.__file__).resolve().parents[2]
    if not (root / "bench" / "__init__.py").is_file():
        raise Failure("benchmarks come with the source tree only: run this command from a checkout")
    if str(root) not in sys.path:
        sys.path.insert(0, str(root))
    return import_module(f"bench.{name}")
