"""`lasthop sim last-hop` and `lasthop sim figure`: the last-hop simulator, and its figures."""

from __future__ import annotations

import os
import sys
import time
from contextlib import AbstractContextManager
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from lasthop.decision.policies import POLICIES
from lasthop.runtime.cli.options import Json, described
from lasthop.runtime.cli.output import say, say_json
from lasthop.runtime.cli.sim_sentences import reading_named
from lasthop.runtime.failure import Failure
from lasthop.simulation.last_hop.drawing import can_draw, write_csv, write_picture
from lasthop.simulation.last_hop.figures import FIGURES, measure, under
from lasthop.simulation.last_hop.parameters import Denominator, Distribution, LifeJudged, Parameters
from lasthop.simulation.last_hop.run import LastHopOutcome, run
from lasthop.simulation.last_hop.sentences import OURS
from lasthop.simulation.last_hop.sweep import Mapper, mapper

DEFAULTS = Parameters()


def join(commands: typer.Typer) -> None:
    """Add the `last-hop` and `figure` commands to their group."""
    commands.command(
        "last-hop",
        help=described(
            "Simulate a year of one topic on one device, and compare what a forwarding policy"
            " wastes and loses with the on-line policy on the same events. Events that lie"
            " unread at the end count as wasted.",
            "lasthop sim last-hop --policy buffer --prefetch-limit 16 --outage 0.9",
            "lasthop sim last-hop --policy expiration --max 0 --outage 0.9 --expiration 4.2 "
            "--expiration-threshold 8 --json",
        ),
    )(last_hop)
    commands.command(
        "figure",
        help=described(
            "Redraw a figure of the last-hop paper: figure-N.csv, and figure-N.png or .svg if"
            " matplotlib is installed. Figure 7 is ours: the predictive policy against"
            " expiration thresholds.",
            "lasthop sim figure 3",
            "lasthop sim figure 6 --seeds 3 --processes 1 --out figures",
            "lasthop sim figure 5 --seeds 20 --spark local[*]",
            "lasthop sim figure 5 --reading looks-wait --svg",
        ),
    )(figure)


def last_hop(
    event_frequency: Annotated[
        float, typer.Option(help="Events per day (Poisson).")
    ] = DEFAULTS.event_frequency,
    user_frequency: Annotated[
        float, typer.Option(help="Reads per day (normal), while awake.")
    ] = DEFAULTS.user_frequency,
    user_deviation: Annotated[
        float, typer.Option(help="Deviation of the reads per day, as a share of them.")
    ] = DEFAULTS.user_deviation,
    limit: Annotated[
        int, typer.Option("--max", min=0, help="Events in one read; 0 means no limit.")
    ] = DEFAULTS.max or 0,
    threshold: Annotated[
        float, typer.Option(help="Lowest rank that counts; ranks lie between 0 and 1.")
    ] = DEFAULTS.threshold,
    outage: Annotated[
        float,
        typer.Option(min=0, max=100, help="Share of the time without a link: 0 to 1, or percent."),
    ] = DEFAULTS.outage,
    outage_frequency: Annotated[
        float, typer.Option(help="Outages per day, on average (Poisson).")
    ] = DEFAULTS.outage_frequency,
    outage_deviation: Annotated[
        float, typer.Option(help="Deviation of an outage's length (gamma), as a multiple of it.")
    ] = DEFAULTS.outage_deviation,
    expiration: Annotated[
        float | None, typer.Option(help="Hours that an event lives on average. [for ever]")
    ] = None,
    expiration_distribution: Annotated[
        Distribution, typer.Option(help="Distribution of the lifetimes.")
    ] = DEFAULTS.expiration_distribution,
    expiring_portion: Annotated[
        float, typer.Option(min=0, max=1, help="Share of the events that expire.")
    ] = DEFAULTS.expiring_portion,
    rank_drop: Annotated[
        float,
        typer.Option(
            min=0, max=1, help="Share of the events whose rank falls below the threshold."
        ),
    ] = DEFAULTS.rank_drop,
    rank_drop_delay: Annotated[
        float, typer.Option(help="Hours until the rank falls, on average (exponential).")
    ] = DEFAULTS.rank_drop_delay,
    storage: Annotated[
        int | None,
        typer.Option(min=1, help="Unread events that the device has room for. [any number]"),
    ] = None,
    policy: Annotated[
        str, typer.Option(metavar="|".join(POLICIES), help="The policy that forwards events.")
    ] = DEFAULTS.policy,
    prefetch_limit: Annotated[
        int | None,
        typer.Option(min=0, help="Unread events to keep on the device, for the buffer policy."),
    ] = None,
    expiration_threshold: Annotated[
        float | None,
        typer.Option(min=0, help="Hours that an event must have left to be sent ahead."),
    ] = None,
    price: Annotated[
        float,
        typer.Option(
            min=0, help="Wasted events that equal one lost event, for the predictive policy."
        ),
    ] = DEFAULTS.price,
    loss_of: Annotated[
        Denominator, typer.Option(help="What a loss is a share of.")
    ] = DEFAULTS.loss_of,
    life_judged: Annotated[
        LifeJudged,
        typer.Option(help="When the expiration policy compares a life with its threshold."),
    ] = DEFAULTS.life_judged,
    reads_wait: Annotated[
        bool,
        typer.Option(
            "--reads-wait", help="A look without a link is answered when the link is back."
        ),
    ] = DEFAULTS.reads_wait,
    years: Annotated[float, typer.Option(help="Number of virtual years.")] = DEFAULTS.years,
    seed: Annotated[int, typer.Option(help="Seed of the random events.")] = DEFAULTS.seed,
    as_json: Json = False,
) -> None:
    try:
        parameters = Parameters(
            event_frequency=event_frequency,
            user_frequency=user_frequency,
            user_deviation=user_deviation,
            max=limit or None,
            threshold=threshold,
            outage=outage / 100 if outage > 1 else outage,
            outage_frequency=outage_frequency,
            outage_deviation=outage_deviation,
            expiration=expiration,
            expiration_distribution=expiration_distribution,
            expiring_portion=expiring_portion,
            rank_drop=rank_drop,
            rank_drop_delay=rank_drop_delay,
            storage=storage,
            policy=policy,
            prefetch_limit=prefetch_limit,
            expiration_threshold=expiration_threshold,
            price=price,
            loss_of=loss_of,
            life_judged=life_judged,
            reads_wait=reads_wait,
            years=years,
            seed=seed,
        )
    except ValueError as error:
        raise Failure(str(error), exit_code=2) from None
    began = time.process_time()
    outcome = run(parameters)
    if as_json:
        say_json(outcome.as_dict())
    else:
        _report(parameters, outcome, time.process_time() - began)


def _report(parameters: Parameters, outcome: LastHopOutcome, seconds: float) -> None:
    o, p = outcome, parameters
    say(f"{o.events} events, {o.read_online} read on-line, {o.read_policy} read")
    say(f"waste {o.waste:.2%}: {o.wasted} of {o.forwarded} forwarded and never read")
    of_read = p.loss_of is Denominator.READ
    whole = f"{o.read_online}" if of_read else f"{o.events} events were"
    say(f"loss  {o.loss:.2%}: {o.lost} of {whole} read on-line and not with this policy")
    speed = p.years / seconds if seconds else float("inf")
    say(f"{speed:.1f} virtual years per second on one core, both policies")


def figure(
    number: Annotated[int, typer.Argument(min=1, max=max(FIGURES), help="Number of the figure.")],
    seeds: Annotated[
        int, typer.Option(min=1, help="Number of runs of every point, for the error bars.")
    ] = 5,
    years: Annotated[float, typer.Option(min=0.01, help="Virtual years in a run.")] = 1.0,
    processes: Annotated[
        int | None, typer.Option(min=1, help="Number of processes. [one per core]")
    ] = None,
    spark: Annotated[
        str | None,
        typer.Option(
            metavar="MASTER",
            help="Run on Spark: local[*], spark://HOST:PORT, sc://HOST:PORT. The numbers are"
            " the same.",
        ),
    ] = None,
    reading: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="What is assumed where the paper leaves something open: see sim sentences.",
        ),
    ] = "ours",
    svg: Annotated[bool, typer.Option("--svg", help="Draw SVG, and not PNG.")] = False,
    out: Annotated[
        Path, typer.Option(metavar="DIR", file_okay=False, help="Directory for the files.")
    ] = Path(),
    as_json: Json = False,
) -> None:
    chosen = reading_named(reading)
    what = under(FIGURES[number](), chosen.of)
    with (
        Progress(
            TextColumn(f"figure {number}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            disable=as_json or not sys.stderr.isatty(),
            transient=True,
        ) as bar,
        _mapper(spark, processes) as mapped,
    ):
        task = bar.add_task("runs", total=len(what.points) * seeds)
        rows = measure(
            what, seeds=seeds, years=years, mapper=mapped, progress=lambda: bar.advance(task)
        )
    out.mkdir(parents=True, exist_ok=True)
    name = f"figure-{number}" if chosen is OURS else f"figure-{number}-{chosen.name}"
    files = [out / f"{name}.csv"]
    write_csv(rows, files[0])
    if can_draw():
        files.append(out / f"{name}.{'svg' if svg else 'png'}")
        write_picture(what, rows, files[1])
    if as_json:
        say_json({"figure": number, "files": [str(path) for path in files], "points": rows})
        return
    for path in files:
        say(str(path))
    if not can_draw():
        say("no picture without matplotlib: pip install 'lasthop[plots]'")


def _mapper(spark: str | None, processes: int | None) -> AbstractContextManager[Mapper]:
    """Return what distributes the runs: Spark or local processes, with the same results."""
    if spark is None:
        return mapper(processes or os.cpu_count() or 1)
    if processes is not None:
        raise Failure("--spark and --processes cannot be used together", exit_code=2)
    if find_spec("pyspark") is None:
        raise Failure("--spark needs Spark: pip install 'lasthop[pipeline]'")
    from lasthop.pipeline.sweep import spark_mapper  # noqa: PLC0415

    return spark_mapper(spark)
