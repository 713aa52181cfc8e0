"""A feature is added without a word in the product: it takes part by what every feature takes part
by."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from lasthop.clock import SECOND
from lasthop.core.gateway import FEATURES
from lasthop.core.lifecycle import State
from lasthop.wire.hop.frames import MessageFrame
from tests.core.naps import COST, LAST_WORDS, NAP, Naps
from tests.core.rig import Rig, to
from tests.core.services.test_feature import says

ROOT = Path(__file__).parents[2]


@pytest.fixture
def rig() -> Rig:
    return Rig(features=(*FEATURES, Naps))


def nap(rig: Rig, channel: int, seconds: bytes = b"30") -> MessageFrame | None:
    """The device asks for a nap; what the gateway answers."""
    return says(rig, channel, NAP, seconds)


def test_what_comes_during_a_nap_comes_after_it(rig: Rig) -> None:
    phone = rig.connect("phone")
    assert nap(rig, phone) is None
    rig.publish(to("phone", b"one"), to("phone", b"two"))
    rig.run()
    assert rig.bodies(phone) == []
    rig.pass_time(31 * SECOND)
    assert rig.bodies(phone) == [b"one", b"two"]


def test_a_nap_outlives_a_crash(rig: Rig) -> None:
    nap(rig, rig.connect("phone"))
    rig.publish(to("phone", b"one"))
    rig.run()
    rig.crash()
    phone = rig.connect("phone")
    rig.run()
    assert rig.bodies(phone) == []
    rig.pass_time(31 * SECOND)
    assert rig.bodies(phone) == [b"one"]


def test_the_decider_of_the_feature_decides(rig: Rig) -> None:
    phone = rig.connect("phone")
    nap(rig, phone)
    (key,) = rig.publish(to("phone", b"bye", title=LAST_WORDS))
    rig.run()
    (frame,) = rig.messages(phone)
    assert frame.headers is not None
    assert ("tone", "soft") in frame.headers.extra
    rig.ack(phone, 1, 0)
    assert rig.state(key) is State.DELIVERED
    (end,) = [e for e in rig.events() if e.get("msg") == key and e["kind"] == "delivered"]
    assert end["reason"] == "heard in its sleep"
    assert rig.gateway.feature(Naps).ended_while_napping == 1


def test_the_sender_of_the_feature_says_what_it_cost(rig: Rig) -> None:
    phone = rig.connect("phone")
    nap(rig, phone, b"0")
    (key,) = rig.publish(to("phone"))
    rig.run()
    (left,) = [e for e in rig.events() if e.get("msg") == key and e["kind"] == "transmitted"]
    assert left["cost"] == COST / 1_000_000


def test_the_operation_of_the_feature_is_refused_in_its_own_words(rig: Rig) -> None:
    refusal = nap(rig, rig.connect("phone"), b"long")
    assert refusal is not None
    assert b"a nap has a number of seconds" in refusal.body


def test_without_the_feature_there_is_no_such_operation() -> None:
    rig = Rig()
    refusal = nap(rig, rig.connect("phone"))
    assert refusal is not None
    assert b"unknown operation" in refusal.body


def test_two_features_that_claim_the_same_are_refused_at_the_start() -> None:
    with pytest.raises(AssertionError, match="two features claim 200"):
        Rig(features=(*FEATURES, Naps, Naps))


def test_every_module_of_the_spine_is_under_its_contract() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    (spine,) = [c for c in contracts["contracts"] if c["id"] == "spine"]
    (features,) = [c for c in contracts["contracts"] if c["id"] == "features"]
    core = ROOT / "src/lasthop/core"
    folders = {path.parent.name for path in core.glob("*/__init__.py")}
    with_feature = {path.parent.name for path in core.glob("*/feature.py")}
    modules = {path.stem for path in core.glob("*.py")} - {
        "__init__",
        "gateway",
        "identity",
        "spine",
    }
    assert set(features["modules"]) == {f"lasthop.core.{folder}" for folder in with_feature}
    others = modules | folders - with_feature
    assert set(spine["source_modules"]) == {f"lasthop.core.{name}" for name in others}
    assert spine["forbidden_modules"] == features["modules"]
