from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.words.conftest import Grow
from tests.words.measure import MEASURES, main

SOURCES = {
    "core/a.py": '"""It has."""\nfrom lasthop.core import b\n',
    "core/b.py": "import lasthop.core.a\n",
    "a/x.py": "class Item:\n    pass\n",
    "b/x.py": "class Item:\n    pass\n",
}


@pytest.fixture
def root(grow: Grow) -> Path:
    return grow(SOURCES).root


def limit(root: Path, lines: str) -> None:
    (root / "pyproject.toml").write_text(f"[tool.lasthop.words]\n{lines}\n")


def test_the_values_are_printed_as_json(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    limit(root, "")
    assert main(["--json"], root) == 0
    values = json.loads(capsys.readouterr().out)
    assert list(values) == list(MEASURES)
    assert values == {
        "largest_knot": {"core": 2, "device": 1},
        "feature_conditions": 0,
        "repeated_classes": 1,
        "repeated_files": 1,
        "short_docstrings": 1,
        "unknown_words": values["unknown_words"],
        "statements": 7,
        "statements_gateway": 7,
        "statements_xml": 0,
        "lines": 7,
        "lines_gateway": 7,
        "lines_xml": 0,
    }


def test_sizes_are_those_of_each_package_and_of_both(
    root: Path, grow: Grow, capsys: pytest.CaptureFixture[str]
) -> None:
    limit(root, "")
    grow({"a.py": "x = 1\ny = 2\n"}, "lasthop_xml")
    main(["--json"], root)
    values = json.loads(capsys.readouterr().out)
    assert [values[f"statements{each}"] for each in ("", "_gateway", "_xml")] == [9, 7, 2]
    assert [values[f"lines{each}"] for each in ("", "_gateway", "_xml")] == [9, 7, 2]


def test_a_value_above_its_limit_fails_and_says_how_to_see_why(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    limit(root, "largest_knot = 1\nrepeated_classes = 0\nrepeated_files = 1")
    assert main([], root) == 1
    first, second = capsys.readouterr().err.splitlines()
    assert first == (
        "words: largest_knot is 2, the limit in pyproject.toml is 1; "
        "scripts/words --list largest_knot names them"
    )
    assert second.startswith("words: repeated_classes is 1, the limit in pyproject.toml is 0; ")


def test_the_table_says_where_a_limit_can_go_down(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    limit(root, "repeated_classes = 60\nrepeated_files = 1")
    assert main([], root) == 0
    rows = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert "repeated_classes 1 60 the limit can go down" in rows
    assert "repeated_files 1 1" in rows
    assert "largest_knot core 2, device 1" in rows


def test_the_offenders_of_a_measure_are_named(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--list", "short_docstrings"], root) == 0
    assert capsys.readouterr().out == "src/lasthop/core/a.py:1: lasthop.core.a: 'It has.'\n"


def test_a_limit_for_what_is_not_measured_is_refused(root: Path) -> None:
    limit(root, "shortest_knot = 1")
    with pytest.raises(SystemExit, match="limits what is not measured: shortest_knot"):
        main([], root)
