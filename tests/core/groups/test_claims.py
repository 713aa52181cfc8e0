"""Claims: everybody sees the message, and one may act on it."""

from __future__ import annotations

from typing import Any

import pytest

from lasthop.clock import DAY
from lasthop.core.lifecycle import State
from lasthop.message import Binding
from lasthop.store.groups import GroupMessageRow
from lasthop.wire.hop.decisions import GroupDecision, GroupVerdict
from lasthop.wire.hop.frames import (
    Ack,
    Dropped,
    Headers,
    MessageFrame,
    Operation,
)
from tests.core.groups.crew import CLAIM, CREW, Crew
from tests.core.rig import APP, to


def claimable(rig: Crew, **fields: Any) -> int:
    (key,) = rig.publish(to("group:crew", **CLAIM, **fields))
    rig.run()
    return key


GRANT = GroupDecision(GroupVerdict.GRANT, "one")
DENY = GroupDecision(GroupVerdict.DENY, "one")
RETRACT = GroupDecision(GroupVerdict.RETRACT, "one")


def test_exactly_one_claim_is_granted_and_the_others_hear_of_it(rig: Crew) -> None:
    one, two = rig.gather("one", "two")
    three = rig.connect("three")
    rig.gateway.groups.join(APP, "three", CREW, rig.now)
    rig.lose(three)
    key = claimable(rig)
    rig.ack(two, 1)
    rig.claim(one, key)
    rig.claim(two, key)
    assert rig.decisions(one) == [(9, GRANT)]
    assert rig.decisions(two) == [(key, RETRACT), (9, DENY)]
    three = rig.back("three", three, 0)
    assert not rig.messages(three), "who was not shown it never is"
    assert rig.all_states(key)[2] is State.SUPPRESSED
    assert (
        rig.store.find(GroupMessageRow, [key])[key].device
        == rig.gateway.registry.named(APP, "one").number
    )


@pytest.mark.parametrize("crash", [False, True])
def test_asking_again_gets_the_same_answer(rig: Crew, crash: bool) -> None:
    one, two = rig.gather("one", "two")
    key = claimable(rig)
    rig.ack(one, 1)
    rig.ack(two, 1)
    rig.claim(one, key)
    if crash:
        rig.crash()
        one, two = rig.back("one", one, 2), rig.back("two", two, 2)
    rig.claim(two, key, own=11)
    rig.claim(one, key, seq=1, own=12)
    assert rig.decisions(one)[-1] == (12, GRANT)
    assert rig.decisions(two)[-1] == (11, DENY)


def test_a_grant_is_durable_before_its_answer(rig: Crew) -> None:
    one, two = rig.gather("one", "two")
    key = claimable(rig)
    rig.ack(two, 1)
    headers = Headers(operation=Operation.CLAIM, in_reply_to=key)
    rig.hear(one, MessageFrame(0, 9, None, headers, b""), run=False)
    rig.settle()
    assert not rig.decisions(one)
    rig.crash()
    two = rig.back("two", two, 1)
    rig.claim(two, key)
    assert rig.decisions(two)[-1][1] == GroupDecision(GroupVerdict.GRANT, "two")


def test_what_was_let_go_unseen_is_suppressed(rig: Crew) -> None:
    one, two = rig.gather("one", "two")
    key = claimable(rig)
    rig.ack(two, 1, 0)
    rig.claim(one, key)
    rig.hear(two, Dropped(((0, 1),)), Ack(2, 2))
    assert rig.all_states(key)[1] is State.SUPPRESSED
    told = [e for e in rig.events() if e["kind"] == "suppressed"]
    assert told[-1]["reason"] == "claimed by one"


def test_only_members_claim_and_only_what_can_be_claimed(rig: Crew) -> None:
    rig.gather("one")
    three = rig.connect("three")
    key = claimable(rig)
    rig.claim(three, key)
    rig.claim(three, 12345, seq=1)
    rig.hear(three, MessageFrame(2, 9, None, Headers(operation=Operation.CLAIM)))
    codes = [frame.body for frame in rig.messages(three)]
    assert b"forbidden" in codes[0]
    assert b"not_found" in codes[1]
    assert b"a claim must name the message" in codes[2]


def test_cancelling_takes_back_the_right_to_act(rig: Crew) -> None:
    one, _ = rig.gather("one", "two")
    key = claimable(rig)
    rig.ack(one, 1)
    withdrawal = rig.gateway.cancel(APP, key, rig.now)
    assert withdrawal is not None
    assert (withdrawal.taken_back, withdrawal.too_late) == (2, 0)
    rig.run()
    rig.claim(one, key)
    assert rig.decisions(one) == [
        (key, GroupDecision(GroupVerdict.RETRACT)),
        (9, GroupDecision(GroupVerdict.DENY)),
    ]


def test_what_everybody_has_seen_and_nobody_claimed_can_be_cancelled(rig: Crew) -> None:
    (one,) = rig.gather("one")
    key = claimable(rig)
    rig.ack(one, 1)
    assert key not in rig.gateway.deliveries.items
    withdrawal = rig.gateway.cancel(APP, key, rig.now)
    assert withdrawal is not None
    assert withdrawal.taken_back == 1
    assert rig.gateway.cancel("other", key, rig.now) is None
    rig.run()
    assert rig.decisions(one) == [(key, GroupDecision(GroupVerdict.RETRACT))]


def test_once_it_is_claimed_it_is_too_late_to_cancel(rig: Crew) -> None:
    one, _ = rig.gather("one", "two")
    key = claimable(rig)
    rig.claim(one, key)
    withdrawal = rig.gateway.cancel(APP, key, rig.now)
    assert withdrawal is not None
    assert withdrawal.taken_back == 0


def test_what_nobody_claims_in_time_nobody_may_claim(rig: Crew) -> None:
    (one,) = rig.gather("one")
    key = claimable(rig)
    rig.ack(one, 1)
    rig.crash()
    one = rig.back("one", one, 1)
    rig.pass_time(8 * DAY)
    rig.claim(one, key)
    assert rig.decisions(one) == [
        (key, GroupDecision(GroupVerdict.RETRACT)),
        (9, GroupDecision(GroupVerdict.DENY)),
    ]
    assert [e["state"] for e in rig.events() if e["kind"] == "settled"] == ["UNCLAIMED"]


def test_a_winner_that_is_removed_stays_the_winner(rig: Crew) -> None:
    one, two = rig.gather("one", "two")
    key = claimable(rig)
    rig.claim(one, key)
    rig.gateway.admin.remove(APP, "one", rig.now)
    rig.run()
    rig.claim(two, key)
    assert rig.decisions(two)[-1] == (9, GroupDecision(GroupVerdict.DENY))


def test_the_sending_device_learns_the_winner(rig: Crew) -> None:
    one, two = rig.gather("one", "two")
    own = rig.now // 1000 << 22
    headers = Headers(to="group:crew", binding=Binding.CLAIM)
    rig.hear(two, MessageFrame(0, own, None, headers, b"who"))
    (frame,) = rig.messages(one)
    assert frame.key is not None
    rig.claim(one, frame.key)
    assert (own, GroupDecision(GroupVerdict.CLAIMED, "one")) in rig.decisions(two)
