"""Groups and queues at the gateway: what is decided, when, and what survives a crash."""

from __future__ import annotations

from typing import Any

import pytest

from lasthop.clock import DAY, SECOND
from lasthop.core.groups.circles import Circle
from lasthop.core.lifecycle import State
from lasthop.core.mailroom import Limits
from lasthop.errors import Conflict, Forbidden, InvalidRequest, NotFound, QuotaExceeded, TooLarge
from lasthop.message import GATEWAY, Binding, Reliability, Target, TargetKind
from lasthop.wire.hop.decisions import Decision, Verdict, decode_decision
from lasthop.wire.hop.frames import (
    ALL_FEATURES,
    Ack,
    Dropped,
    Headers,
    MessageFrame,
    Operation,
)
from tests.core.rig import APP, Rig, to

CREW, JOBS = Target(TargetKind.GROUP, "crew"), Target(TargetKind.QUEUE, "jobs")
ATOMIC: dict[str, Any] = {"binding": Binding.ATOMIC}
CLAIM: dict[str, Any] = {"binding": Binding.CLAIM}


class Crew(Rig):
    """Devices that know groups."""

    def connect(self, name: str = "phone", **claims: Any) -> int:
        claims.setdefault("features", int(ALL_FEATURES))
        return super().connect(name, **claims)

    def gather(self, *names: str, into: Target = CREW) -> list[int]:
        """Let devices come and belong to something."""
        channels = [self.connect(name) for name in names]
        for name in names:
            self.gateway.join(APP, name, into, self.now)
        self.run()
        return channels

    def atomic(self, **fields: Any) -> int:
        """An atomic message for the crew, of ten seconds."""
        fields.setdefault("deliver_before", self.now + 10 * SECOND)
        (key,) = self.publish(to("group:crew", **ATOMIC, **fields))
        self.run()
        return key

    def back(self, name: str, channel: int, received: int, delivered: int | None = None) -> int:
        """A device comes back that remembers its channel's WELCOME."""
        welcome = self.welcome(channel)
        return self.connect(
            name,
            incarnation=welcome.incarnation,
            epoch=welcome.epoch,
            received=received,
            delivered=received if delivered is None else delivered,
        )

    def decisions(self, channel: int) -> list[tuple[int | None, Decision]]:
        """What was decided, as this channel's device heard it."""
        return [
            (frame.headers.in_reply_to, decode_decision(frame.body))
            for frame in self.messages(channel)
            if frame.headers is not None and frame.headers.operation == Operation.DECISION
        ]

    def all_states(self, key: int) -> list[State]:
        return [State(row.state) for row in self.store.deliveries(key)]

    def claim(self, channel: int, key: int, *, seq: int = 0, own: int = 9) -> None:
        headers = Headers(operation=Operation.CLAIM, in_reply_to=key)
        self.hear(channel, MessageFrame(seq, own, None, headers, b""))


@pytest.fixture
def rig() -> Crew:
    return Crew()


RELEASE, ABORT = Decision(Verdict.RELEASE), Decision(Verdict.ABORT)


# Plain groups.


def test_a_group_message_goes_to_its_members_and_names_the_group(rig: Crew) -> None:
    one, two = rig.gather("one", "two")
    outside = rig.connect("three")
    rig.publish(to("group:crew"))
    rig.run()
    for channel in (one, two):
        (frame,) = rig.messages(channel)
        assert frame.headers is not None
        assert (frame.headers.group, frame.headers.binding) == ("crew", Binding.NONE)
    assert not rig.messages(outside)


def test_membership_is_frozen_at_acceptance_across_a_crash() -> None:
    rig = Crew(Limits(fanout_batch=1))
    rig.gather("one", "two", "three")
    (key,) = rig.publish(to("group:crew"))
    rig.run_commits(1)
    rig.gateway.leave(APP, "three", CREW, rig.now)
    rig.gateway.join(APP, "one", Target(TargetKind.GROUP, "other"), rig.now)
    rig.run_commits(1)
    rig.crash()
    rig.run()
    assert len(rig.store.deliveries(key)) == 3
    assert not rig.store.find_bonds([key])[key].open


def test_a_group_that_nobody_is_in_is_not_written_to(rig: Crew) -> None:
    with pytest.raises(NotFound, match="nobody is in this group"):
        rig.publish(to("group:nobody"))


def test_groups_survive_a_restart_and_a_removed_device_is_in_none(rig: Crew) -> None:
    rig.gather("one", "two")
    rig.crash()
    assert len(rig.gateway.registry.members(APP, CREW)) == 2
    rig.gateway.remove(APP, "one", rig.now)
    rig.run()
    rig.crash()
    assert [d.name for d in rig.gateway.registry.members(APP, CREW).values()] == ["two"]
    assert rig.gateway.remove_circle(APP, CREW, rig.now) == 1
    rig.run()
    rig.crash()
    assert rig.gateway.bonds.circles.find(APP, CREW) is None
    with pytest.raises(NotFound, match="no such group"):
        rig.gateway.remove_circle(APP, CREW, rig.now)


def test_a_closed_group_takes_nobody_by_itself(rig: Crew) -> None:
    rig.gateway.make_circle(APP, CREW, Circle(open=False), rig.now)
    rig.connect("one")
    session = rig.gateway.room.session(rig.gateway.device(APP, "one"))
    with pytest.raises(Forbidden, match="only an administrator adds to this group"):
        rig.gateway.bonds.join(session, CREW, rig.now, by_itself=True)
    assert rig.gateway.join(APP, "one", CREW, rig.now)
    assert not rig.gateway.join(APP, "one", CREW, rig.now)


def test_devices_join_and_leave_by_themselves(rig: Crew) -> None:
    channel = rig.connect("one")
    rig.hear(channel, MessageFrame(0, 1, None, Headers(operation=Operation.JOIN, to="group:crew")))
    assert rig.gateway.registry.members(APP, CREW)
    rig.hear(channel, MessageFrame(1, 2, None, Headers(operation=Operation.LEAVE, to="group:crew")))
    assert not rig.gateway.registry.members(APP, CREW)


@pytest.mark.parametrize("target", [None, "device:one", "group:", "group:a b", "crew"])
def test_what_cannot_be_joined_is_refused(rig: Crew, target: str | None) -> None:
    channel = rig.connect("one")
    rig.hear(channel, MessageFrame(0, 1, None, Headers(operation=Operation.JOIN, to=target)))
    (refusal,) = rig.messages(channel)
    assert b"invalid_request" in refusal.body


def test_a_device_is_in_so_many_groups_at_most() -> None:
    rig = Crew(Limits(circles_per_device=1))
    rig.gather("one")
    with pytest.raises(QuotaExceeded, match="too many groups"):
        rig.gateway.join(APP, "one", JOBS, rig.now)


# Atomic messages.


def test_nobody_takes_back_what_was_decided(rig: Crew) -> None:
    one, two = rig.gather("one", "two")
    rig.atomic()
    rig.lose(two)
    two = rig.back("two", two, 0)
    rig.hear(two, Ack(1, 0))
    rig.lose(two)  # The decision will have to wait for it.
    rig.hear(one, Ack(1, 0))
    decision = next(
        item.message.key
        for item in rig.gateway.room.items.values()
        if item.message.source == GATEWAY
    )
    with pytest.raises(NotFound, match="no such message"):
        rig.gateway.cancel(APP, decision, rig.now)
    with pytest.raises(NotFound, match="no such message"):
        rig.gateway.replace(APP, decision, "publisher:x", to("group:crew"), rig.now)


def test_an_atomic_message_is_shown_when_every_member_has_it(rig: Crew) -> None:
    one, two = rig.gather("one", "two")
    key = rig.atomic()
    (frame,) = rig.messages(one)
    assert frame.headers is not None
    assert frame.headers.binding is Binding.ATOMIC
    rig.ack(one, 1)
    assert not rig.decisions(one)
    rig.ack(two, 1)
    assert rig.decisions(one) == rig.decisions(two) == [(key, RELEASE)]
    assert rig.all_states(key) == [State.RECEIVED, State.RECEIVED]
    rig.ack(one, 2)
    rig.ack(two, 2, 1)
    assert rig.all_states(key) == [State.DELIVERED, State.RECEIVED]
    rig.ack(two, 2)
    assert rig.all_states(key) == [State.DELIVERED, State.DELIVERED]


def test_a_decision_is_durable_before_anybody_hears_of_it(rig: Crew) -> None:
    one, two = rig.gather("one", "two")
    key = rig.atomic()
    rig.ack(one, 1)
    rig.hear(two, Ack(1, 1), run=False)
    rig.settle()
    assert not rig.decisions(one)
    rig.crash()
    again = [rig.back(name, channel, 1) for name, channel in (("one", one), ("two", two))]
    assert [rig.decisions(channel) for channel in again] == [[(key, RELEASE)]] * 2


def test_at_its_deadline_it_is_aborted_for_all(rig: Crew) -> None:
    (one,) = rig.gather("one")
    two = rig.connect("two")
    rig.gateway.join(APP, "two", CREW, rig.now)
    rig.lose(two)
    key = rig.atomic()
    rig.ack(one, 1)
    rig.pass_time(10 * SECOND)
    assert rig.all_states(key) == [State.ABORTED, State.ABORTED]
    assert rig.decisions(one) == [(key, ABORT)]
    two = rig.back("two", two, 0)
    assert not rig.messages(two), "who was sent nothing of it hears nothing of it"
    rig.ack(one, 2)
    assert not rig.gateway.room.items


@pytest.mark.parametrize("crash", [False, True])
def test_a_released_message_has_no_deadline_any_more(rig: Crew, crash: bool) -> None:
    one, two = rig.gather("one", "two")
    key = rig.atomic()
    rig.ack(one, 1)
    rig.ack(two, 1)
    rig.lose(two)
    if crash:
        rig.crash()
    rig.pass_time(DAY)
    two = rig.back("two", two, 1)
    assert rig.decisions(two) == [(key, RELEASE)]
    rig.ack(two, 2)
    assert State.DELIVERED in rig.all_states(key)


def test_who_lost_its_memory_before_the_release_gets_it_again(rig: Crew) -> None:
    one, two = rig.gather("one", "two")
    rig.atomic()
    rig.ack(one, 1)
    one = rig.connect("one")
    (frame,) = rig.messages(one)
    assert frame.headers is not None
    assert frame.headers.binding is Binding.ATOMIC
    rig.ack(two, 1)
    assert not rig.decisions(two)
    rig.ack(one, 1)
    assert rig.decisions(two)


def test_who_lost_its_memory_after_the_release_is_shown_it_as_it_comes(rig: Crew) -> None:
    one, two = rig.gather("one", "two")
    key = rig.atomic()
    rig.ack(one, 1)
    rig.ack(two, 1)
    one = rig.connect("one")
    frame, *_ = rig.messages(one)
    assert frame.key == key
    assert frame.headers is not None
    assert frame.headers.binding is Binding.NONE
    rig.ack(one, 2)
    assert rig.all_states(key)[0] is State.DELIVERED


def test_who_cannot_show_it_is_sent_it_once_more(rig: Crew) -> None:
    one, two = rig.gather("one", "two")
    key = rig.atomic()
    rig.ack(one, 1)
    rig.ack(two, 1)
    rig.hear(one, Dropped(((1, 2),)), Ack(2, 2))
    frame = rig.messages(one)[-1]
    assert frame.key == key
    assert frame.headers is not None
    assert frame.headers.binding is Binding.NONE
    rig.ack(one, 3)
    assert rig.all_states(key)[0] is State.DELIVERED


def test_a_new_numbering_loses_nothing_that_is_held(rig: Crew) -> None:
    one, two = rig.gather("one", "two")
    key = rig.atomic()
    rig.ack(one, 1, 0)
    welcome = rig.welcome(one)
    # Numbers that we never gave out: we are a copy of ourselves, and start anew.
    one = rig.connect(
        "one", incarnation=welcome.incarnation, epoch=welcome.epoch, received=5, delivered=0
    )
    rig.ack(two, 1)
    assert rig.decisions(one)[-1] == (key, RELEASE)


@pytest.mark.parametrize("received", [0, 1])
def test_cancelling_takes_it_back_from_everybody(rig: Crew, received: int) -> None:
    one, two = rig.gather("one", "two")
    key = rig.atomic()
    if received:
        rig.ack(one, 1)
    withdrawal = rig.gateway.cancel(APP, key, rig.now)
    assert withdrawal is not None
    assert (withdrawal.taken_back, withdrawal.too_late) == (2, 0)
    rig.run()
    assert rig.all_states(key) == [State.CANCELLED, State.CANCELLED]
    assert rig.decisions(one) == rig.decisions(two) == [(key, ABORT)]
    rig.ack(two, 2)
    assert rig.all_states(key) == [State.CANCELLED, State.CANCELLED]


def test_after_the_release_it_is_too_late_to_cancel(rig: Crew) -> None:
    one, two = rig.gather("one", "two")
    key = rig.atomic()
    rig.ack(one, 1)
    rig.ack(two, 1)
    withdrawal = rig.gateway.cancel(APP, key, rig.now)
    assert withdrawal is not None
    assert (withdrawal.taken_back, withdrawal.too_late) == (0, 2)


def test_a_number_that_was_called_back_before_it_left_is_closed(rig: Crew) -> None:
    (one,) = rig.gather("one")
    (key,) = rig.publish(to("group:crew", deliver_before=rig.now + SECOND, **ATOMIC))
    rig.settle()
    assert rig.take(flush=True) is not None  # With its acceptance and its number.
    rig.gateway.cancel(APP, key, rig.now)
    rig.run()
    assert not [frame for frame in rig.messages(one) if frame.key == key]
    assert rig.skips(one) == [0]


def test_replacing_goes_to_the_same_members(rig: Crew) -> None:
    one, _ = rig.gather("one", "two")
    key = rig.atomic()
    rig.ack(one, 1)
    rig.gateway.leave(APP, "two", CREW, rig.now)
    new = to("group:crew", b"better", deliver_before=rig.now + SECOND, **ATOMIC)
    withdrawal, message = rig.gateway.replace(APP, key, "publisher:shop", new, rig.now)
    rig.run()
    assert withdrawal is not None
    assert withdrawal.taken_back == 2
    assert message is not None
    assert len(rig.store.deliveries(int(message[:16], 16))) == 2
    assert rig.all_states(key) == [State.REPLACED, State.REPLACED]


def test_a_replace_key_replaces_the_whole(rig: Crew) -> None:
    one, two = rig.gather("one", "two")
    old = rig.atomic(replace_key="plan")
    rig.ack(one, 1)
    new = rig.atomic(replace_key="plan")
    assert rig.all_states(old) == [State.REPLACED, State.REPLACED]
    rig.ack(one, 3)
    rig.ack(two, 3)
    assert rig.decisions(two)[-1] == (new, RELEASE)
    rig.atomic(replace_key="plan")
    assert rig.all_states(new) == [State.RECEIVED, State.RECEIVED]


def test_a_member_that_is_removed_aborts_it(rig: Crew) -> None:
    one, two = rig.gather("one", "two")
    key = rig.atomic()
    rig.ack(one, 1)
    rig.lose(two)
    rig.gateway.remove(APP, "two", rig.now)
    rig.run()
    rig.pass_time(1)
    assert rig.all_states(key)[0] is State.ABORTED
    assert rig.decisions(one) == [(key, ABORT)]


def test_a_device_that_cannot_hold_is_sent_nothing_until_it_can(rig: Crew) -> None:
    (one,) = rig.gather("one")
    two = rig.connect("two", features=0)
    rig.gateway.join(APP, "two", CREW, rig.now)
    rig.atomic()
    rig.publish(to("two", b"plain"))
    rig.run()
    assert rig.bodies(two) == [b"plain"]
    two = rig.back("two", two, 1)
    rig.ack(one, 1)
    rig.ack(two, 2)
    assert rig.decisions(one)


@pytest.mark.parametrize(
    "target, fields, error, words",
    [
        ("group:crew", ATOMIC, InvalidRequest, "needs deliver_before"),
        ("one", CLAIM, InvalidRequest, "only a message for a group"),
        ("queue:jobs", CLAIM, InvalidRequest, "only a message for a group"),
        (
            "group:crew",
            {**CLAIM, "reliability": Reliability.BEST_EFFORT},
            InvalidRequest,
            "the application confirms",
        ),
        ("queue:none", {}, NotFound, "no such queue"),
    ],
)
def test_what_cannot_be_promised_is_refused(
    rig: Crew, target: str, fields: dict[str, Any], error: type[Exception], words: str
) -> None:
    rig.gather("one")
    rig.gateway.make_circle(APP, JOBS, Circle(), rig.now)
    with pytest.raises(error, match=words):
        rig.publish(to(target, **fields))


def test_limits_of_bound_messages() -> None:
    rig = Crew(Limits(bound_members=1, open_per_device=1))
    rig.gather("one", "two")
    with pytest.raises(TooLarge, match="too many members"):
        rig.publish(to("group:crew", **CLAIM))
    rig.gateway.leave(APP, "two", CREW, rig.now)
    rig.publish(to("one"))
    with pytest.raises(QuotaExceeded, match="mailbox full"):
        rig.publish(to("group:crew", **CLAIM))


def test_the_device_that_sent_it_hears_what_was_decided(rig: Crew) -> None:
    one, two = rig.gather("one", "two")
    headers = Headers(to="group:crew", binding=Binding.ATOMIC, deliver_within=9000)
    rig.hear(one, MessageFrame(0, rig.now // 1000 << 22, None, headers, b"all"))
    rig.ack(two, 1)
    rig.ack(one, 1)
    assert rig.decisions(one)[-1][1] == Decision(Verdict.RELEASED)


# Claims.


def claimable(rig: Crew, **fields: Any) -> int:
    (key,) = rig.publish(to("group:crew", **CLAIM, **fields))
    rig.run()
    return key


GRANT = Decision(Verdict.GRANT, "one")
DENY = Decision(Verdict.DENY, "one")
RETRACT = Decision(Verdict.RETRACT, "one")


def test_exactly_one_claim_is_granted_and_the_others_hear_of_it(rig: Crew) -> None:
    one, two = rig.gather("one", "two")
    three = rig.connect("three")
    rig.gateway.join(APP, "three", CREW, rig.now)
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
    assert rig.store.find_bonds([key])[key].device == rig.gateway.device(APP, "one").number


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
    assert rig.decisions(two)[-1][1] == Decision(Verdict.GRANT, "two")


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
    assert rig.decisions(one) == [(key, Decision(Verdict.RETRACT)), (9, Decision(Verdict.DENY))]


def test_what_everybody_has_seen_and_nobody_claimed_can_be_cancelled(rig: Crew) -> None:
    (one,) = rig.gather("one")
    key = claimable(rig)
    rig.ack(one, 1)
    assert key not in rig.gateway.room.items
    withdrawal = rig.gateway.cancel(APP, key, rig.now)
    assert withdrawal is not None
    assert withdrawal.taken_back == 1
    assert rig.gateway.cancel("other", key, rig.now) is None
    rig.run()
    assert rig.decisions(one) == [(key, Decision(Verdict.RETRACT))]


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
    assert rig.decisions(one) == [(key, Decision(Verdict.RETRACT)), (9, Decision(Verdict.DENY))]
    assert [e["state"] for e in rig.events() if e["kind"] == "settled"] == ["UNCLAIMED"]


def test_a_winner_that_is_removed_stays_the_winner(rig: Crew) -> None:
    one, two = rig.gather("one", "two")
    key = claimable(rig)
    rig.claim(one, key)
    rig.gateway.remove(APP, "one", rig.now)
    rig.run()
    rig.claim(two, key)
    assert rig.decisions(two)[-1] == (9, Decision(Verdict.DENY))


def test_the_sending_device_learns_the_winner(rig: Crew) -> None:
    one, two = rig.gather("one", "two")
    own = rig.now // 1000 << 22
    headers = Headers(to="group:crew", binding=Binding.CLAIM)
    rig.hear(two, MessageFrame(0, own, None, headers, b"who"))
    (frame,) = rig.messages(one)
    assert frame.key is not None
    rig.claim(one, frame.key)
    assert (own, Decision(Verdict.CLAIMED, "one")) in rig.decisions(two)


# Queues.


def jobs(rig: Crew, *names: str, **terms: Any) -> list[int]:
    rig.gateway.make_circle(APP, JOBS, Circle(**terms), rig.now)
    return rig.gather(*names, into=JOBS)


def job(rig: Crew, body: bytes = b"job", **fields: Any) -> int:
    (key,) = rig.publish(to("queue:jobs", body, **fields))
    rig.run()
    return key


def test_messages_go_round_the_consumers(rig: Crew) -> None:
    one, two = jobs(rig, "one", "two")
    for n in range(4):
        job(rig, b"%d" % n)
    assert sorted(rig.bodies(one) + rig.bodies(two)) == [b"0", b"1", b"2", b"3"]
    assert len(rig.bodies(one)) == len(rig.bodies(two)) == 2
    (frame, _) = rig.messages(one)
    assert frame.headers is not None
    assert frame.headers.queue == "jobs"


def test_without_a_consumer_they_wait_durably_and_in_order(rig: Crew) -> None:
    jobs(rig)
    for n, priority in enumerate((4, 4, 9)):
        job(rig, b"%d" % n, priority=priority)
    rig.crash()
    assert rig.gateway.bonds.queue(APP, "jobs").length == 3
    (one,) = rig.gather("one", into=JOBS)
    assert rig.bodies(one) == [b"2", b"0", b"1"]


def test_a_consumer_has_so_many_at_a_time(rig: Crew) -> None:
    (one,) = jobs(rig, "one", prefetch=2)
    for n in range(3):
        job(rig, b"%d" % n)
    assert len(rig.bodies(one)) == 2
    rig.ack(one, 2, 1)
    assert len(rig.bodies(one)) == 3


def test_what_takes_too_long_goes_to_another_marked_as_such(rig: Crew) -> None:
    one, two = jobs(rig, "one", "two", patience=5 * SECOND)
    key = job(rig)
    rig.ack(one, 1, 0)
    rig.pass_time(5 * SECOND)
    (frame,) = rig.messages(two)
    assert frame.headers is not None
    assert frame.headers.redelivered
    rig.ack(two, 1)
    assert rig.all_states(key) == [State.REASSIGNED, State.DELIVERED]
    assert not rig.gateway.room.items


def test_with_nobody_else_there_a_consumer_may_go_on(rig: Crew) -> None:
    (one,) = jobs(rig, "one", patience=5 * SECOND)
    key = job(rig)
    rig.ack(one, 1, 0)
    rig.pass_time(60 * SECOND)
    assert len(rig.messages(one)) == 1
    rig.ack(one, 1)
    assert rig.all_states(key) == [State.DELIVERED]


def test_it_may_come_back_to_who_had_it_first(rig: Crew) -> None:
    one, two = jobs(rig, "one", "two", patience=5 * SECOND)
    key = job(rig)
    rig.lose(one)
    rig.pass_time(6 * SECOND)
    assert rig.messages(two)
    rig.lose(two)
    one = rig.back("one", one, 1, 0)
    assert not rig.messages(one)
    rig.pass_time(6 * SECOND)
    frame = rig.messages(one)[-1]
    assert frame.key == key
    assert frame.headers is not None
    assert frame.headers.redelivered
    rig.ack(one, 2)
    assert rig.all_states(key) == [State.DELIVERED, State.REASSIGNED]


def test_what_has_not_left_is_given_to_another_at_once(rig: Crew) -> None:
    one, two = jobs(rig, "one", "two")
    rig.publish(to("queue:jobs"))
    rig.settle()
    rig.take(flush=True)
    rig.gateway.channel_lost(one, "broken", rig.now)
    rig.write()
    rig.run()
    rig.pass_time(61 * SECOND)
    assert len(rig.messages(one)) + len(rig.messages(two)) == 1


def test_a_consumer_that_leaves_or_is_removed_leaves_its_work_to_others(rig: Crew) -> None:
    one, two = jobs(rig, "one", "two", patience=5 * SECOND)
    key = job(rig)
    other = job(rig)
    rig.gateway.leave(APP, "one", JOBS, rig.now)
    rig.gateway.remove(APP, "two", rig.now)
    rig.run()
    rig.gather("three", into=JOBS)
    rig.pass_time(6 * SECOND)
    assert {f.key for f in rig.messages(max(rig.sent))} == {key, other}
    assert not rig.messages(two)[1:]
    assert one


def test_a_waiting_message_expires_and_is_cancelled(rig: Crew) -> None:
    jobs(rig)
    late = job(rig, deliver_before=rig.now + SECOND)
    gone = job(rig)
    early = job(rig, deliver_after=rig.now + 5 * SECOND)
    withdrawal = rig.gateway.cancel(APP, gone, rig.now)
    assert withdrawal is not None
    assert withdrawal.taken_back == 1
    rig.pass_time(2 * SECOND)
    states = [e["state"] for e in rig.events() if e["kind"] == "settled"]
    assert states == ["CANCELLED", "EXPIRED"]
    assert {row.open for row in rig.store.find_bonds([late, gone]).values()} == {False}
    (one,) = rig.gather("one", into=JOBS)
    assert not rig.messages(one)
    rig.pass_time(5 * SECOND)
    assert [f.key for f in rig.messages(one)] == [early]


def test_what_has_left_cannot_be_cancelled(rig: Crew) -> None:
    jobs(rig, "one")
    key = job(rig)
    withdrawal = rig.gateway.cancel(APP, key, rig.now)
    assert withdrawal is not None
    assert (withdrawal.taken_back, withdrawal.too_late) == (0, 1)


def test_a_waiting_message_is_replaced(rig: Crew) -> None:
    jobs(rig)
    old = job(rig)
    _, new = rig.gateway.replace(APP, old, "p:x", to("queue:jobs", b"new"), rig.now)
    assert new is not None
    job(rig, b"first", replace_key="k")
    job(rig, b"second", replace_key="k")
    (one,) = rig.gather("one", into=JOBS)
    assert rig.bodies(one) == [b"new", b"second"]


def test_a_queue_has_a_limit_and_is_removed_when_it_is_empty() -> None:
    rig = Crew(Limits(queue_length=1))
    jobs(rig)
    key = job(rig)
    with pytest.raises(QuotaExceeded, match="the queue is full"):
        job(rig)
    with pytest.raises(Conflict, match="the queue is not empty"):
        rig.gateway.remove_circle(APP, JOBS, rig.now)
    rig.gateway.cancel(APP, key, rig.now)
    rig.gateway.remove_circle(APP, JOBS, rig.now)
    with pytest.raises(NotFound, match="no such queue"):
        job(rig)


def test_a_consumer_that_cannot_take_it_leaves_it_to_others(rig: Crew) -> None:
    (small,) = [rig.connect("small", max_frame=8192)]
    rig.gateway.make_circle(APP, JOBS, Circle(), rig.now)
    rig.gateway.join(APP, "small", JOBS, rig.now)
    key = job(rig, b"x" * 10_000)
    assert not rig.messages(small)
    assert rig.all_states(key) == [State.UNDELIVERABLE]
    (big,) = rig.gather("big", into=JOBS)
    assert [f.key for f in rig.messages(big)] == [key]
    rig.ack(big, 1)
    assert not rig.gateway.room.items


@pytest.mark.parametrize("when", range(6))
def test_a_crash_at_any_commit_gives_a_job_to_somebody(when: int) -> None:
    rig = Crew()
    one, two = jobs(rig, "one", "two", patience=5 * SECOND)
    (key,) = rig.publish(to("queue:jobs"))
    rig.run_commits(when)
    rig.crash()
    if not rig.store.messages([key]):
        return
    one, two = rig.back("one", one, 0), rig.back("two", two, 0)
    rig.pass_time(12 * SECOND)
    frames = [f for c in (one, two) for f in rig.messages(c) if f.key == key]
    assert frames
    unmarked = [f for f in frames if f.headers is None or not f.headers.redelivered]
    assert len(unmarked) <= 1
