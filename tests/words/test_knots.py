from __future__ import annotations

import pytest

from tests.words.conftest import Grow
from tests.words.knots import largest_knot


def test_modules_that_import_downwards_are_no_knot(grow: Grow) -> None:
    tree = grow(
        {
            "core/a.py": "import lasthop.core.b\nfrom lasthop.core import c",
            "core/b.py": "from lasthop.core.c import Something",
            "core/c.py": "from lasthop.clock import Micros",
            "clock.py": "from lasthop.core import a",
        }
    )
    assert largest_knot(tree, "lasthop.core") == (1, [])


@pytest.mark.parametrize(
    "third",
    [
        "from lasthop.core.a import A",
        "from lasthop.core import a",
        "import lasthop.core.a",
        "if TYPE_CHECKING:\n    from lasthop.core.a import A",
        "def f():\n    from lasthop.core.a import A",
        "import importlib\ndef f():\n    return importlib.import_module('lasthop.core.a')",
    ],
)
def test_an_import_closes_a_knot_wherever_it_stands(grow: Grow, third: str) -> None:
    tree = grow(
        {
            "core/a.py": "from lasthop.core.b import B",
            "core/b.py": "from lasthop.core.deep.c import C",
            "core/deep/c.py": third,
            "core/d.py": "from lasthop.core.a import A",
        }
    )
    size, findings = largest_knot(tree, "lasthop.core")
    assert size == 3
    assert [str(finding) for finding in findings] == [
        "src/lasthop/core/a.py:1: knot 1 of lasthop.core, 3 modules: imports b",
        "src/lasthop/core/b.py:1: knot 1 of lasthop.core, 3 modules: imports deep.c",
        "src/lasthop/core/deep/c.py:1: knot 1 of lasthop.core, 3 modules: imports a",
    ]


def test_the_largest_of_several_knots_counts(grow: Grow) -> None:
    tree = grow(
        {
            "device/a.py": "import lasthop.device.b",
            "device/b.py": "import lasthop.device.a",
            "device/c.py": "import lasthop.device.d, lasthop.device.a",
            "device/d.py": "import lasthop.device.e",
            "device/e.py": "import lasthop.device.c",
        }
    )
    size, findings = largest_knot(tree, "lasthop.device")
    assert size == 3
    assert [f.path[-4:-3] for f in findings] == ["c", "d", "e", "a", "b"]
