"""The recipes of `CONTRIBUTING.md`: what they change, and how to change it as they say.

    python -m tests.docs.recipes DIRECTORY [RECIPE]    apply them to a copy of this repository

A block `diff PATH` has lines as a reader would type them: `+` is new, `-` goes, anything else is
there already and says where; `...` leaves out what is between, and `…` the rest of a line.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from tests.docs.blocks import ROOT, Block, blocks

PAGE = ROOT / "CONTRIBUTING.md"


def recipes() -> dict[str, list[Block]]:
    """The blocks of each recipe, by its heading."""
    found: dict[str, list[Block]] = {}
    lines = PAGE.read_text().splitlines()
    headings = {n: line[4:] for n, line in enumerate(lines, 1) if line.startswith("### ")}
    for block in blocks(PAGE):
        if block.language == "diff":
            heading = headings[max(n for n in headings if n < block.line)]
            found.setdefault(heading, []).append(block)
    return found


def apply(block: Block, root: Path) -> None:
    """Change a file as a block says; what it says is there has to be there, once."""
    (path,) = block.words
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    text = "\n" + (file.read_text() if file.exists() else "")
    for before, after in _changes(block, text):
        assert text.count(f"\n{before}") == 1, f"{block}: {path} has not once:\n{before}"
        text = text.replace(f"\n{before}", f"\n{after}")
    file.write_text(text[1:])


def _changes(block: Block, text: str) -> Iterator[tuple[str, str]]:
    """Lines that are there, each with what stands there afterwards."""
    for part in block.text.split("...\n"):
        lines = [_whole(line, text) for line in part.splitlines()]
        yield (
            "".join(f"{line[1:]}\n" for line in lines if line[:1] != "+"),
            "".join(f"{line[1:]}\n" for line in lines if line[:1] != "-"),
        )


def _whole(line: str, text: str) -> str:
    """A line of a block, with the rest of it that the page leaves out."""
    if not line.endswith("…"):
        return line
    (found,) = (each for each in text.splitlines() if each.startswith(line[1:-1]))
    return line[:1] + found


if __name__ == "__main__":
    for name, parts in recipes().items():
        if name in sys.argv[2:] or not sys.argv[2:]:
            for part in parts:
                apply(part, Path(sys.argv[1]))
            print(name, *dict.fromkeys(part.words[0] for part in parts), sep="\n    ")
