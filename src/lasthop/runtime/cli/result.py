"""Shows the answer to an operation: JSON for machines, sentences and tables for people."""

from __future__ import annotations

from operator import methodcaller
from typing import Any

import msgspec

from lasthop.access.rest.operations.command import Command, Row
from lasthop.runtime.cli.output import say, say_json
from lasthop.runtime.failure import Failure


def show(command: Command, row: Row, answer: Row, *, as_json: bool) -> None:
    """Show an answer; the row also has what was asked."""
    if as_json:
        for line in _lines(command, row, answer):
            say_json(line)
    else:
        _tell(command, row, answer)
    if command.fails is not None and (reason := command.fails(row)):
        raise Failure(reason)


def _lines(command: Command, row: Row, answer: Row) -> list[Any]:
    """What machines get."""
    if command.result is not None:
        return [command.result(row)]
    rows = answer[command.rows] if command.rows and not command.says else answer
    return list(rows) if command.each else [rows]


def _tell(command: Command, row: Row, answer: Row) -> None:
    """What people get."""
    if isinstance(command.says, str):
        text = command.says.format(**row)
    else:
        text = command.says(row)
    if not text and not command.columns:
        text = "\n".join(f"{name}: {_text(value)}" for name, value in answer.items())
    if text or command.nothing:
        say(text or command.nothing)
    if command.columns:
        # It takes longer to import than everything else, and most commands do without.
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
    """A value in words, where it has any."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        return " ".join(value)
    return msgspec.json.encode(value).decode() if isinstance(value, list | dict) else str(value)
