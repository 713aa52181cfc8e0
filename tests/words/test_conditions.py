from __future__ import annotations

from textwrap import indent

import pytest

from tests.words.conditions import feature_conditions
from tests.words.conftest import Grow

SPINE = """
    class Delivery:
        __slots__ = ("ahead", "item", "state")

        def __init__(self, item):
            self.item = item
            self.ahead = False
            self.state = None
            self.shared = None
            self.table = {}
            self.marked = False
            self.noted = False

        def mark(self):
            self.marked = True

        def note(self):
            self.noted = True

        def move(self, state):
            self.note()
            self.state = state
            self.ahead = False

    def step(delivery):
        delivery.move(3)

    class Decider:
        patient = False
        lasting = False

        def greedy(self):
            return False

        def due(self, delivery):
            return False
"""

GROUPS = """
    from lasthop.core.delivery import Decider, Delivery

    class Roster(Decider):
        patient = True

        def __init__(self):
            self.elders = ()

        def greedy(self):
            return True

        def due(self, delivery):
            delivery.ahead = True
            delivery.state = 3
            delivery.mark()
            delivery.note()
            delivery.shared = self
            delivery.table["key"] = self
            return delivery.item.late

    class Lasting(Decider):
        lasting = True
"""

AIR = """
    from lasthop.core.delivery import Decider

    class Carrier(Decider):
        lasting = True

        def due(self, delivery):
            delivery.shared = self
"""


def conditions(grow: Grow, code: str, file: str = "core/dispatch.py") -> list[str]:
    """What is counted in a function with this body."""
    tree = grow(
        {
            "core/__init__.py": "",
            "core/delivery.py": SPINE,
            "core/groups/__init__.py": "",
            "core/groups/roster.py": GROUPS,
            "core/air/carrier.py": AIR,
            file: f"def f(item, delivery, decider, kind):\n{indent(code, '    ')}",
        }
    )
    count, findings = feature_conditions(tree)
    assert count == len(findings)
    return [finding.text.partition("  (")[0] for finding in findings]


@pytest.mark.parametrize(
    "code",
    [
        "if item.bond: pass",
        "if not item.bond: pass",
        "if kind:\n    pass\nelif item.bond: pass",
        "while item.bond: pass",
        "return 1 if item.bond else 2",
        "return [i for i in kind if i.bond]",
        "assert item.bond",
        "return kind and item.bond",
        "return item.bond is None",
        "return isinstance(item, Roster)",
        "match item.bond:\n    case 3: pass",
        "match item:\n    case Roster(): pass",
        "match item:\n    case {'bond': 3}: pass",
        "match item:\n    case _ if item.bond: pass",
        "return next(filter(lambda i: i.bond, kind))",
        "return bool(item.bond)",
    ],
)
def test_every_kind_of_condition_counts_once(grow: Grow, code: str) -> None:
    assert len(conditions(grow, code)) == 1


@pytest.mark.parametrize(
    "code",
    [
        "if item.is_ranked: pass",
        "if self._dirty_feeds: pass",
        "if delivery.session.steering is not None: pass",
        "if kind is TargetKind.TOPIC: pass",
        "if kind in (TargetKind.DEVICE, TargetKind.QUEUE): pass",
        "if content_type == FEED_TYPE: pass",
        "if decider.elders: pass",
        "if type(decider) is Roster: pass",
    ],
)
def test_a_condition_counts_that_names_something_of_a_feature(grow: Grow, code: str) -> None:
    assert len(conditions(grow, code)) == 1


@pytest.mark.parametrize(
    "code",
    [
        "if item.extras['x']: pass",
        "if item.extras.get('x'): pass",
        "if 'x' in item.flags: pass",
        "if 'x' not in options: pass",
        "if hasattr(item, 'bond'): pass",
        "if getattr(item, 'elders', None): pass",
        "if type(decider).__name__ == 'Roster': pass",
        "if kind == 'topic': pass",
        "if delivery.ahead: pass",
        "if delivery.marked: pass",
        "if decider.patient: pass",
        "if decider.greedy(): pass",
        "if 3 in delivery.table: pass",
        "known = item.bond\nif known: pass",
        "bag = item.extras.get('x')\nif bag: pass",
        "known = item.bond\nsame = known\nif same is None: pass",
        "known = item.bond\ndef g():\n    return known is None",
        "ask = item.bond is None\nif ask: pass",
        "try:\n    item.x()\nexcept AttributeError: pass",
        "with suppress(AttributeError):\n    item.x()",
    ],
)
def test_asking_in_disguise_counts_once(grow: Grow, code: str) -> None:
    assert len(conditions(grow, code)) == 1


def test_a_constant_of_the_module_is_no_disguise(grow: Grow) -> None:
    tree = grow(
        {
            "core/x.py": """
                from lasthop.message import TargetKind

                HERE, THERE = 1, 2
                MANY = TargetKind.TOPIC

                def f(kind):
                    return kind is MANY
            """
        }
    )
    [finding] = feature_conditions(tree)[1]
    assert str(finding) == "src/lasthop/core/x.py:8: kind is MANY  (MANY: TargetKind.TOPIC)"


@pytest.mark.parametrize(
    "code",
    [
        "if delivery.state: pass",  # The spine moves it.
        "if delivery.noted: pass",  # So it does, by a method.
        "if delivery.item is None: pass",  # It has a value from the start.
        "if decider.lasting or delivery.shared: pass",  # More than one feature sets them.
        "if decider.due(delivery): pass",  # A moment of the seam.
        "if kind is TargetKind.DEVICE: pass",
        "if kind == 'x': pass",
        "item.bond = 3",
        "return item.bond",
        "try:\n    item.x()\nexcept ValueError: pass",
    ],
)
def test_what_belongs_to_the_spine_does_not_count(grow: Grow, code: str) -> None:
    assert conditions(grow, code) == []


@pytest.mark.parametrize(
    "file", ["core/gateway.py", "core/identity.py", "core/groups/other.py", "device/dispatch.py"]
)
def test_only_the_spine_is_asked(grow: Grow, file: str) -> None:
    assert conditions(grow, "if item.bond: pass", file) == []


def test_each_operand_counts_for_itself_and_has_its_line(grow: Grow) -> None:
    code = "if (\n    item.bond\n    and (kind or not delivery.ranked)\n): pass"
    assert conditions(grow, code) == ["item.bond", "delivery.ranked"]


def test_a_driver_that_sets_a_flag_too_makes_it_everybodys(grow: Grow) -> None:
    grow({"runtime/x.py": "from lasthop.core import delivery\ndef f(d):\n    d.ahead = 3"})
    assert conditions(grow, "if delivery.ahead: pass") == []


def test_what_an_imported_module_declares_is_data(grow: Grow) -> None:
    grow({"message.py": "class Message:\n    ahead: bool = False"})
    code = "from lasthop.message import Message\nif delivery.ahead: pass"
    assert conditions(grow, code) == []
