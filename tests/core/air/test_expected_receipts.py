"""Receipts of networks: noted once, for the right delivery, across restarts; they confirm
nothing."""

from __future__ import annotations

import pytest

from lasthop.clock import SECOND
from lasthop.core.air.expected_receipts import WAIT
from lasthop.core.lifecycle import State
from lasthop.decision.routes import Route, Variant
from lasthop.delivery.carrier import Sent
from lasthop.wire.smpp.commands import SmsState
from tests.core.rig import APP, Rig, to

PHONE = Route(Variant.SMS, "+15551999")
ARRIVED = SmsState.DELIVERED


def sent(rig: Rig, *names: str) -> int:
    """A message that was sent in parts, with a receipt promised for each."""
    if rig.gateway.registry.find(APP, "phone") is None:
        rig.add("phone", PHONE)
    (key,) = rig.publish(to("phone"))
    rig.run()
    rig.report(Sent(receipts=names))
    assert rig.state(key) is State.SENT
    return key


def note(rig: Rig, *names: str, state: SmsState = ARRIVED, error: str = "") -> bool:
    known = rig.gateway.air.receipts.noted(names, state, error, rig.now)
    rig.run()
    return known


def receipt(rig: Rig, key: int) -> int:
    (row,) = rig.store.deliveries(key)
    return row.receipt


def test_a_receipt_is_noted_and_confirms_nothing(rig: Rig) -> None:
    key = sent(rig, "one/1")
    assert receipt(rig, key) == 0
    assert note(rig, "one/1")
    assert receipt(rig, key) == ARRIVED
    assert rig.state(key) is State.SENT
    assert rig.story(key) == ["accepted", "released", "transmitted", "sent", "receipted"]
    assert not note(rig, "one/1"), "a second one is about nothing"


@pytest.mark.conformance("PPG-GEN-S-011")
def test_one_of_several_spellings_is_enough(rig: Rig) -> None:
    key = sent(rig, "one/16")
    assert note(rig, "one/10", "one/16")
    assert receipt(rig, key) == ARRIVED
    assert not note(rig, "two/16")


def test_a_long_message_is_there_when_all_parts_are(rig: Rig) -> None:
    key = sent(rig, "one/1", "one/2", "one/3")
    for name in ("one/2", "one/3"):
        assert note(rig, name)
        assert receipt(rig, key) == 0
    assert note(rig, "one/1")
    assert receipt(rig, key) == ARRIVED


@pytest.mark.parametrize("state", [SmsState.EXPIRED, SmsState.UNDELIVERABLE, SmsState.REJECTED])
def test_a_part_that_does_not_arrive_decides(rig: Rig, state: SmsState) -> None:
    key = sent(rig, "one/1", "one/2")
    note(rig, "one/1")
    assert note(rig, "one/2", state=state, error="012")
    assert receipt(rig, key) == state
    assert not note(rig, "one/1")


def test_what_is_not_final_changes_nothing(rig: Rig) -> None:
    key = sent(rig, "one/1")
    assert note(rig, "one/1", state=SmsState.ENROUTE)
    assert receipt(rig, key) == 0
    assert note(rig, "one/1")


def test_receipts_are_expected_across_restarts(rig: Rig) -> None:
    key = sent(rig, "one/1", "one/2")
    other = sent(rig, "one/3")
    rig.run()
    rig.crash()
    assert note(rig, "one/1")
    rig.crash()
    assert len(rig.gateway.air.receipts) == 2
    assert note(rig, "one/2")
    assert note(rig, "one/3")
    assert (receipt(rig, key), receipt(rig, other)) == (ARRIVED, ARRIVED)
    rig.crash()
    assert len(rig.gateway.air.receipts) == 0
    assert rig.story(key)[-1] == "receipted"


def test_after_some_days_none_is_expected(rig: Rig) -> None:
    sent(rig, "one/1")
    rig.now += WAIT
    sent(rig, "one/2")
    assert not note(rig, "one/1")
    rig.crash()
    assert len(rig.gateway.air.receipts) == 1


def test_a_removed_device_gets_none(rig: Rig) -> None:
    sent(rig, "one/1")
    rig.gateway.admin.remove(APP, "phone", rig.now)
    rig.run()
    assert not note(rig, "one/1")


def test_an_id_that_an_smsc_uses_again_is_about_the_newer_message(rig: Rig) -> None:
    older = sent(rig, "one/1")
    rig.now += SECOND
    newer = sent(rig, "one/1")
    assert note(rig, "one/1")
    assert (receipt(rig, older), receipt(rig, newer)) == (0, ARRIVED)
