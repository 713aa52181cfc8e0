from __future__ import annotations

from tests.words.conftest import Grow
from tests.words.repeated import repeated_classes, repeated_files


def test_a_class_name_in_two_modules_counts_once(grow: Grow) -> None:
    tree = grow(
        {
            "a.py": "class Desk: pass\nclass Other: pass",
            "b/c.py": "\nclass Desk: pass",
            "d.py": "class Outer:\n    class Desk: pass",
            "e.py": "class Alone: pass\nclass Alone: pass",
        }
    )
    count, findings = repeated_classes(tree)
    assert count == 1
    assert [str(finding) for finding in findings] == [
        "src/lasthop/a.py:1: class Desk",
        "src/lasthop/b/c.py:2: class Desk",
        "src/lasthop/d.py:2: class Desk",
    ]


def test_a_file_name_in_two_folders_counts_once(grow: Grow) -> None:
    tree = grow({"a/x.py": "", "b/x.py": "", "b/y.py": "", "a/__init__.py": "", "__init__.py": ""})
    count, findings = repeated_files(tree)
    assert count == 1
    assert [finding.path for finding in findings] == ["src/lasthop/a/x.py", "src/lasthop/b/x.py"]


def test_what_is_called_alike_in_two_packages_is_no_repetition(grow: Grow) -> None:
    grow({"x.py": "class Desk: pass"})
    tree = grow({"x.py": "class Desk: pass"}, "lasthop_xml")
    assert repeated_classes(tree) == (0, [])
    assert repeated_files(tree) == (0, [])
    tree = grow({"b/x.py": "class Desk: pass"}, "lasthop_xml")
    assert [finding.path for finding in repeated_files(tree)[1]] == [
        "packages/xml/src/lasthop_xml/b/x.py",
        "packages/xml/src/lasthop_xml/x.py",
    ]
    assert repeated_classes(tree)[0] == 1
