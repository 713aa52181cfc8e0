"""`lasthop store`: check a store's files."""

from __future__ import annotations

from pathlib import Path

import typer

from lasthop.runtime.cli.options import Directory, Json, described, new_commands
from lasthop.runtime.cli.output import say, say_json
from lasthop.runtime.store_check import check_store

commands = new_commands("The store's files: check that they are whole.")


@commands.callback()
def about() -> None:
    """Keep `check` a command of its own, although it is the only one."""


@commands.command(
    "check",
    help=described(
        "Check that nothing in the store has changed or was cut off; exit code 1 if so.",
        "lasthop store check --data ./data",
    ),
)
def check(data: Directory = Path("lasthop-data"), as_json: Json = False) -> None:
    report = check_store(data)
    files = report.files
    if as_json:
        say_json(
            {
                "sound": report.sound,
                "cut_off": report.cut_off,
                "commits": max(0, files.next_commit - 1),
                "events": files.next_event,
                "log_events": report.log_end,
                "checked": files.checked,
                "unchecked": files.unchecked,
                "problems": report.problems,
                "notes": report.notes,
            }
        )
    else:
        if report.cut_off:
            say("COMMITS ARE GONE: what others were told is not in the store any more.")
        for line in (*report.problems, *report.notes):
            say(line)
        verdict = "the store is sound" if report.sound else "the store is DAMAGED"
        say(
            f"{max(0, files.next_commit - 1)} commits, {files.next_event} events,"
            f" {files.checked} pages checked: {verdict}"
        )
    if not report.sound:
        raise typer.Exit(1)
