"""Which behaviour of an app is in force: the one that was set, else the configured one."""

from __future__ import annotations

from hypothesis import given, strategies as st

from lasthop.core.apps.behaviour import Behaviour, Behaviours
from lasthop.store.commit import MemoryRow

APPS = ("shop", "news")
SOME = st.sampled_from([Behaviour(), Behaviour(pull=True), Behaviour(max_size=3)])
CONFIGURED = st.dictionaries(st.sampled_from(APPS), SOME)
STEPS = st.lists(st.tuples(st.sampled_from(APPS), st.none() | SOME))


@given(CONFIGURED, STEPS)
def test_what_was_set_last_holds_and_else_what_is_configured(
    configured: dict[str, Behaviour], steps: list[tuple[str, Behaviour | None]]
) -> None:
    behaviours = Behaviours(configured)
    kept: dict[str, MemoryRow] = {}
    for app, behaviour in steps:
        row = behaviours.set(app, behaviour)
        kept[row.name] = row
    was_set = dict(steps)
    restored = Behaviours(configured)
    restored.restore(row for row in kept.values() if row.state)
    for app in APPS:
        expected = was_set.get(app) or configured.get(app)
        assert behaviours.get(app) == restored.get(app) == expected
    known = [app for app in configured if was_set.get(app) is not None]
    assert behaviours.overridden == restored.overridden == sorted(known)


def test_another_configuration_holds_after_a_restart_unless_something_was_set() -> None:
    before = Behaviours({"shop": Behaviour(pull=True), "news": Behaviour(pull=True)})
    rows = [before.set("news", Behaviour(max_size=1))]
    after = Behaviours({"shop": Behaviour(max_size=7), "news": Behaviour(max_size=7)})
    after.restore(rows)
    assert after.get("shop") == Behaviour(max_size=7)
    assert after.get("news") == Behaviour(max_size=1)
    assert after.overridden == ["news"]


def test_memories_of_others_are_left_alone() -> None:
    behaviours = Behaviours({})
    behaviours.restore([MemoryRow(0, "other:shop", b"?"), MemoryRow(3, "behaviour:shop", b"?")])
    assert behaviours.get("shop") is None
