"""Conditions of the spine that ask for a feature.

A condition asks for a feature when it mentions a name that belongs to one (`vocabulary`), or a key
of a dictionary that stands in for an attribute. Hiding the question behind a local name, a string
or a caught AttributeError is asking as well.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tests.words.tree import Finding, Function, Module, Tree, assigned
from tests.words.vocabulary import Vocabulary, named, spine, vocabulary_of

ASKING = frozenset(["getattr", "hasattr", "isinstance", "issubclass"])
MISSES = frozenset(["AttributeError"])


def feature_conditions(tree: Tree) -> tuple[int, list[Finding]]:
    """How many conditions of the spine ask for a feature, and which."""
    vocabulary = vocabulary_of(tree)
    findings = [
        finding for module in spine(tree) for finding in sorted(conditions_of(module, vocabulary))
    ]
    return len(findings), findings


def conditions_of(module: Module, vocabulary: Vocabulary) -> Iterator[Finding]:
    """The conditions of a module that ask for a feature, each once."""
    scopes: list[ast.Module | Function] = [
        module.syntax,
        *(node for node in module.nodes if isinstance(node, Function)),
    ]
    aliases = {id(scope): _aliases(scope, vocabulary) for scope in scopes}
    everywhere = aliases[id(module.syntax)]
    local: dict[int, dict[str, str]] = {}
    for scope in scopes[1:]:  # The inner functions come last, and see the names of the outer ones.
        inherited = local.get(id(scope), everywhere)
        for node in ast.walk(scope):
            local[id(node)] = inherited | aliases[id(scope)]
    seen: set[int] = set()
    for node in module.nodes:
        for condition in _asked_by(node):
            if id(condition) in seen:
                continue
            names = local.get(id(condition), everywhere)
            mentioned = _mention(condition, vocabulary, names)
            if mentioned is not None:
                seen.update(id(inner) for inner in ast.walk(condition))
                text = f"{' '.join(_text(module, condition).split())}  ({mentioned})"
                yield module.finding(_placed(condition, node), text)


def _placed(condition: ast.AST, node: ast.AST) -> ast.AST:
    return condition if hasattr(condition, "lineno") else node


def _text(module: Module, condition: ast.AST) -> str:
    if isinstance(condition, ast.ExceptHandler):
        return "except AttributeError"
    return ast.get_source_segment(module.source, condition) or ""


def _asked_by(node: ast.AST) -> Iterator[ast.AST]:
    """The conditions that a node has itself, taken apart where they are joined."""
    match node:
        case ast.If() | ast.While() | ast.IfExp() | ast.Assert():
            yield from _parts(node.test)
        case ast.comprehension():
            for test in node.ifs:
                yield from _parts(test)
        case ast.BoolOp() | ast.UnaryOp(op=ast.Not()):
            yield from _parts(node)
        case ast.Compare():
            yield node
        case ast.Match():
            yield node.subject
            for case in node.cases:
                yield case.pattern
                if case.guard is not None:
                    yield from _parts(case.guard)
        case ast.Call(func=ast.Name(id=name)) if name in ASKING:
            yield node
        case ast.Call(func=function) if named(function) in ("suppress", "bool", "filter"):
            yield node
        case ast.ExceptHandler():
            yield node
        case _:
            pass


def _parts(test: ast.expr) -> Iterator[ast.expr]:
    match test:
        case ast.BoolOp(values=values):
            for value in values:
                yield from _parts(value)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield from _parts(operand)
        case _:
            yield test


def _mention(condition: ast.AST, vocabulary: Vocabulary, names: dict[str, str]) -> str | None:
    if isinstance(condition, ast.ExceptHandler):
        caught = ast.walk(condition.type) if condition.type is not None else ()
        return "asks by trying" if any(named(node) in MISSES for node in caught) else None
    if isinstance(condition, ast.Call) and named(condition.func) == "suppress":
        caught = (node for argument in condition.args for node in ast.walk(argument))
        return "asks by trying" if any(named(node) in MISSES for node in caught) else None
    called = {
        id(node.func)
        for node in ast.walk(condition)
        if isinstance(node, ast.Call) and named(node.func) not in vocabulary.answers
    }
    for node in ast.walk(condition):
        if isinstance(node, ast.Name) and node.id in names:
            return f"{node.id}: {names[node.id]}"
        found = vocabulary.mention(node)
        if found is not None and not (id(node) in called and found.startswith(".")):
            return found
    return None


def _aliases(scope: ast.Module | Function, vocabulary: Vocabulary) -> dict[str, str]:
    """Other names for what belongs to a feature, as in `kind = item.bond`. A comparison that is
    given a name is a condition where it stands."""
    aliases: dict[str, str] = {}
    for node in ast.walk(scope) if isinstance(scope, Function) else scope.body:
        value = getattr(node, "value", None)
        mentioned = None
        match value:
            case ast.Attribute() | ast.Name() | ast.Subscript():
                # Only what is asked for last: what is found by way of a feature is not one.
                mentioned = aliases.get(named(value)) or vocabulary.mention(value)
            case ast.Call() if named(value.func) == "get":
                mentioned = vocabulary.mention(value)
        if mentioned is not None:
            aliases.update((t.id, mentioned) for t in assigned(node) if isinstance(t, ast.Name))
    return aliases
