"""The sources of a package as syntax trees: what every measure of `scripts/words` reads."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

PACKAGE = "lasthop"

SOURCES = {PACKAGE: "src", "lasthop_xml": "packages/xml/src"}
"""The packages of a checkout, and the folders they are in."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """One offender of a measure: where it is, and what is wrong there."""

    path: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.text}"


@dataclass(frozen=True)
class Module:
    """One source file."""

    name: str
    """The dotted name, as an import says it."""
    path: str
    """Relative to the root of the tree."""
    source: str = field(repr=False)

    @cached_property
    def syntax(self) -> ast.Module:
        """The syntax tree of the file."""
        return ast.parse(self.source, self.path)

    @cached_property
    def nodes(self) -> tuple[ast.AST, ...]:
        """Every node of the syntax tree, the outer ones first."""
        return tuple(ast.walk(self.syntax))

    @property
    def package(self) -> str:
        """The package that the module is distributed in."""
        return self.name.partition(".")[0]

    def finding(self, node: ast.AST, text: str) -> Finding:
        """Report a node of this module."""
        return Finding(self.path, getattr(node, "lineno", 1), text)


@dataclass(frozen=True)
class Tree:
    """All modules of the packages of a checkout."""

    root: Path
    modules: tuple[Module, ...]

    def below(self, package: str) -> tuple[Module, ...]:
        """The modules of a package, itself included."""
        return tuple(
            m for m in self.modules if m.name == package or m.name.startswith(f"{package}.")
        )


def read_tree(root: Path) -> Tree:
    """Read every module of the packages in a checkout."""
    modules = []
    for package, folder in SOURCES.items():
        source = root / folder
        for path in sorted((source / package).rglob("*.py")):
            parts = path.relative_to(source).with_suffix("").parts
            name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            text = path.read_text(encoding="utf-8")
            modules.append(Module(name, str(path.relative_to(root)), text))
    return Tree(root, tuple(modules))


def is_public(name: str) -> bool:
    """Whether a name is for others: no underscore before it."""
    return not name.startswith("_")


def public_definitions(module: Module) -> Iterator[tuple[str, ast.ClassDef | Function]]:
    """The public classes, functions and methods of a module, with their dotted names.

    What stands inside a function is nobody's to call, so it is private.
    """
    if any(not is_public(part) for part in module.name.split(".") if part != "__main__"):
        return
    waiting: list[tuple[str, ast.ClassDef | ast.Module]] = [("", module.syntax)]
    while waiting:
        prefix, owner = waiting.pop(0)
        for node in owner.body:
            if isinstance(node, ast.ClassDef | Function) and is_public(node.name):
                yield f"{prefix}{node.name}", node
                if isinstance(node, ast.ClassDef):
                    waiting.append((f"{prefix}{node.name}.", node))


def assigned(node: ast.AST) -> list[ast.expr]:
    """What a statement assigns to; tuples are taken apart."""
    targets: list[ast.expr] = []
    match node:
        case ast.Assign():
            targets = list(node.targets)
        case ast.AnnAssign() | ast.AugAssign():
            targets = [node.target]
        case ast.For() | ast.AsyncFor():
            targets = [node.target]
        case ast.NamedExpr():
            targets = [node.target]
        case _:
            pass
    flat: list[ast.expr] = []
    while targets:
        target = targets.pop(0)
        if isinstance(target, ast.Tuple | ast.List):
            targets = [*target.elts, *targets]
        elif isinstance(target, ast.Starred):
            targets = [target.value, *targets]
        else:
            flat.append(target)
    return flat
