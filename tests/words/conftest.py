"""Small trees of sources to measure."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from textwrap import dedent

import pytest

from tests.words.tree import Tree, read_tree

Grow = Callable[[dict[str, str]], Tree]


@pytest.fixture
def grow(tmp_path: Path) -> Grow:
    """Write sources, named by their paths below the package, and read them as a tree."""

    def write(sources: dict[str, str]) -> Tree:
        for path, text in sources.items():
            file = tmp_path / "src" / "lasthop" / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(dedent(text))
        return read_tree(tmp_path)

    return write
