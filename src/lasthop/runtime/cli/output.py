"""Results on standard output: JSON lines for machines, plain lines for people."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import msgspec
from rich.console import Console
from rich.table import Table


def say(line: str = "") -> None:
    """A line for people, at once."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def say_json(value: object) -> None:
    """A line for machines, at once."""
    sys.stdout.write(msgspec.json.encode(value).decode() + "\n")
    sys.stdout.flush()


def table(headings: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Rows under headings, aligned."""
    grid = Table(box=None, pad_edge=False, header_style="bold")
    for heading in headings:
        grid.add_column(heading, overflow="fold")
    for row in rows:
        grid.add_row(*(str(cell) for cell in row))
    Console(soft_wrap=not sys.stdout.isatty()).print(grid)
