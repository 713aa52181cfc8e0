"""Words in public names that nobody would look up, or that the glossary has retired.

A word is known if it is in `scripts/words.txt` (the English dictionary, as far as our names use it)
or in one of the first two tables of `docs/glossary.md` (what it means here; words of the field).
For a word of the third table there is a better one, although it is English.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.words.split import words_of
from tests.words.tree import (
    Finding,
    Function,
    Module,
    Tree,
    assigned,
    is_public,
    public_definitions,
)

WORD_LIST = Path("scripts/words.txt")
GLOSSARY = Path("docs/glossary.md")


@dataclass(frozen=True)
class Glossary:
    """The tables of the glossary page."""

    terms: tuple[str, ...]
    """Words with one meaning each, in the order of the page."""
    field: frozenset[str]
    """Abbreviations and technical words that need no explanation to those who know the field."""
    retired: frozenset[str]
    """Words that names no longer use."""

    @property
    def known(self) -> frozenset[str]:
        """Every single word that may be part of a name."""
        return self.field.union(*map(words_of, self.terms)) - self.retired


def read_glossary(page: str) -> Glossary:
    """Read the page: the table of words, that of the field's words, and that of retired words."""
    tables = [_rows(section) for section in page.split("\n## ")[1:]]
    words, field, retired = (*tables, [], [], [])[:3]
    return Glossary(
        tuple(row[0] for row in words),
        frozenset(word for row in field for word in row[1].split(", ")),
        frozenset(word for row in retired for word in row[0].split(", ")),
    )


def _rows(section: str) -> list[list[str]]:
    lines = [line for line in section.splitlines() if line.startswith("|")]
    # The first two are the head of the table.
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def unknown_words(tree: Tree) -> tuple[int, list[Finding]]:
    """How many public names have a word that is not known, and where each is first used."""
    glossary = read_glossary(_text(tree.root / GLOSSARY))
    english = _text(tree.root / WORD_LIST).split()
    known = glossary.known.union(english) - glossary.retired
    first: dict[str, Finding] = {}
    for module in tree.modules:
        for name, node in public_names(module):
            if name not in first:
                bad = [w for w in words_of(name) if len(w) > 1 and w not in known]
                if bad:
                    first[name] = module.finding(node, f"{name} ({', '.join(bad)})")
    return len(first), sorted(first.values())


def dictionary_words(tree: Tree, dictionary: Iterable[str]) -> list[str]:
    """The words of our public names that a dictionary has: the content of `scripts/words.txt`."""
    used = {
        word
        for module in tree.modules
        for name, _ in public_names(module)
        for word in words_of(name)
        if len(word) > 1
    }
    return sorted(used.intersection(dictionary))


def public_names(module: Module) -> Iterator[tuple[str, ast.AST]]:
    """The public names that a module introduces: its own, its constants, classes, functions,
    methods, their parameters, and attributes."""
    own = module.name.rpartition(".")[2]
    if is_public(own):
        yield own, module.syntax
    for statement in module.syntax.body:
        yield from _assigned(statement)
    for _, node in public_definitions(module):
        yield node.name, node
        if isinstance(node, ast.ClassDef):
            yield from _members(node)
        else:
            yield from _parameters(node)


def _members(node: ast.ClassDef) -> Iterator[tuple[str, ast.AST]]:
    for statement in node.body:
        yield from _assigned(statement)
        if isinstance(statement, Function):
            if statement.name == "__init__":
                yield from _parameters(statement)
            for inner in ast.walk(statement):
                for target in assigned(inner):
                    match target:
                        case ast.Attribute(value=ast.Name(id="self"), attr=name):
                            if is_public(name):
                                yield name, target
                        case _:
                            pass


def _assigned(statement: ast.stmt) -> Iterator[tuple[str, ast.AST]]:
    if isinstance(statement, ast.Assign | ast.AnnAssign):
        for target in assigned(statement):
            if isinstance(target, ast.Name) and is_public(target.id):
                yield target.id, target


def _parameters(node: Function) -> Iterator[tuple[str, ast.AST]]:
    rest = [a for a in (node.args.vararg, node.args.kwarg) if a is not None]
    for argument in [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs, *rest]:
        if is_public(argument.arg) and argument.arg not in ("self", "cls"):
            yield argument.arg, argument


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.exists() else ""
