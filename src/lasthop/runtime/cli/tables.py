"""Prints tables for people. This module is separate from `output` because importing `rich` takes
longer than a push."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table


def table(headings: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print rows under their headings, aligned."""
    grid = Table(box=None, pad_edge=False, header_style="bold")
    for heading in headings:
        grid.add_column(heading, overflow="fold")
    for row in rows:
        grid.add_row(*(str(cell) for cell in row))
    Console(soft_wrap=not sys.stdout.isatty()).print(grid)
