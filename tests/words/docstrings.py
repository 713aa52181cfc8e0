"""Docstrings that are too short to be read alone, as a tooltip shows them."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from itertools import pairwise

from tests.words.tree import (
    Finding,
    Function,
    Module,
    Tree,
    assigned,
    is_public,
    public_definitions,
)

SHORT = 5
"""Words up to which a docstring counts as short: "It has." and "And no longer." say nothing by
themselves, and few sentences with subject, verb and object are shorter than six words."""


def short_docstrings(tree: Tree) -> tuple[int, list[Finding]]:
    """How many docstrings of what is public have at most five words, and which."""
    findings = [
        module.finding(node, f"{name}: {' '.join(text.split())!r}")
        for module in tree.modules
        for name, node, text in docstrings(module)
        if len(text.split()) <= SHORT
    ]
    return len(findings), sorted(findings)


def docstrings(module: Module) -> Iterator[tuple[str, ast.AST, str]]:
    """The docstrings of a module, its public definitions and their public attributes."""
    definitions = list(public_definitions(module))
    if definitions or is_public(module.name.rpartition(".")[2]):
        text = ast.get_docstring(module.syntax)
        if text is not None:
            yield module.name, module.syntax, text
        yield from _of_attributes("", module.syntax.body)
    for name, node in definitions:
        text = ast.get_docstring(node)
        if text is not None:
            yield name, node, text
        if isinstance(node, ast.ClassDef):
            yield from _of_attributes(f"{name}.", node.body)
            for method in node.body:
                if isinstance(method, Function) and method.name == "__init__":
                    yield from _of_attributes(f"{name}.", method.body)


def _of_attributes(
    prefix: str, statements: Sequence[ast.stmt]
) -> Iterator[tuple[str, ast.AST, str]]:
    """Strings below an assignment, as documentation tools read them."""
    for before, after in pairwise(statements):
        match after:
            case ast.Expr(value=ast.Constant(value=str(text))):
                names = [_name(target) for target in assigned(before)]
                if names and all(is_public(name) for name in names):
                    yield f"{prefix}{names[0]}", after, text
            case _:
                pass


def _name(target: ast.expr) -> str:
    match target:
        case ast.Name():
            return target.id
        case ast.Attribute(value=ast.Name(id="self")):
            return target.attr
        case _:
            pass
    return "_"
