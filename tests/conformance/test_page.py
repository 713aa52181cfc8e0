"""The conformance page says what the tests prove, no more and no less."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.conformance.page import PAGE, Proof, _in_file, items, page, proofs


def test_the_page_is_current() -> None:
    assert PAGE.read_text("utf-8") == page(proofs()), "write it again with scripts/conformance"


def test_there_is_a_row_for_every_item_of_the_appendix() -> None:
    assert list(items()) == [
        "PPG-CO-S-001",
        *(f"PPG-GEN-S-{n:03}" for n in range(1, 28)),
        *(f"PPG-ADD-S-{n:03}" for n in range(1, 5)),
    ]


def test_every_mandatory_row_is_proven() -> None:
    mandatory = {item for item, row in items().items() if row["status"] == "M"}
    assert not mandatory - {proof.item for proof in proofs()}


def test_a_proven_row_names_its_tests_and_an_unproven_one_says_so() -> None:
    text = page([Proof("PPG-GEN-S-001", "tests/a/test_b.py", "it_is_refused")])
    (proven,) = [line for line in text.splitlines() if line.startswith("| PPG-GEN-S-001 ")]
    (unproven,) = [line for line in text.splitlines() if line.startswith("| PPG-GEN-S-002 ")]
    assert "| M | yes | [a/test_b it is refused](../../tests/a/test_b.py) |" in proven
    assert "*not yet*" in unproven


def test_an_item_that_there_is_not_is_refused() -> None:
    with pytest.raises(ValueError, match="PPG-GEN-S-999"):
        page([Proof("PPG-GEN-S-999", "tests/a/test_b.py", "x")])


def test_markers_of_functions_and_classes_are_found() -> None:
    source = """
@pytest.mark.conformance("A", "B")
async def test_one(): ...

@pytest.mark.conformance("C")
class TestAll: ...

@pytest.mark.slow
def test_other(): ...
"""
    assert list(_in_file(ast.parse(source), "tests/x.py")) == [
        Proof("A", "tests/x.py", "one"),
        Proof("B", "tests/x.py", "one"),
        Proof("C", "tests/x.py", "All"),
    ]


def test_only_tests_are_looked_at(tmp_path: Path) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "page.py").write_text('@pytest.mark.conformance("A")\ndef f(): ...\n')
    assert proofs(tmp_path) == []
