"""`lasthop pipeline`: the event log turned into tables, policies and answers, on Spark."""

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

from lasthop.runtime.cli.options import Json, described, new_commands
from lasthop.runtime.cli.output import say, say_json
from lasthop.runtime.failure import Failure
from lasthop.runtime.places import LOG_DIRECTORY

if TYPE_CHECKING:
    from lasthop.pipeline.jobs import Outcome, Pipeline

commands = new_commands("Learn from the event log: tables, policies, what-if; on Spark.")

LAKE_DIRECTORY = "lake"
POLICY_DIRECTORY = "policies"

Data: TypeAlias = Annotated[
    Path,
    typer.Option("--data", metavar="DIR", help="The gateway's data directory.", file_okay=False),
]
Log: TypeAlias = Annotated[
    Path | None,
    typer.Option("--log", metavar="DIR", help="The event log, or a directory of logs. [data/log]"),
]
LakeDir: TypeAlias = Annotated[
    Path | None, typer.Option("--lake", metavar="DIR", help="Where the tables are. [data/lake]")
]
Master: TypeAlias = Annotated[
    str,
    typer.Option(
        "--master", metavar="URL", help="Spark's master: local[*], spark://host:7077, yarn, k8s://"
    ),
]
Remote: TypeAlias = Annotated[
    str | None,
    typer.Option("--remote", metavar="URL", help="A Spark Connect server: sc://host:15002"),
]
Conf: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--conf", metavar="KEY=VALUE", help="A setting of Spark; repeatable."),
]

DEFAULT_DATA = Path("lasthop-data")


@commands.callback()
def _group() -> None:
    """Learn from the event log: tables, policies, what-if; on Spark."""


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
    """The pipeline of a data directory, with a session for as long as it is used."""
    if find_spec("pyspark") is None:
        raise Failure("the pipeline needs Spark: pip install 'lasthop[pipeline]'")
    from lasthop.pipeline.jobs import Pipeline  # noqa: PLC0415
    from lasthop.pipeline.lake import Lake  # noqa: PLC0415
    from lasthop.pipeline.session import open_session  # noqa: PLC0415

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
    finally:
        spark.stop()


@contextmanager
def progress(quiet: bool) -> Iterator[Callable[[str], None]]:
    """Say on the terminal what is being made, and for how long."""
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
        "Read what the log has, and bring all tables up to date. Safe to repeat and to kill.",
        "lasthop pipeline run --data ./data",
        "lasthop pipeline run --log /logs --lake /lake --master spark://spark:7077 --json",
    ),
)
def run(
    data: Data = DEFAULT_DATA,
    log: Log = None,
    lake: LakeDir = None,
    master: Master = "local[*]",
    remote: Remote = None,
    conf: Conf = None,
    as_json: Json = False,
) -> None:
    with (
        progress(as_json) as told,
        opened(data, log, lake, master=master, remote=remote, conf=conf, say_line=told) as pipeline,
    ):
        outcome = pipeline.run()
    if as_json:
        say_json(msgspec.to_builtins(outcome))
    else:
        _report(outcome)


def _report(outcome: Outcome) -> None:
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
        say(f"{outcome.missing_offsets} offsets of the log never came")
    if outcome.orphans:
        say(f"{outcome.orphans} events tell of deliveries whose beginning is not here")
    if done.newer:
        say(f"{done.newer} events are of a newer schema, and read as far as it is known")


@commands.command(
    "compact",
    help=described(
        "Join the small files of a day, and delete days that are older than asked for.",
        "lasthop pipeline compact --data ./data --keep-days 400",
    ),
)
def compact(
    data: Data = DEFAULT_DATA,
    log: Log = None,
    lake: LakeDir = None,
    keep_days: Annotated[
        int | None, typer.Option(min=1, help="Delete what is older, in every table. [keep all]")
    ] = None,
    most_files: Annotated[int, typer.Option(min=1, help="Leave days with so few files.")] = 4,
    master: Master = "local[*]",
    remote: Remote = None,
    conf: Conf = None,
    as_json: Json = False,
) -> None:
    with opened(data, log, lake, master=master, remote=remote, conf=conf) as pipeline:
        from lasthop.pipeline import bronze  # noqa: PLC0415

        with pipeline.lake.locked():
            compacted = bronze.compact(pipeline.spark, pipeline.lake, most_files=most_files)
            gone = 0
            if keep_days is not None:
                today = datetime.now(UTC).date()
                gone = bronze.retain(pipeline.lake, days=keep_days, today=today)
    result: dict[str, Any] = {"compacted_days": compacted, "deleted_directories": gone}
    if as_json:
        say_json(result)
    else:
        say(f"{compacted} days compacted, {gone} directories deleted")
