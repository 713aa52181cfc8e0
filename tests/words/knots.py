"""Knots: modules that import one another in a circle, so that none can be read without the others.

An import counts wherever it stands. Under `TYPE_CHECKING`, inside a function or in quotation marks
it keeps the interpreter happy, but a reader has to follow it all the same.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from tests.words.tree import Finding, Module, Tree

Graph = Mapping[str, frozenset[str]]


def imports_of(module: Module) -> Iterator[str]:
    """Every name that a module imports, as a module or as something in one."""
    for node in module.nodes:
        match node:
            case ast.Import():
                yield from (alias.name for alias in node.names)
            case ast.ImportFrom(module=str(source)):
                yield from (f"{source}.{alias.name}" for alias in node.names)
            case ast.Call(func=ast.Attribute(attr="import_module") | ast.Name(id="__import__")):
                yield from _constants(node)
            case ast.Call(func=ast.Name(id="import_module")):
                yield from _constants(node)
            case _:
                pass


def _constants(call: ast.Call) -> Iterator[str]:
    for argument in call.args[:1]:
        if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
            yield argument.value


def graph_of(tree: Tree, package: str) -> Graph:
    """Which modules of a package each of them imports."""
    modules = tree.below(package)
    known = {module.name for module in modules}
    graph = {}
    for module in modules:
        found = set()
        for imported in imports_of(module):
            # `from package.a import b` names a module `package.a.b`, or something in `package.a`.
            target = imported if imported in known else imported.rpartition(".")[0]
            if target in known and target != module.name:
                found.add(target)
        graph[module.name] = frozenset(found)
    return graph


def knots(graph: Graph) -> list[list[str]]:
    """The strongly connected components with more than one module, largest first (Tarjan)."""
    order: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    on_stack: set[str] = set()
    found: list[list[str]] = []

    def visit(name: str) -> None:
        order[name] = lowest[name] = len(order)
        stack.append(name)
        on_stack.add(name)
        for target in sorted(graph[name]):
            if target not in order:
                visit(target)
                lowest[name] = min(lowest[name], lowest[target])
            elif target in on_stack:
                lowest[name] = min(lowest[name], order[target])
        if lowest[name] == order[name]:
            place = stack.index(name)
            component = stack[place:]
            del stack[place:]
            on_stack.difference_update(component)
            if len(component) > 1:
                found.append(sorted(component))

    for name in graph:
        if name not in order:
            visit(name)
    return sorted(found, key=lambda knot: (-len(knot), knot))


def largest_knot(tree: Tree, package: str) -> tuple[int, list[Finding]]:
    """The size of the largest knot of a package (1: there is none), and the modules of all."""
    graph = graph_of(tree, package)
    found = knots(graph)
    paths = {module.name: module.path for module in tree.modules}
    findings = []
    for number, knot in enumerate(found, 1):
        for name in knot:
            inside = ", ".join(t.removeprefix(f"{package}.") for t in sorted(graph[name] & {*knot}))
            text = f"knot {number} of {package}, {len(knot)} modules: imports {inside}"
            findings.append(Finding(paths[name], 1, text))
    return (len(found[0]) if found else 1), findings
