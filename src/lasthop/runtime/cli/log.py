"""`lasthop log`: follow the event log, and check it against the store."""

from __future__ import annotations

import time
from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer

from lasthop.core.lifecycle import State
from lasthop.eventlog.check import LogCheck, StoredDelivery
from lasthop.eventlog.reader import LogReader
from lasthop.eventlog.story import explain
from lasthop.eventlog.tail import Only, Tail
from lasthop.events import Event
from lasthop.runtime.cli.explain import parse_key
from lasthop.runtime.cli.options import Directory, Json, described, new_commands
from lasthop.runtime.cli.output import say, say_json
from lasthop.runtime.places import LOG_DIRECTORY
from lasthop.store.sqlite import SqliteReader

POLL = 0.2
"""Seconds between two reads of the log when there are no new events."""


commands = new_commands("Follow or check the event log.")


@commands.command(
    "tail",
    help=described(
        "Print the last events of the log, newest last.",
        "lasthop log tail --data ./data --follow --device phone",
    ),
)
def tail(
    data: Directory = Path("lasthop-data"),
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Continue with new events.")
    ] = False,
    lines: Annotated[
        int, typer.Option("-n", min=0, help="The number of past events to begin with.")
    ] = 20,
    app: Annotated[str | None, typer.Option(help="Print only events of this app.")] = None,
    device: Annotated[str | None, typer.Option(help="Print only events of this device.")] = None,
    message: Annotated[
        str | None, typer.Option(metavar="ID", help="Print only events of this message.")
    ] = None,
    kind: Annotated[
        list[str] | None, typer.Option(help="Print only events of this kind; may be repeated.")
    ] = None,
    as_json: Json = False,
) -> None:
    only = Only(
        app=app,
        device=device,
        message=parse_key(message) if message else None,
        kinds=frozenset(kind or ()),
    )
    with (
        closing(SqliteReader.beside(data)) as store,
        LogReader(data / LOG_DIRECTORY, store) as reader,
    ):
        place = Tail(reader, start=max(0, reader.end() - lines), only=only)
        while True:
            events = place.poll()
            for event in events or ():
                if as_json:
                    say_json(event)
                else:
                    say(_line(event))
            if events is None:
                if not follow:
                    return
                time.sleep(POLL)


def _line(event: Event) -> str:
    (explained,) = explain([event])
    about = [event.kind, event.dev, f"{event.msg:016x}" if event.msg else "", event.topic]
    over = f"over {event.link}" if event.link else ""
    facts = ", ".join(f"{name} {value}" for name, value in explained.facts.items())
    parts = [" ".join(part for part in about if part), over, event.reason, facts]
    return f"{explained.time}  {event.n}  " + "; ".join(part for part in parts if part)


@commands.command(
    "check",
    help=described(
        "Check that the log is whole and agrees with the store; the exit code is 1 if not.",
        "lasthop log check --data ./data",
    ),
)
def check(data: Directory = Path("lasthop-data"), as_json: Json = False) -> None:
    with (
        closing(SqliteReader.beside(data)) as store,
        LogReader(data / LOG_DIRECTORY, store) as reader,
    ):
        checking = LogCheck()
        checking.read(reader)
        rows = (
            StoredDelivery(r.message, r.device, State(r.state).name, r.open, r.last_event)
            for r in store.all_deliveries()
        )
        report = checking.compare(rows, reader.find)
    if as_json:
        say_json(
            {
                "good": report.good,
                "events": report.end - report.first,
                "deliveries": report.compared,
                "problems": report.problems,
                "apps": {
                    name: {"accepted": tally.accepted, "ended": tally.ended, "open": tally.open}
                    for name, tally in report.apps.items()
                },
            }
        )
    else:
        for problem in report.problems:
            say(problem)
        for name, tally in sorted(report.apps.items()):
            ends = ", ".join(f"{count} {end}" for end, count in sorted(tally.ended.items()))
            say(f"app {name}: {tally.accepted} accepted, {ends or 'none ended'}, {tally.open} open")
        verdict = "the log is whole" if report.good else f"{report.counts.total()} problems"
        say(f"{report.end - report.first} events, {report.compared} deliveries: {verdict}")
    if not report.good:
        raise typer.Exit(1)
