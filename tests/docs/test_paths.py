"""About `docs/README.md` and every other page: the files and classes that a page names exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.blocks import ROOT, pages

BASES = ("", "src/lasthop", "src", "packages/xml/src")
"""Folders from which a path on a page may start."""

FOLDERS = frozenset(
    folder.name for base in BASES for folder in (ROOT / base).iterdir() if folder.is_dir()
)
"""First folders of paths that mean something in the repository, not on the reader's machine."""

_FENCED = re.compile(r"^( *)```.*?^\1```$", re.MULTILINE | re.DOTALL)
_PATH = re.compile(r"`([\w-]+(?:/[\w.-]+)*/?)`")
_CLASS = re.compile(r"`([A-Z][a-z]\w*)`")


def prose(page: Path) -> str:
    """Return the text of a page without its fenced blocks."""
    return _FENCED.sub("", page.read_text())


def paths(page: Path) -> list[str]:
    """Return the paths of the repository that a page names."""
    found = _PATH.findall(prose(page))
    return [path for path in found if "/" in path and path.partition("/")[0] in FOLDERS]


def exists(path: str) -> bool:
    """Return whether a path is that of a file or folder, or begins that of a decision."""
    if re.fullmatch(r"docs/decisions/\d{4}", path):
        return any(ROOT.glob(f"{path}-*.md"))
    return any((ROOT / base / path).exists() for base in BASES)


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_a_path_on_a_page_leads_to_a_file_or_folder(page: Path) -> None:
    assert [path for path in paths(page) if not exists(path)] == []


def test_a_class_on_a_page_is_one_of_the_code() -> None:
    code = "\n".join(
        file.read_text()
        for folder in ("src", "packages/xml/src", "sdk/javascript/src", "tests", "examples")
        for file in (ROOT / folder).rglob("*.[pj][ys]")
    )
    known = set(re.findall(r"\w+", code))
    gone = {
        f"{page.relative_to(ROOT)}: {name}"
        for page in pages()
        for name in _CLASS.findall(prose(page))
        if name not in known
    }
    assert gone == set()


def test_paths_and_classes_are_found_at_all() -> None:
    page = ROOT / "ARCHITECTURE.md"
    assert len(paths(page)) > 40
    assert len(_CLASS.findall(prose(page))) >= 3
    assert not exists("core/nowhere.py")
    assert not exists("docs/decisions/9999")
