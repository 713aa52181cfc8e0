from __future__ import annotations

from pathlib import Path

import pytest

from tests.words.conftest import Grow
from tests.words.names import dictionary_words, public_names, unknown_words
from tests.words.split import words_of
from tests.words.tree import Module

PAGE = """# Glossary

## Words

| word | meaning |
|---|---|
| queue entry | One message in a queue. |

## Words of the field

| where | words |
|---|---|
| networks | ack, tcp |

## Words that are not used

| not | but |
|---|---|
| desk, desks | office |
"""


@pytest.fixture(autouse=True)
def lists(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/glossary.md").write_text(PAGE)
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts/words.txt").write_text("desk\nopen\nwindow\n")


@pytest.mark.parametrize(
    "name, words",
    [
        ("max_frame", ("max", "frame")),
        ("MaxFrame", ("max", "frame")),
        ("HTTPServer", ("http", "server")),
        ("MAX_IPV4", ("max", "ipv")),
        ("__init__", ("init",)),
        ("sha256_of", ("sha", "of")),
    ],
)
def test_a_name_is_split_into_its_words(name: str, words: tuple[str, ...]) -> None:
    assert words_of(name) == words


def test_words_of_the_dictionary_the_glossary_and_the_field_are_known(grow: Grow) -> None:
    tree = grow({"window.py": "def open_tcp(queue, entry, x, *ack): ...\nclass OpenWindow: ..."})
    assert unknown_words(tree) == (0, [])


def test_an_unknown_and_a_retired_word_count_once_for_each_name(grow: Grow) -> None:
    tree = grow(
        {
            "open.py": "class OpenDesk:\n    windw = 3\n\n    def ack(self, windw): ...",
            "window.py": "def open(OpenDesk): ...",
        }
    )
    count, findings = unknown_words(tree)
    assert count == 2
    assert [str(finding) for finding in findings] == [
        "src/lasthop/open.py:1: OpenDesk (desk)",
        "src/lasthop/open.py:2: windw (windw)",
    ]


def test_every_kind_of_public_name_is_looked_at() -> None:
    source = """
LIMIT, _OWN = 1, 2
class Lease:
    held: bool
    def __init__(self, until):
        self.ends = until
        self._own = local = 3
    def renew(self, *more, longer, _x=0, **rest): ...
    def _private(self, secret): ...
class _Private:
    hidden = 3
async def find(device, /): ...
"""
    found = [name for name, _ in public_names(Module("lasthop.rights", "rights.py", source))]
    assert " ".join(found) == (
        "rights LIMIT Lease held until ends find device renew longer more rest"
    )


def test_the_word_list_has_what_our_names_use_of_a_dictionary(grow: Grow) -> None:
    tree = grow({"window.py": "def open_tcp(entry): ..."})
    assert dictionary_words(tree, ["a", "entry", "open", "unused", "window"]) == [
        "entry",
        "open",
        "window",
    ]
