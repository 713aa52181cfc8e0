"""`lasthop pipeline`: make tables, policies and answers from the event log, with Spark."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import msgspec
import typer
from rich.console import Console

from lasthop.eventlog.following import follow
from lasthop.policy import decode
from lasthop.policy.store import PolicyStore
from lasthop.policy.trial import FIRST_PERCENT
from lasthop.runtime.cli.options import Json, described, new_commands
from lasthop.runtime.cli.output import say, say_json
from lasthop.runtime.failure import Failure
from lasthop.runtime.places import LAKE_DIRECTORY, LOG_DIRECTORY, POLICY_DIRECTORY

if TYPE_CHECKING:
    from lasthop.pipeline.jobs import Pipeline, RunOutcome
    from lasthop.pipeline.stream import StreamProgress
    from lasthop.pipeline.summary import PipelineSummary

commands = new_commands("Build tables and learn policies from the event log, with Spark.")

Data: TypeAlias = Annotated[
    Path,
    typer.Option("--data", metavar="DIR", help="The gateway's data directory.", file_okay=False),
]
Log: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--log", metavar="DIR", help="The event log, or a directory of several logs. [data/log]"
    ),
]
LakeFolder: TypeAlias = Annotated[
    Path | None,
    typer.Option("--lake", metavar="DIR", help="The directory of the tables. [data/lake]"),
]
Master: TypeAlias = Annotated[
    str,
    typer.Option(
        "--master", metavar="URL", help="Spark's master: local[*], spark://host:7077, yarn, k8s://"
    ),
]
Remote: TypeAlias = Annotated[
    str | None,
    typer.Option("--remote", metavar="URL", help="Use a Spark Connect server: sc://host:15002"),
]
Conf: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--conf", metavar="KEY=VALUE", help="A setting of Spark; may be repeated."),
]

DEFAULT_DATA = Path("lasthop-data")

RENEWED = 10
"""Seconds after which the stream tells the gateway again to keep the segments that it has not
read."""


@commands.callback()
def _group() -> None:
    """Build tables and learn policies from the event log, with Spark."""


@contextmanager
def opened(
    data: Path,
    log: Path | None,
    lake: Path | None,
    *,
    master: str,
    remote: str | None,
    conf: list[str] | None,
    say_line: Callable[[str], None] = lambda line: None,
) -> Iterator[Pipeline]:
    """Open the pipeline of a data directory, and yield it with a Spark session until it is
    closed."""
    if find_spec("pyspark") is None:
        raise Failure("the pipeline needs Spark: pip install 'lasthop[pipeline]'")
    from lasthop.pipeline.jobs import Pipeline  # noqa: PLC0415
    from lasthop.pipeline.lake import Lake  # noqa: PLC0415
    from lasthop.pipeline.session import SparkError, open_session  # noqa: PLC0415

    settings = {}
    for pair in conf or ():
        key, equals, value = pair.partition("=")
        if not equals or not key.startswith("spark."):
            raise Failure(f"--conf {pair}: a setting is spark.NAME=VALUE", exit_code=2)
        settings[key] = value
    where = log or data / LOG_DIRECTORY
    if not where.is_dir():
        raise Failure(f"there is no event log in {where}")
    say_line("starting Spark")
    spark = open_session(master=master, remote=remote, settings=settings)
    try:
        yield Pipeline(spark, where, Lake(lake or data / LAKE_DIRECTORY), say=say_line)
    except SparkError as error:
        said = str(error).strip().splitlines()
        raise Failure(f"Spark failed: {said[0] if said else type(error).__name__}") from error
    finally:
        spark.stop()


@contextmanager
def progress(quiet: bool) -> Iterator[Callable[[str], None]]:
    """Yield a function that shows on the terminal what is being made, and for how long."""
    console = Console(stderr=True)
    if quiet or not sys.stderr.isatty():
        yield lambda line: None
        return
    began = time.monotonic()
    with console.status("…") as status:
        yield lambda line: status.update(f"{line} ({time.monotonic() - began:.0f} s)")


@commands.command(
    "run",
    help=described(
        "Read the new events of the log, and bring all tables up to date. It can be repeated"
        " and killed safely.",
        "lasthop pipeline run --data ./data",
        "lasthop pipeline run --log /logs --lake /lake --master spark://spark:7077 --json",
    ),
)
def run(
    data: Data = DEFAULT_DATA,
    log: Log = None,
    lake: LakeFolder = None,
    master: Master = "local[*]",
    remote: Remote = None,
    conf: Conf = None,
    as_json: Json = False,
) -> None:
    with (
        progress(as_json) as show_step,
        opened(
            data, log, lake, master=master, remote=remote, conf=conf, say_line=show_step
        ) as pipeline,
    ):
        outcome = pipeline.run()
        show_step("summing up")
        _sum_up(pipeline)
    if as_json:
        say_json(msgspec.to_builtins(outcome))
    else:
        _report(outcome)


def _sum_up(pipeline: Pipeline) -> PipelineSummary:
    """Write the summary that the gateway's dashboard shows."""
    from lasthop.pipeline.summary import summarise, write  # noqa: PLC0415

    summary = summarise(pipeline, time.time_ns() // 1000)
    write(pipeline, summary)
    return summary


def _report(outcome: RunOutcome) -> None:
    done = outcome.ingested
    say(f"{done.events} new events in {done.batches} batches; {len(outcome.days)} days made")
    for stage, seconds in outcome.seconds.items():
        say(f"  {stage:10} {seconds:8.1f} s")
    for table, rows in outcome.rows.items():
        say(f"  {table:24} {rows:12} rows")
    if outcome.duplicates:
        say(f"{outcome.duplicates} events came more than once, and count once")
    for problem, lines in sorted(outcome.problems.items()):
        say(f"{lines} {problem} lines are in quarantine")
    for path in outcome.foreign_files:
        say(f"not a segment, not read: {path}")
    if outcome.missing_offsets:
        stores = ", ".join(f"{store} {missing}" for store, missing in outcome.gaps.items())
        say(f"{outcome.missing_offsets} offsets of the log never came: {stores}")
    if outcome.orphans:
        say(f"{outcome.orphans} events belong to deliveries whose beginning is not in the log")
    if done.newer:
        say(f"{done.newer} events have a newer schema, and were read as far as it is known")
    found = outcome.agreement
    if found.devices:
        say(
            f"the model of the live policies does what was logged with {found.share:.2%} of"
            f" messages; {found.trusted} of {found.devices} devices can be learned from"
        )
    for device in found.worst:
        say(f"  not from {device.app}/{device.dev}: {device.difference}")


@commands.command(
    "compact",
    help=described(
        "Join the small files of each day, and delete days that are older than --keep-days.",
        "lasthop pipeline compact --data ./data --keep-days 400",
    ),
)
def compact(
    data: Data = DEFAULT_DATA,
    log: Log = None,
    lake: LakeFolder = None,
    keep_days: Annotated[
        int | None,
        typer.Option(min=1, help="Delete days older than this from every table. [keep all]"),
    ] = None,
    most_files: Annotated[
        int, typer.Option(min=1, help="Leave days with at most so many files.")
    ] = 4,
    master: Master = "local[*]",
    remote: Remote = None,
    conf: Conf = None,
    as_json: Json = False,
) -> None:
    with opened(data, log, lake, master=master, remote=remote, conf=conf) as pipeline:
        from lasthop.pipeline import upkeep  # noqa: PLC0415

        with pipeline.lake.locked():
            compacted = upkeep.compact(pipeline.spark, pipeline.lake, most_files=most_files)
            gone = 0
            if keep_days is not None:
                today = datetime.now(UTC).date()
                gone = upkeep.retain(pipeline.lake, days=keep_days, today=today)
    result: dict[str, Any] = {"compacted_days": compacted, "deleted_directories": gone}
    if as_json:
        say_json(result)
    else:
        say(f"{compacted} days compacted, {gone} directories deleted")


PolicyFolder: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--policies", metavar="DIR", help="The directory of the versions. [data/policies]"
    ),
]


@commands.command(
    "learn",
    help=described(
        "Learn policies from the tables as a new version, which is first on trial: it decides for"
        " 5 % of the devices until it is promoted or taken back (lasthop policy status).",
        "lasthop pipeline learn --data ./data",
        "lasthop pipeline learn --data ./data --update",
        "lasthop pipeline learn --data ./data --percent 100   # in force at once, without a trial",
        "lasthop pipeline learn --loss-budget 0.05 --loss-budget alerts=0.01",
        "lasthop pipeline learn --from 2026-09-01 --until 2026-10-10 --dry-run --json",
    ),
)
def learn(
    data: Data = DEFAULT_DATA,
    log: Log = None,
    lake: LakeFolder = None,
    policies: PolicyFolder = None,
    first: Annotated[
        datetime | None,
        typer.Option("--from", formats=["%Y-%m-%d"], help="First day to learn from. [oldest]"),
    ] = None,
    last: Annotated[
        datetime | None,
        typer.Option("--until", formats=["%Y-%m-%d"], help="Last day to learn from. [newest]"),
    ] = None,
    update: Annotated[
        bool,
        typer.Option(
            "--update",
            help="First read the new events of the log, and update the tables that are learned"
            " from.",
        ),
    ] = False,
    loss_budget: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SHARE|APP=SHARE",
            help="The share of messages that an app may lose, from 0 to 1; may be repeated."
            " [what the predictive policy loses]",
        ),
    ] = None,
    percent: Annotated[
        float,
        typer.Option(
            min=0.1, max=100, help="Percent of the devices on trial; 100: in force, no trial."
        ),
    ] = FIRST_PERCENT,
    note: Annotated[str, typer.Option(help="A note that is kept with the version.")] = "",
    dry_run: Annotated[bool, typer.Option(help="Learn, but put nothing in force.")] = False,
    master: Master = "local[*]",
    remote: Remote = None,
    conf: Conf = None,
    as_json: Json = False,
) -> None:
    budgets = dict(map(_budget, loss_budget or ()))
    with (
        progress(as_json) as show_step,
        opened(
            data, log, lake, master=master, remote=remote, conf=conf, say_line=show_step
        ) as pipeline,
    ):
        from lasthop.pipeline.learn import DaySpan, learn  # noqa: PLC0415

        if update:
            show_step("reading the log")
            pipeline.prepare()
        days = pipeline.lake.dates("silver", "events")
        if not days:
            raise Failure("there are no tables yet; make them with: lasthop pipeline run")
        show_step("learning")
        span = DaySpan(
            first.date() if first is not None else days[0],
            last.date() if last is not None else days[-1],
        )
        made_at = int(time.time() * 1e6)
        made = learn(pipeline, span, made_at=made_at, note=note, budgets=budgets)
    version = None
    if not dry_run:
        version = PolicyStore(policies or data / POLICY_DIRECTORY).publish(made, percent=percent)
    facts = {
        "version": version,
        "percent": percent,
        "devices": len(made.devices),
        "segments": len(made.segments),
        "networks": len(made.heartbeats),
        "lineage": msgspec.to_builtins(made.lineage),
    }
    if as_json:
        say_json(facts)
        return
    held = made.lineage.held_out
    say(f"{version or 'not published'}: {made.lineage.first_day} to {made.lineage.last_day}")
    if version and percent < 100:
        say(f"on trial on {percent:g} % of the devices; lasthop policy status says how it does")
    say(f"{len(made.devices)} choices for devices, {len(made.heartbeats)} networks")
    for name in ("waste", "loss"):
        say(
            f"  {name:6} {held[name]:7.2%} on held-out days, live {held['live_' + name]:7.2%},"
            f" predictive without learning {held['predictive_' + name]:7.2%}"
        )
    for app, budget in made.lineage.budgets.items():
        missed = ", which no choice kept: it has the least loss"
        say(f"  {app}: may lose {budget:.2%}{missed if app in made.lineage.over_budget else ''}")
    if made.lineage.refused:
        say(
            f"  not learned from {held['refused']:.0f} devices, whose log the model of the live"
            f" policies does not reproduce: {', '.join(made.lineage.refused)}"
        )


def _budget(text: str) -> tuple[str, float]:
    """Return the app (empty: every other app) and the share of a budget of loss."""
    app, equals, share = text.rpartition("=")
    try:
        value = float(share)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1 or (equals and not app):
        raise Failure(
            f"--loss-budget {text}: a budget is SHARE or APP=SHARE, from 0 to 1", exit_code=2
        )
    return app, value


@commands.command(
    "policies",
    help=described(
        "List the versions of the learned policies, and mark the one in force (*) and the one on"
        " trial (?).",
        "lasthop pipeline policies --data ./data",
    ),
)
def list_policies(
    data: Data = DEFAULT_DATA, policies: PolicyFolder = None, as_json: Json = False
) -> None:
    policy_store = PolicyStore(policies or data / POLICY_DIRECTORY)
    pointer = policy_store.pointer()
    current = pointer.version if pointer is not None else None
    trial = policy_store.trial()
    tried = trial.version if trial is not None and trial.running else None
    rows = []
    for version in policy_store.versions():
        lineage = policy_store.read(version).lineage
        in_force, on_trial = version == current, version == tried
        rows.append(
            {
                "version": version,
                "in_force": in_force,
                "on_trial": on_trial,
                "lineage": lineage,
            }
        )
        if not as_json:
            mark = "*" if in_force else "?" if on_trial else " "
            held = lineage.held_out
            gain = ""
            if held:
                gain = f", waste {held['waste']:.2%}, loss {held['loss']:.2%} on held-out days"
            say(f"{mark} {version}  {lineage.first_day} to {lineage.last_day}{gain} {lineage.note}")
    if as_json:
        say_json(rows)
    elif not rows:
        say("no versions yet; learn one with: lasthop pipeline learn")


@commands.command(
    "rollback",
    help=described(
        "Put the previous version of the learned policies in force again. A running gateway"
        " follows within seconds.",
        "lasthop pipeline rollback --data ./data",
    ),
)
def rollback(
    data: Data = DEFAULT_DATA, policies: PolicyFolder = None, as_json: Json = False
) -> None:
    version = PolicyStore(policies or data / POLICY_DIRECTORY).roll_back()
    if as_json:
        say_json({"version": version})
    else:
        say(f"{version} is in force")


@commands.command(
    "whatif",
    help=described(
        "Replay the log through the real engine under another policy, and compare the results"
        " with the live policy. Figures of the other policy are estimates.",
        "lasthop pipeline whatif --policy predictive:price=2",
        "lasthop pipeline whatif --policy ./policies/20261115T101500-1f3a9c02/policies.json --json",
    ),
)
def what_if(
    policy: Annotated[
        str,
        typer.Option(
            metavar="FILE|NAME",
            help="A version's file or name, or a policy: unified, predictive:price=2, ...",
        ),
    ],
    data: Data = DEFAULT_DATA,
    log: Log = None,
    lake: LakeFolder = None,
    policies: PolicyFolder = None,
    first: Annotated[
        datetime | None,
        typer.Option("--from", formats=["%Y-%m-%d"], help="First day to replay. [oldest]"),
    ] = None,
    last: Annotated[
        datetime | None,
        typer.Option("--until", formats=["%Y-%m-%d"], help="Last day to replay. [newest]"),
    ] = None,
    master: Master = "local[*]",
    remote: Remote = None,
    conf: Conf = None,
    as_json: Json = False,
) -> None:
    if find_spec("pyspark") is None:
        raise Failure("the pipeline needs Spark: pip install 'lasthop[pipeline]'")
    from lasthop.pipeline.what_if import answer, named  # noqa: PLC0415

    policy_store = PolicyStore(policies or data / POLICY_DIRECTORY)
    if Path(policy).is_file():
        chosen: Any = decode(Path(policy).read_bytes())
    elif policy in policy_store.versions():
        chosen = policy_store.read(policy)
    else:
        chosen = named(policy)
    with (
        progress(as_json) as show_step,
        opened(
            data, log, lake, master=master, remote=remote, conf=conf, say_line=show_step
        ) as pipeline,
    ):
        events = pipeline.silver("events")
        if first is not None:
            events = events.where(events["date"] >= first.date())
        if last is not None:
            events = events.where(events["date"] <= last.date())
        show_step("replaying")
        result = answer(events, chosen, name=policy)
    if as_json:
        say_json(msgspec.to_builtins(result))
        return
    say(
        f"{result.devices} devices; the live policy takes {result.reproduced} of "
        f"{result.decisions} logged decisions again"
    )
    if result.first_difference:
        say(f"first difference: {result.first_difference}")
    say(f"{'':16}{'live':>14}{'estimate':>14}{'change':>14}   95 % interval of the change")
    for name, change in result.difference.items():
        scale, unit = (1e-6, " s") if name == "latency" else (1.0, "")
        values = (result.live[name].value, result.estimate[name].value, change.value)
        cells = "".join(f"{value * scale:>{14 - len(unit)}.4f}{unit}" for value in values)
        low, high = change.low * scale, change.high * scale
        say(f"{name:16}{cells}   {low:.4f} to {high:.4f}")
    say(result.note)


@commands.command(
    "stream",
    help=described(
        "Follow the log, and bring the silver and operational tables up to date every few seconds.",
        "lasthop pipeline stream --data ./data",
        "lasthop pipeline stream --data ./data --every 10 --json",
    ),
)
def stream(
    data: Data = DEFAULT_DATA,
    log: Log = None,
    lake: LakeFolder = None,
    every: Annotated[
        float, typer.Option(min=0.1, help="Seconds between two reads of the log.")
    ] = 5.0,
    until_done: Annotated[
        bool, typer.Option("--until-done", help="End when the whole log has been read.")
    ] = False,
    batch_bytes: Annotated[
        int | None, typer.Option(min=1, help="Bytes of segments in one micro-batch. [1 GiB]")
    ] = None,
    master: Master = "local[*]",
    remote: Remote = None,
    conf: Conf = None,
    as_json: Json = False,
) -> None:
    with opened(data, log, lake, master=master, remote=remote, conf=conf) as pipeline:
        from lasthop.pipeline.stream import LogStream  # noqa: PLC0415

        following = LogStream(
            pipeline,
            told=lambda progress: _print_progress(progress, as_json),
            batch_bytes=batch_bytes,
        )
        with pipeline.lake.locked():
            follow(pipeline.log)
            query = following.start(every=f"{every} seconds", available_now=until_done)
            while not query.awaitTermination(RENEWED):
                follow(pipeline.log)


def _print_progress(progress: StreamProgress, as_json: bool) -> None:
    if as_json:
        say_json(msgspec.to_builtins(progress))
        return
    line = f"{progress.events} events, {', '.join(progress.days)} made in {progress.seconds:.1f} s"
    if progress.late_events:
        line += f"; {progress.late_events} late, for the next batch"
    say(f"{line}; {progress.behind:.1f} s behind")


@commands.command(
    "report",
    help=described(
        "Write a report with plots of the tables, as one HTML file.",
        "lasthop pipeline report --data ./data --out report.html",
    ),
)
def report(
    data: Data = DEFAULT_DATA,
    log: Log = None,
    lake: LakeFolder = None,
    policies: PolicyFolder = None,
    out: Annotated[Path, typer.Option(metavar="FILE", help="The file for the report.")] = Path(
        "report.html"
    ),
    master: Master = "local[*]",
    remote: Remote = None,
    conf: Conf = None,
    as_json: Json = False,
) -> None:
    if find_spec("matplotlib") is None:
        raise Failure("the report needs matplotlib: pip install 'lasthop[pipeline]'")
    with (
        progress(as_json) as show_step,
        opened(
            data, log, lake, master=master, remote=remote, conf=conf, say_line=show_step
        ) as pipeline,
    ):
        from lasthop.pipeline.report import render  # noqa: PLC0415

        if not pipeline.lake.dates("silver", "events"):
            raise Failure("there are no tables yet; make them with: lasthop pipeline run")
        show_step("drawing")
        page = render(_sum_up(pipeline), PolicyStore(policies or data / POLICY_DIRECTORY).current())
    out.write_text(page)
    if as_json:
        say_json({"file": str(out), "bytes": len(page.encode())})
    else:
        say(str(out))
