"""Measures the sources by their syntax trees, against the limits in `pyproject.toml`:
`scripts/words`."""

from __future__ import annotations

import argparse
import ast
import json
import sys
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from tests.words.conditions import feature_conditions
from tests.words.docstrings import short_docstrings
from tests.words.draw import draw
from tests.words.knots import largest_knot
from tests.words.names import WORD_LIST, dictionary_words, unknown_words
from tests.words.repeated import repeated_classes, repeated_files
from tests.words.tree import PACKAGE, Finding, Module, Tree, read_tree

ROOT = Path(__file__).parents[2]

Value = int | dict[str, int]
Measured = tuple[Value, list[Finding]]


def knots(tree: Tree) -> Measured:
    """The largest knot of imports in the core and on the device's side."""
    sizes, findings = {}, []
    for layer in ("core", "device"):
        sizes[layer], found = largest_knot(tree, f"{PACKAGE}.{layer}")
        findings += found
    return sizes, findings


def statements_of(modules: Iterable[Module]) -> Measured:
    """How many statements the syntax trees have, at every depth."""
    return sum(isinstance(node, ast.stmt) for m in modules for node in m.nodes), []


def lines_of(modules: Iterable[Module]) -> Measured:
    """How many lines the sources have."""
    return sum(len(module.source.splitlines()) for module in modules), []


MEASURES: Mapping[str, Callable[[Tree], Measured]] = {
    "largest_knot": knots,
    "feature_conditions": feature_conditions,
    "repeated_classes": repeated_classes,
    "repeated_files": repeated_files,
    "short_docstrings": short_docstrings,
    "unknown_words": unknown_words,
    "statements": lambda tree: statements_of(tree.modules),
    "statements_gateway": lambda tree: statements_of(tree.below("lasthop")),
    "statements_xml": lambda tree: statements_of(tree.below("lasthop_xml")),
    "lines": lambda tree: lines_of(tree.modules),
    "lines_gateway": lambda tree: lines_of(tree.below("lasthop")),
    "lines_xml": lambda tree: lines_of(tree.below("lasthop_xml")),
}


def read_limits(root: Path) -> dict[str, int]:
    """The limits of a checkout: `[tool.lasthop.words]` in its `pyproject.toml`."""
    settings = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    limits: dict[str, int] = settings.get("tool", {}).get("lasthop", {}).get("words", {})
    unknown = sorted(limits.keys() - MEASURES.keys())
    if unknown:
        raise SystemExit(f"words: pyproject.toml limits what is not measured: {unknown[0]}")
    return limits


def largest(value: Value) -> int:
    """The figure that a limit applies to."""
    return max(value.values()) if isinstance(value, dict) else value


def exceeded(values: Mapping[str, Value], limits: Mapping[str, int]) -> list[str]:
    """One line for each measure that is above its limit."""
    return [
        f"words: {key} is {largest(values[key])}, the limit in pyproject.toml is {limit}; "
        f"scripts/words --list {key} names them"
        for key, limit in limits.items()
        if largest(values[key]) > limit
    ]


def table(values: Mapping[str, Value], limits: Mapping[str, int]) -> str:
    """The values beside their limits, for people."""
    rows = []
    for key, value in values.items():
        said = ", ".join(f"{k} {v}" for k, v in value.items()) if isinstance(value, dict) else value
        limit = limits.get(key)
        room = limit is not None and largest(value) < limit
        rows.append(
            f"{key:<20}{said!s:>20}{'' if limit is None else limit:>10}"
            + ("  the limit can go down" if room else "")
        )
    return "\n".join([f"{'':<20}{'now':>20}{'limit':>10}", *rows])


def main(arguments: Sequence[str] | None = None, root: Path = ROOT) -> int:
    """Print what was asked for; 1 if something is above its limit."""
    parser = argparse.ArgumentParser("words", description="Measure the sources of the packages.")
    parser.add_argument("--json", action="store_true", help="print the values as JSON")
    parser.add_argument(
        "--list", choices=MEASURES, metavar="KEY", help="name the offenders of one measure"
    )
    parser.add_argument(
        "--draw", type=int, metavar="SEED", help="draw texts at random, for a reader to judge"
    )
    parser.add_argument(
        "--dictionary",
        nargs="+",
        type=Path,
        metavar="FILE",
        help=f"write {WORD_LIST} again: the words of our names that these word lists have",
    )
    asked = parser.parse_args(arguments)
    tree = read_tree(root)
    if asked.dictionary:
        english = {word for file in asked.dictionary for word in file.read_text().split()}
        (root / WORD_LIST).write_text("\n".join(dictionary_words(tree, english)) + "\n")
        return 0
    if asked.draw is not None:
        print(*draw(tree, asked.draw), sep="\n")
        return 0
    if asked.list:
        print(*MEASURES[asked.list](tree)[1], sep="\n")
        return 0
    limits = read_limits(root)
    values = {key: measure(tree)[0] for key, measure in MEASURES.items()}
    print(json.dumps(values) if asked.json else table(values, limits))
    failures = exceeded(values, limits)
    for line in failures:
        print(line, file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
