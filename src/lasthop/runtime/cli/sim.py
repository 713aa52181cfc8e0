"""`lasthop sim`: simulate, on virtual time, situations that would take years or luck to observe in
reality."""

from __future__ import annotations

import sys
from typing import Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from lasthop.runtime.cli import sim_energy, sim_fleet, sim_heartbeat, sim_last_hop, sim_sentences
from lasthop.runtime.cli.options import Json, described, new_commands
from lasthop.runtime.cli.output import say, say_json
from lasthop.simulation.campaign import Tally, campaign

commands = new_commands("Simulate gateways, devices and networks on virtual time.")
sim_last_hop.join(commands)
sim_sentences.join(commands)
sim_heartbeat.join(commands)
sim_fleet.join(commands)
sim_energy.join(commands)


@commands.callback()
def _group() -> None:
    """Simulate gateways, devices and networks on virtual time."""


@commands.command(
    "faults",
    help=described(
        "Run random fault schedules: gateway and devices crash, links of every kind break at"
        " any byte, devices change links. No accepted message may be lost, shown twice or shown"
        " out of order.",
        "lasthop sim faults --schedules 2000 --seed 1",
        "lasthop sim faults --schedules 1 --seed 4711   # one schedule, again",
    ),
)
def faults(
    schedules: Annotated[int, typer.Option(min=1, help="Number of schedules to run.")] = 200,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the first schedule.")] = 0,
    messages: Annotated[
        int, typer.Option(min=1, help="Least number of messages in a schedule.")
    ] = 50,
    sqlite_every: Annotated[
        int,
        typer.Option(
            min=0, help="Run every Nth schedule on SQLite with its log cut; 0 means none."
        ),
    ] = 20,
    processes: Annotated[
        int | None, typer.Option(min=1, help="Number of processes. [one per core]")
    ] = None,
    as_json: Json = False,
) -> None:
    _campaign("hop", schedules, seed, messages, sqlite_every, processes, as_json=as_json)


@commands.command(
    "pap",
    help=described(
        "Run random fault schedules of the Push Proxy Gateway: it crashes, initiators are away"
        " for an hour, devices never come. Every address of every push must end in one state,"
        " which is reported to its initiator.",
        "lasthop sim pap --schedules 500 --seed 1",
        "lasthop sim pap --schedules 1 --seed 4711   # one schedule, again",
    ),
)
def pap(
    schedules: Annotated[int, typer.Option(min=1, help="Number of schedules to run.")] = 200,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the first schedule.")] = 0,
    pushes: Annotated[int, typer.Option(min=1, help="Number of pushes in a schedule.")] = 20,
    sqlite_every: Annotated[
        int,
        typer.Option(
            min=0, help="Run every Nth schedule on SQLite with its log cut; 0 means none."
        ),
    ] = 20,
    processes: Annotated[
        int | None, typer.Option(min=1, help="Number of processes. [one per core]")
    ] = None,
    as_json: Json = False,
) -> None:
    _campaign("pap", schedules, seed, pushes, sqlite_every, processes, as_json=as_json)


@commands.command(
    "air",
    help=described(
        "Run random fault schedules over the air: the gateway crashes, datagrams are lost,"
        " doubled and late, handsets lose their memory. Every accepted message must end in one"
        " state, and the true one.",
        "lasthop sim air --schedules 500 --seed 1",
        "lasthop sim air --schedules 1 --seed 4711   # one schedule, again",
    ),
)
def air(
    schedules: Annotated[int, typer.Option(min=1, help="Number of schedules to run.")] = 200,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the first schedule.")] = 0,
    messages: Annotated[int, typer.Option(min=1, help="Number of messages in a schedule.")] = 30,
    sqlite_every: Annotated[
        int,
        typer.Option(
            min=0, help="Run every Nth schedule on SQLite with its log cut; 0 means none."
        ),
    ] = 20,
    processes: Annotated[
        int | None, typer.Option(min=1, help="Number of processes. [one per core]")
    ] = None,
    as_json: Json = False,
) -> None:
    _campaign("air", schedules, seed, messages, sqlite_every, processes, as_json=as_json)


def _campaign(
    stage: str,
    schedules: int,
    seed: int,
    messages: int,
    sqlite_every: int,
    processes: int | None,
    *,
    as_json: bool,
) -> None:
    with Progress(
        TextColumn("fault schedules"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        disable=as_json or not sys.stderr.isatty(),
        transient=True,
    ) as bar:
        task = bar.add_task("schedules", total=schedules)
        tally = campaign(
            schedules=schedules,
            seed=seed,
            messages=messages,
            sqlite_every=sqlite_every,
            processes=processes,
            stage=stage,
            progress=lambda tally: bar.update(task, completed=tally.schedules),
        )
    if as_json:
        say_json(tally.as_dict())
    else:
        _report(tally, "faults" if stage == "hop" else stage)
    if not tally.good:
        raise typer.Exit(1)


def _report(tally: Tally, command: str) -> None:
    say(f"{tally.schedules} schedules, {tally.messages} messages")
    say(f"{tally.crashes} crashes, {tally.commits} commits")
    say(f"lost {tally.lost}, duplicated {tally.duplicated}, misordered {tally.misordered}")
    say(f"untrue {tally.untrue} (a state, an answer or the log contradicts what happened)")
    if tally.failing_seed is not None:
        say(f"failing seed {tally.failing_seed}: {tally.why}")
        say(f"run it again: lasthop sim {command} --schedules 1 --seed {tally.failing_seed}")
