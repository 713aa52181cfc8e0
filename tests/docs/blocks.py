"""The code in the documentation: where it is, what it is, and whether it is only shown.

A fenced block is executed by a test unless the line before it says why it is not:

    <!-- shown: takes a cluster -->
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]

_FENCE = re.compile(r"^( *)```(.*)$")
_SHOWN = re.compile(r"^\s*<!-- shown: (.+) -->\s*$")
_INDENTED = re.compile(r"^(?: {4,}|\t)\S")
_COMMAND = re.compile(r"^(?:\$ )?(?:[A-Z_]+=\S+ )*(?:\.venv/bin/)?lasthop (.*)$")
_ENDS = {"|", "||", "&&", "&", ";", ">", ">>", "<", "2>", ")"}
"""Where a shell's command is over."""


@dataclass(frozen=True, slots=True)
class Block:
    """One block of code on a page."""

    page: Path
    line: int
    language: str
    words: tuple[str, ...]
    """What else its first line says."""
    text: str
    shown: str = ""
    """Why it is only shown; empty: it is executed."""

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def pages() -> list[Path]:
    """Every page of the documentation."""
    names = ("README", "ARCHITECTURE", "CONTRIBUTING", "SECURITY", "THREAT-MODEL")
    root = [ROOT / f"{name}.md" for name in names]
    return [*root, *sorted((ROOT / "docs").rglob("*.md"))]


def blocks(page: Path) -> Iterator[Block]:
    """The fenced blocks of a page."""
    lines = page.read_text().splitlines()
    number = 0
    while number < len(lines):
        fence = _FENCE.match(lines[number])
        if fence is None:
            number += 1
            continue
        start, indent = number, len(fence[1])
        number += 1
        body = []
        while not lines[number].strip().startswith("```"):
            body.append(lines[number][indent:])
            number += 1
        number += 1
        marked = _SHOWN.match(lines[start - 1]) if start else None
        language, *words = fence[2].split() or [""]
        yield Block(
            page,
            start + 1,
            language,
            tuple(words),
            "\n".join(body) + "\n",
            marked[1] if marked else "",
        )


def commands(page: Path) -> Iterator[tuple[int, list[str]]]:
    """The arguments of every `lasthop` command on a page, in fenced and in indented code."""
    fenced = False
    lines = page.read_text().splitlines()
    for number, said in enumerate(lines):
        line = said
        if _FENCE.match(line):
            fenced = not fenced
            continue
        if not fenced and not _INDENTED.match(line):
            continue
        following = number + 1
        while line.endswith("\\"):
            line, following = line[:-1] + lines[following].strip(), following + 1
        if (found := arguments(line)) is not None:
            yield number + 1, found


def arguments(line: str) -> list[str] | None:
    """What `lasthop` is given on a line of a terminal; None if it is about something else."""
    found = _COMMAND.match(line.strip())
    if found is None:
        return None
    text = found[1]
    try:
        words = shlex.split(text, comments=True)
    except ValueError:  # A quotation goes on in the next lines.
        words = shlex.split(text + "'" if text.count("'") % 2 else text + '"', comments=True)
    for place, word in enumerate(words):
        if word in _ENDS:
            return words[:place]
    return words
