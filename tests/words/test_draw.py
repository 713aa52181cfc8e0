"""`scripts/words --draw`: texts drawn at random, the same ones from the same seed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from tests.words.draw import draw
from tests.words.tree import Tree

Grow = Callable[[Mapping[str, str]], Tree]

SOURCE = '''"""A module that counts."""
def count(n):
    """Count to `n`."""
    if n < 0:
        raise ValueError(f"cannot count to {n} in this way")
    raise KeyError(n)
'''


def test_docstrings_and_messages_are_drawn_with_their_seed(grow: Grow) -> None:
    drawn = list(draw(grow({"counting.py": SOURCE}), 7))
    assert drawn[0] == "seed 7"
    assert "lasthop.counting.count: Count to `n`." in drawn
    assert "lasthop.counting: A module that counts." in drawn
    assert "cannot count to {...} in this way" in drawn
    assert "\n1 of 1 messages:" in drawn


def test_pages_are_drawn_by_their_path(grow: Grow) -> None:
    tree = grow({"counting.py": SOURCE})
    page = Path(tree.root, "docs", "counting.md")
    page.parent.mkdir()
    page.write_text("# Counting\n")
    assert list(draw(tree, 1))[-1] == "docs/counting.md"


def test_a_seed_draws_the_same_again(grow: Grow) -> None:
    names = (f"def count_{n}():\n    '''Count to {n} and back.'''\n" for n in range(200))
    tree = grow({"counting.py": "".join(names)})
    assert list(draw(tree, 3)) == list(draw(tree, 3))
    assert list(draw(tree, 3)) != list(draw(tree, 4))
