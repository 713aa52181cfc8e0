"""The layout of generated Python statements: on as few lines as fit, broken as `ruff format`
does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

WIDTH: Final = 100


def bracketed(before: str, parts: Sequence[str], after: str) -> list[str]:
    """Return the lines of a bracketed list: `before`, which ends in a bracket, the parts separated
    by commas, and `after`."""
    indent = " " * (len(before) - len(before.lstrip()))
    joined = ", ".join(parts)
    if len(before) + len(joined) + len(after) <= WIDTH:
        return [f"{before}{joined}{after}"]
    if len(indent) + 4 + len(joined) <= WIDTH and not before.endswith("{"):
        return [before, f"{indent}    {joined}", f"{indent}{after}"]
    return [before, *(f"{indent}    {part}," for part in parts), f"{indent}{after}"]


def exploded(before: str, parts: Sequence[str], after: str) -> list[str]:
    """Return the lines of a bracketed list with every part on a line of its own."""
    indent = " " * (len(before) - len(before.lstrip()))
    return [before, *(f"{indent}    {part}," for part in parts), f"{indent}{after}"]


def text(value: str) -> str:
    """Return a string literal, in the quotation marks that the formatter prefers."""
    literal = ascii(value) if not value.isprintable() else repr(value)
    if literal[0] == "'" and '"' not in literal:
        return f'"{literal[1:-1]}"'
    return literal
