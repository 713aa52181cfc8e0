"""A random draw of what is written, for a reader who has nothing else: `scripts/words --draw`.

What the reader cannot understand is mended, and drawn again with another seed.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from random import Random

from tests.words.docstrings import docstrings
from tests.words.tree import Module, Tree

DOCSTRINGS, MESSAGES, PAGES = 50, 20, 5
"""How many of each are drawn."""

SHORTEST = 3
"""Words that a text must have to be a message: `raise KeyError(name)` has none."""


def messages(module: Module) -> Iterator[str]:
    """The texts with which a module raises errors, `{...}` standing for what is filled in."""
    for node in module.nodes:
        match node:
            case ast.Raise(
                exc=ast.Call(func=raised, args=[ast.JoinedStr() | ast.Constant() as text, *_])
            ):
                said = _text(text)
                # What a private function gets is a part of the message that it makes.
                private = ast.unparse(raised).rpartition(".")[2].startswith("_")
                if not private and len(said.split()) >= SHORTEST:
                    yield said
            case _:
                pass


def _text(node: ast.JoinedStr | ast.Constant) -> str:
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    parts = [part.value if isinstance(part, ast.Constant) else "{...}" for part in node.values]
    return "".join(map(str, parts))


def _full(module: Module, name: str) -> str:
    return name if name == module.name else f"{module.name}.{name}"


def draw(tree: Tree, seed: int) -> Iterator[str]:
    """Draw docstrings with the names of their owners, messages, and pages by their path."""
    random = Random(seed)
    yield f"seed {seed}"
    described = [
        f"{_full(module, name)}: {' '.join(text.split())}"
        for module in tree.modules
        for name, _, text in docstrings(module)
    ]
    said = sorted({text for module in tree.modules for text in messages(module)})
    pages = sorted(str(path.relative_to(tree.root)) for path in tree.root.glob("docs/**/*.md"))
    for kind, texts, size in (
        ("docstrings", described, DOCSTRINGS),
        ("messages", said, MESSAGES),
        ("pages", pages, PAGES),
    ):
        yield f"\n{min(size, len(texts))} of {len(texts)} {kind}:"
        yield from random.sample(texts, min(size, len(texts)))
