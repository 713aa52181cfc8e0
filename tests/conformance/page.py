"""The conformance page, made from the rows of the specification and the tests that prove them.

A test proves a row by its marker: `@pytest.mark.conformance("PPG-GEN-S-001")`, on a function or a
class. Markers are read from the source, so that nothing has to run to see whether the page is
current; that the tests pass is what the suite is for.
"""

from __future__ import annotations

import ast
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[2]
ROWS = ROOT / "docs" / "conformance" / "ppg.toml"
PAGE = ROOT / "docs" / "conformance" / "ppg.md"
MARKER = "conformance"

_INTRODUCTION = """\
# The Push Proxy Gateway, requirement by requirement

Every row of appendix B of the PPG service specification, and the tests that prove it. This page is
written by `scripts/conformance` from the markers of the tests; a test fails when it is out of date.
M is mandatory, O optional. *Not yet* means that no test proves the row.
"""


class Proof(NamedTuple):
    """A test that is marked with an item."""

    item: str
    file: str
    name: str

    @property
    def link(self) -> str:
        """For the page, which is two directories below the root."""
        stem = self.file.removeprefix("tests/").removesuffix(".py")
        return f"[{stem} {self.name.replace('_', ' ')}](../../{self.file})"


def groups() -> list[dict[str, Any]]:
    """The rows, as the specification groups them."""
    found: list[dict[str, Any]] = tomllib.loads(ROWS.read_text("utf-8"))["group"]
    return found


def items() -> dict[str, dict[str, Any]]:
    """Every row by its item."""
    return {row["item"]: row for group in groups() for row in group["row"]}


def proofs(root: Path = ROOT) -> list[Proof]:
    """Every marked test, in the order of files and lines."""
    found: list[Proof] = []
    for file in sorted((root / "tests").rglob("test_*.py")):
        source = file.read_text("utf-8")
        if MARKER in source:
            found += _in_file(ast.parse(source), file.relative_to(root).as_posix())
    return found


def _in_file(tree: ast.Module, file: str) -> Iterator[Proof]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            for item in _marked(node):
                yield Proof(item, file, node.name.removeprefix("test_").removeprefix("Test"))


def _marked(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> Iterator[str]:
    for decorator in node.decorator_list:
        if isinstance(decorator, ast.Call) and ast.unparse(decorator.func).endswith(
            f"mark.{MARKER}"
        ):
            for argument in decorator.args:
                assert isinstance(argument, ast.Constant), "an item is written out"
                yield str(argument.value)


def page(found: list[Proof]) -> str:
    """The whole page."""
    known = items()
    unknown = sorted({proof.item for proof in found} - known.keys())
    if unknown:
        raise ValueError(f"tests are marked with items that there are not: {', '.join(unknown)}")
    by_item: dict[str, list[Proof]] = {}
    for proof in found:
        by_item.setdefault(proof.item, []).append(proof)
    mandatory = [item for item, row in known.items() if row["status"] == "M"]
    proven = [item for item in mandatory if item in by_item]
    counts = f"{len(proven)} of {len(mandatory)} mandatory rows"
    lines = [_INTRODUCTION, f"Proven: {counts}, {len(by_item)} of {len(known)} rows in all."]
    for group in groups():
        lines += ["", f"## {group['title']}", ""]
        lines += ["| item | function | section | status | here | proven by |", "|---" * 6 + "|"]
        lines += [_row(row, by_item.get(row["item"], [])) for row in group["row"]]
    return "\n".join(lines) + "\n"


def _row(row: dict[str, Any], found: list[Proof]) -> str:
    function = row["function"]
    if "requires" in row:
        function += f" (requires {row['requires']})"
    if "note" in row:
        function += f". {row['note']}"
    here = "yes" if found else "*not yet*"
    tests = "<br>".join(proof.link for proof in found)
    cells = (row["item"], function, row["reference"], row["status"], here, tests)
    return "| " + " | ".join(cells) + " |"


def main() -> None:
    """Write the page; with --check, only say whether it is current."""
    text = page(proofs())
    if "--check" in sys.argv[1:]:
        sys.exit(0 if PAGE.exists() and PAGE.read_text("utf-8") == text else 1)
    PAGE.write_text(text, "utf-8")


if __name__ == "__main__":
    main()
