"""`lasthop chaos`: break everything that can break, and count what was lost."""

from __future__ import annotations

import asyncio
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Annotated

import msgspec
import typer
import uvloop

from lasthop.runtime.chaos.movable_clock import check_library
from lasthop.runtime.chaos.report import ChaosReport, lines
from lasthop.runtime.chaos.run import perform
from lasthop.runtime.chaos.stage import ChaosPlan
from lasthop.runtime.cli.options import Json, described, new_commands
from lasthop.runtime.cli.output import say, say_json
from lasthop.runtime.failure import Failure

commands = new_commands()

SHORTEST = 10
"""Seconds for processes to start, for some faults, and for everything to arrive."""

STOPPED = 130
"""The exit code that shells use for a command that Ctrl-C ended."""


@commands.command(
    help=described(
        "Start a gateway, devices in Python and JavaScript, and publishers over REST and PAP; kill"
        " and freeze them, cut, delay, corrupt, half-close and black-hole their connections, fill"
        " the disk. A ledger that asks the gateway nothing compares what publishers were answered"
        " with what devices got. Exits with 0 only if nothing was lost, duplicated, misordered,"
        " untrue or stuck.\n\n"
        "Faults are drawn from the seed, and their schedule repeats with it; the timing of"
        " processes does not. With --plain there is no TLS, and links of devices are corrupted all"
        " the same: their checksums notice. The gateway's disk is a tmpfs in namespaces of its own:"
        " where the system allows nobody to make some, it is not filled. Clocks are moved by an"
        " hour with --faketime only, because a user's gateway does not run with such a library."
        " What was not done is in the report. Nothing is left behind.",
        "lasthop chaos --seconds 60",
        "lasthop chaos --seconds 600 --seed 7 --json",
        "lasthop chaos --seconds 60 --plain --keep evidence",
        "lasthop chaos --faketime /usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1",
    )
)
def chaos(
    seconds: Annotated[
        int, typer.Option(min=SHORTEST, metavar="N", help="How long, once it is set up.")
    ] = 60,
    seed: Annotated[int, typer.Option(min=0, metavar="S", help="Of the schedule of faults.")] = 1,
    plain: Annotated[
        bool, typer.Option("--plain", help="Without TLS; links of publishers are not corrupted.")
    ] = False,
    faketime: Annotated[
        Path | None,
        typer.Option(
            metavar="LIBRARY",
            help="Move clocks too, by libfaketimeMT.so.1, which all processes are started with.",
        ),
    ] = None,
    keep: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Keep all files of the run here. [removed at the end]"),
    ] = None,
    as_json: Json = False,
) -> None:
    if sys.platform != "linux":
        raise Failure("chaos needs Linux: it looks into /proc, and its processes die with it")
    if keep is not None:
        keep.mkdir(parents=True, exist_ok=True)
        if any(keep.iterdir()):
            raise Failure(f"{keep} is not empty; a run wants a directory of its own", exit_code=2)
    if faketime is not None:
        check_library(faketime)
    with tempfile.TemporaryDirectory(prefix="lasthop-chaos-") as scratch:
        plan = ChaosPlan(
            seconds=seconds,
            seed=seed,
            scratch=(keep or Path(scratch)).resolve(),
            keep=keep is not None,
            tls=not plain,
            faketime=faketime and faketime.resolve(),
        )
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            report = runner.run(_perform(plan))
    if as_json:
        say_json(msgspec.to_builtins(report))
    else:
        for line in lines(report):
            say(line)
    if not report.good:
        raise Failure("a promise was broken: see the report")


async def _perform(plan: ChaosPlan) -> ChaosReport:
    """Run until the end or a signal; everything is removed in both cases."""
    began = time.monotonic()

    def tell(line: str) -> None:
        print(f"{time.monotonic() - began:6.1f} s  {line}", file=sys.stderr, flush=True)

    loop = asyncio.get_running_loop()
    performing = asyncio.ensure_future(perform(plan, tell))
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, performing.cancel)
    try:
        return await performing
    except asyncio.CancelledError:
        raise Failure("stopped before there was a report", exit_code=STOPPED) from None
