"""Shows the answer to an operation: JSON for machines, sentences and tables for people."""

from __future__ import annotations

from operator import methodcaller
from typing import Any

import msgspec

from lasthop.access.rest.operations.command import Command, Row
from lasthop.runtime.cli.output import say, say_json
from lasthop.runtime.failure import Failure


def show(command: Command, row: Row, answer: Row, *, as_json: bool) -> None:
    """Show the answer to an operation; `row` also has the values that the command was given."""
    if as_json:
        for line in _lines(command, row, answer):
            say_json(line)
    else:
        _print_text(command, row, answer)
    if command.fails is not None and (reason := command.fails(row)):
        raise Failure(reason)


def _lines(command: Command, row: Row, answer: Row) -> list[Any]:
    """Return the values that are printed as lines of JSON, for machines."""
    if command.result is not None:
        return [command.result(row)]
    rows = answer[command.rows] if command.rows and not command.says else answer
    return list(rows) if command.each else [rows]


def _print_text(command: Command, row: Row, answer: Row) -> None:
    """Print the answer as sentences and a table, for people."""
    if isinstance(command.says, str):
        text = command.says.format(**row)
    else:
        text = command.says(row)
    if not text and not command.columns:
        text = "\n".join(f"{name}: {_text(value)}" for name, value in answer.items())
    if text or command.nothing:
        say(text or command.nothing)
    if command.columns:
        # Imported here because it takes longer than everything else, and most commands do not need
        # it.
        from lasthop.runtime.cli.tables import table  # noqa: PLC0415

        columns = [column.rpartition("=") for column in command.columns.split()]
        headings = [heading if equals else field for heading, equals, field in columns]
        rows = [
            [
                _text(command.derived.get(field, methodcaller("get", field))(each))
                for *_, field in columns
            ]
            for each in answer[command.rows]
        ]
        table([heading.replace("_", " ") for heading in headings], rows)


def _text(value: object) -> str:
    """Format a value for people: yes or no, words, or JSON."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        return " ".join(value)
    return msgspec.json.encode(value).decode() if isinstance(value, list | dict) else str(value)
