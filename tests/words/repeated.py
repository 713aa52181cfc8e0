"""Names that stand for more than one thing: classes and files that are called alike.

A package is a namespace: what is called alike in two packages is no repetition.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Mapping, Sequence

from tests.words.tree import Finding, Tree


def repeated_classes(tree: Tree) -> tuple[int, list[Finding]]:
    """How many class names are defined in more than one module, and where."""
    places: dict[tuple[str, str], dict[str, Finding]] = defaultdict(dict)
    for module in tree.modules:
        for node in module.nodes:
            if isinstance(node, ast.ClassDef):
                finding = module.finding(node, f"class {node.name}")
                places[module.package, node.name].setdefault(module.name, finding)
    return _more_than_once({name: list(found.values()) for name, found in places.items()})


def repeated_files(tree: Tree) -> tuple[int, list[Finding]]:
    """How many file names are used in more than one folder, and where."""
    places: dict[tuple[str, str], list[Finding]] = defaultdict(list)
    for module in tree.modules:
        file = module.path.rpartition("/")[2]
        if file != "__init__.py":
            places[module.package, file].append(Finding(module.path, 1, f"file {file}"))
    return _more_than_once(places)


def _more_than_once(
    places: Mapping[tuple[str, str], Sequence[Finding]],
) -> tuple[int, list[Finding]]:
    repeated = [found for found in places.values() if len(found) > 1]
    # The names that are used most come first.
    repeated.sort(key=lambda found: (-len(found), found[0].text))
    return len(repeated), [finding for found in repeated for finding in found]
