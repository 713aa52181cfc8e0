"""Small trees of sources to measure."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent
from typing import Protocol

import pytest

from tests.words.tree import PACKAGE, SOURCES, Tree, read_tree


class Grow(Protocol):
    """Write sources, named by their paths below a package, and read all there are as a tree."""

    def __call__(self, sources: dict[str, str], package: str = PACKAGE) -> Tree: ...


@pytest.fixture
def grow(tmp_path: Path) -> Grow:
    def write(sources: dict[str, str], package: str = PACKAGE) -> Tree:
        for path, text in sources.items():
            file = tmp_path / SOURCES[package] / package / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(dedent(text))
        return read_tree(tmp_path)

    return write
