"""The tests of a module are where one looks for them."""

from __future__ import annotations

from pathlib import Path

from tests.docs.mirroring import ROOT, misplaced, modules_alone


def a_tree(root: Path, **texts: str) -> Path:
    """A repository with these files."""
    for path, text in texts.items():
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return root


def test_every_test_file_mirrors_a_module_or_names_what_it_is_about() -> None:
    assert list(misplaced(ROOT)) == []


def test_a_file_that_mirrors_nothing_is_told_what_to_do(tmp_path: Path) -> None:
    module, test = "src/lasthop/core/lane.py", '"""Lanes."""'
    root = a_tree(tmp_path, **{module: "", "tests/core/test_lines.py": test})
    (said,) = misplaced(root)
    assert said.startswith("tests/core/test_lines.py mirrors no module: move it to the place of")
    assert list(modules_alone(root)) == [Path("core/lane.py")]


def test_a_file_beside_its_module_or_about_it_is_in_its_place(tmp_path: Path) -> None:
    mirror, about = "tests/core/test_lane.py", "tests/core/test_promises.py"
    root = a_tree(tmp_path, **{"src/lasthop/core/lane.py": "", mirror: ""})
    assert [*misplaced(root), *modules_alone(root)] == []
    (root / mirror).rename(root / about)
    (root / about).write_text('"""Order.\n\nAbout `core/lane.py`.\n"""')
    assert [*misplaced(root), *modules_alone(root)] == []


def test_a_path_that_is_gone_is_noticed(tmp_path: Path) -> None:
    root = a_tree(tmp_path, **{"tests/core/test_x.py": '"""About `core/lines.py`."""'})
    assert list(misplaced(root)) == [
        "tests/core/test_x.py is about core/lines.py, which is not there"
    ]


def test_a_helper_of_tests_is_no_module(tmp_path: Path) -> None:
    helper = {"src/lasthop/core/lane.py": "", "tests/core/rig.py": "", "tests/core/test_rig.py": ""}
    assert len(list(misplaced(a_tree(tmp_path, **helper)))) == 1
