"""`lasthop demo`: show the whole system at work, and report what happened."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import Annotated

import msgspec
import typer
import uvloop

from lasthop.runtime.cli.options import Json, described, new_commands
from lasthop.runtime.cli.output import say, say_json
from lasthop.runtime.demo import learning
from lasthop.runtime.demo.performance import perform
from lasthop.runtime.demo.report import DemoReport, lines, rest
from lasthop.runtime.demo.show import StandingShow
from lasthop.runtime.demo.stage import DemoPlan, Stage
from lasthop.runtime.failure import Failure

commands = new_commands()

SHORTEST = 10
MOST_DEVICES = 200
"""The largest number of devices: each has sockets and an inbox on the disk, all in one process."""


@commands.command(
    help=described(
        "Run a gateway with devices on bad links, publishers and the pipeline, and report what"
        " was delivered, lost, wasted and learned. Data is removed at the end unless --data is"
        " given.",
        "lasthop demo",
        "lasthop demo --seconds 180 --json",
        "lasthop demo --devices 30 --no-pipeline",
    )
)
def demo(
    seconds: Annotated[
        int | None,
        typer.Option(
            min=SHORTEST,
            metavar="N",
            help="End so many seconds after everything is set up. [run until stopped]",
        ),
    ] = None,
    devices: Annotated[
        int, typer.Option(min=1, max=MOST_DEVICES, metavar="N", help="Number of devices.")
    ] = 12,
    data: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Keep the gateway's data in this directory. [removed at the end]"
        ),
    ] = None,
    http: Annotated[
        str | None,
        typer.Option(metavar="HOST:PORT", help="The gateway's HTTP port. [8080, or any free port]"),
    ] = None,
    tcp: Annotated[
        str | None,
        typer.Option(metavar="HOST:PORT", help="The gateway's TCP port. [7300, or any free port]"),
    ] = None,
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of all random choices.")] = 1,
    no_pipeline: Annotated[
        bool, typer.Option("--no-pipeline", help="Leave out the pipeline, which needs Java.")
    ] = False,
    as_json: Json = False,
) -> None:
    if data is not None and data.exists() and (not data.is_dir() or any(data.iterdir())):
        raise Failure(f"{data} is not empty; the demo needs an empty or new directory", exit_code=2)
    why = "--no-pipeline" if no_pipeline else learning.impossible()
    with tempfile.TemporaryDirectory(prefix="lasthop-demo-") as scratch:
        plan = DemoPlan(
            data=data if data is not None else Path(scratch) / "data",
            scratch=Path(scratch),
            devices=devices,
            seconds=seconds,
            http=http,
            tcp=tcp,
            seed=seed,
            no_learning=why or "",
        )
        show = StandingShow(quiet=as_json)
        if why and not no_pipeline and not as_json:
            say(f"nothing will be learned: {why}")

        def opened(stage: Stage, page: str) -> None:
            if not as_json:
                _greet(stage, page, plan)

        people = _People()
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(
                perform(plan, show, opened=opened, report=_machines if as_json else people.hear)
            )


def _greet(stage: Stage, page: str, plan: DemoPlan) -> None:
    kinds = sorted({member.person.profile.name for member in stage.cast.fleet.members})
    say(f"{plan.devices} devices on {', '.join(kinds)}; publishers over REST and PAP")
    say(f"  look at     {page}")
    say(f"  publishers  {stage.gateway.places.http}")
    say(f"  data        {plan.data}")
    say()


def _machines(report: DemoReport) -> None:
    say_json(msgspec.to_builtins(report))


class _People:
    """Prints a report for people: the whole report once, and later only what was added to it."""

    def __init__(self) -> None:
        self._waiting = False

    def hear(self, report: DemoReport) -> None:
        for line in rest(report) if self._waiting else lines(report):
            say(line)
        say()
        self._waiting = not report.complete
