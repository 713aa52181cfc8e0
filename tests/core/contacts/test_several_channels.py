"""A session over several channels: what leaves over which, and what the end of one means.

About `core/contacts/contact.py` and `core/contacts/retransmission.py`.
"""

from __future__ import annotations

import pytest

from lasthop.clock import MILLISECOND, SECOND, Micros
from lasthop.core.contacts.contact import MOST_LINES
from lasthop.core.contacts.retransmission import FIRST_TIMEOUT, LEAST_TIMEOUT, LONGEST_TIMEOUT
from lasthop.core.lifecycle import State
from lasthop.wire.hop.frames import Ack, CloseCode, Credit
from tests.core.rig import APP, Rig, publication, to


@pytest.fixture
def rig() -> Rig:
    return Rig()


def bodies(*texts: str) -> list[bytes]:
    return [text.encode() for text in texts]


def test_a_channel_that_joins_replaces_none(rig: Rig) -> None:
    first = rig.connect(link="mno")
    second = rig.join(link="wifi")
    assert rig.welcome(second).joined
    assert rig.welcome(second).resumed
    assert rig.disconnected == []
    rig.publish(to("phone", b"a"))
    rig.run()
    assert rig.bodies(first) == []
    assert rig.bodies(second) == [b"a"]


def test_what_is_under_way_is_not_sent_again_for_a_channel_that_joins(rig: Rig) -> None:
    first = rig.connect()
    rig.publish(to("phone", b"a"))
    rig.run()
    second = rig.join()
    assert rig.bodies(first) == [b"a"]
    assert rig.bodies(second) == []


def test_acknowledgements_count_over_whichever_channel_they_come(rig: Rig) -> None:
    first = rig.connect()
    (key,) = rig.publish(to("phone"))
    rig.run()
    second = rig.join()
    rig.ack(second, 1)
    assert rig.state(key) is State.DELIVERED
    rig.lose(first)
    assert rig.bodies(second) == []


def test_the_end_of_one_channel_sends_what_it_owed_over_the_other(rig: Rig) -> None:
    first = rig.connect()
    rig.publish(to("phone", b"a"), to("phone", b"b"))
    rig.run()
    second = rig.join()
    rig.publish(to("phone", b"c"))
    rig.run()
    rig.ack(second, 1)
    rig.lose(first)
    assert rig.bodies(second) == bodies("c", "b")
    rig.publish(to("phone", b"d"))
    rig.run()
    assert rig.bodies(second) == bodies("c", "b", "d")


def test_the_end_of_the_newer_channel_goes_back_to_the_older(rig: Rig) -> None:
    first = rig.connect()
    second = rig.join()
    rig.publish(to("phone", b"a"))
    rig.run()
    rig.lose(second)
    assert rig.bodies(second) == [b"a"]
    assert rig.bodies(first) == [b"a"]
    assert rig.gateway.deliveries.named(APP, "phone").channel == first


def test_what_expired_on_the_lost_channel_is_closed_over_the_other(rig: Rig) -> None:
    first = rig.connect()
    rig.publish(to("phone", b"a", deliver_before=rig.now + 10 * SECOND))
    rig.run()
    second = rig.join()
    rig.pass_time(11 * SECOND)
    rig.lose(first)
    assert 0 in rig.skips(second)
    assert rig.states() == {State.TIMED_OUT: 1}


def test_without_a_receipt_the_other_channel_is_tried(rig: Rig) -> None:
    first = rig.connect()
    second = rig.join()
    (key,) = rig.publish(to("phone", b"a"))
    rig.run()
    assert rig.bodies(second) == [b"a"]
    rig.pass_time(FIRST_TIMEOUT)
    assert rig.bodies(first) == [b"a"]
    told = [event for event in rig.events() if event["kind"] == "transmitted"]
    assert [event["channel"] for event in told] == [second, first]
    assert told[1]["reason"] == "not acknowledged in time"
    rig.ack(first, 1)
    assert rig.state(key) is State.DELIVERED


class TestReceipts:
    """How long a receipt is waited for is learned from those that came."""

    def learn(self, rig: Rig, took: Micros, count: int = 20) -> tuple[int, int]:
        first = rig.connect()
        second = rig.join()
        for number in range(count):
            rig.publish(to("phone"))
            rig.run()
            rig.now += took
            rig.ack(second, number + 1)
        rig.sent[first], rig.sent[second] = rig.sent[first][:1], rig.sent[second][:1]
        return first, second

    def missed_after(self, rig: Rig, first: int, second: int) -> Micros:
        """When the other channel is tried."""
        rig.publish(to("phone", b"a"))
        rig.run()
        assert rig.bodies(second) == [b"a"]
        start = rig.now
        while not rig.bodies(first):
            due = rig.gateway.next_wake()
            assert due is not None
            rig.pass_time(due - rig.now)
        return rig.now - start

    @pytest.mark.parametrize(
        "took, least, most",
        [
            (MILLISECOND, LEAST_TIMEOUT, LEAST_TIMEOUT),
            (400 * MILLISECOND, LEAST_TIMEOUT, 600 * MILLISECOND),
            (1500 * MILLISECOND, 1500 * MILLISECOND, 1700 * MILLISECOND),
            (5 * SECOND, 5 * SECOND, 25 * SECOND),
            (100 * SECOND, LONGEST_TIMEOUT, LONGEST_TIMEOUT),
        ],
    )
    def test_it_is_missed_a_little_later_than_they_came(
        self, rig: Rig, took: Micros, least: Micros, most: Micros
    ) -> None:
        assert least <= self.missed_after(rig, *self.learn(rig, took)) <= most

    def test_each_channel_has_its_own(self, rig: Rig) -> None:
        _, second = self.learn(rig, MILLISECOND)
        third = rig.join(received=20)
        assert self.missed_after(rig, second, third) == FIRST_TIMEOUT

    def test_of_what_left_twice_nothing_is_learned(self, rig: Rig) -> None:
        first, second = self.learn(rig, MILLISECOND)
        for number in range(20, 30):
            rig.publish(to("phone", b"again"))
            rig.pass_time(LEAST_TIMEOUT)
            rig.pass_time(2 * SECOND // 5)
            rig.ack(first, number + 1)
        rig.sent[first], rig.sent[second] = rig.sent[first][:1], rig.sent[second][:1]
        assert self.missed_after(rig, first, second) == LEAST_TIMEOUT

    def test_one_that_is_slow_does_not_hold_up_one_that_is_quick(self, rig: Rig) -> None:
        first, second = self.learn(rig, MILLISECOND)
        slow = rig.join(received=20)
        rig.publish(to("phone", b"slow"))
        rig.run()
        rig.gateway.channel_paused(slow, True, rig.now)
        rig.publish(to("phone", b"quick"))
        rig.run()
        assert (rig.bodies(slow), rig.bodies(second)) == ([b"slow"], [b"quick"])
        rig.pass_time(LEAST_TIMEOUT)
        left = [body for channel in (first, second, slow) for body in rig.bodies(channel)]
        assert sorted(left) == [b"quick", b"quick", b"slow"]

    def test_haste_does_not_make_a_channel_hopeless_sooner(self, rig: Rig) -> None:
        channel = rig.connect(reliable=False)
        rig.publish(to("phone"))
        rig.run()
        rig.now += MILLISECOND
        rig.ack(channel, 1)
        rig.publish(to("phone"))
        rig.run()
        start = rig.now
        while not rig.disconnected:
            rig.pass_time(SECOND)
        assert rig.now - start >= 240 * SECOND


def test_a_paused_channel_leaves_it_to_the_others(rig: Rig) -> None:
    first = rig.connect()
    second = rig.join()
    rig.gateway.channel_paused(second, True, rig.now)
    rig.publish(to("phone", b"a"))
    rig.run()
    assert rig.bodies(first) == [b"a"]
    rig.gateway.channel_paused(first, True, rig.now)
    rig.publish(to("phone", b"b"))
    rig.run()
    assert rig.bodies(first) == [b"a"]
    assert rig.bodies(second) == []
    rig.gateway.channel_paused(second, False, rig.now)
    rig.run()
    assert rig.bodies(second) == [b"b"]


def test_the_device_is_acknowledged_over_one_channel_and_the_other_knows(rig: Rig) -> None:
    first = rig.connect()
    second = rig.join()
    rig.hear(second, publication(0, target="device:phone"))
    assert rig.acks(second) == [1]
    assert rig.acks(first) == []
    assert rig.sent_elsewhere == {first: [Ack(1, 1)]}


def test_an_acknowledgement_that_went_with_its_channel_is_said_again(rig: Rig) -> None:
    first = rig.connect()
    second = rig.join()
    rig.hear(second, publication(0, target="device:phone"))
    rig.lose(second)
    assert rig.acks(first) == [1]


def test_nothing_can_be_joined_without_contact(rig: Rig) -> None:
    first = rig.connect()
    rig.lose(first)
    lone = rig.join()
    (refusal,) = rig.disconnected
    assert (refusal.channel, refusal.code) == (lone, CloseCode.BYE)
    assert refusal.reason == "there is no contact to join"


def test_after_a_restart_there_is_nothing_to_join(rig: Rig) -> None:
    rig.connect()
    rig.crash()
    rig.join()
    assert rig.disconnected[-1].reason == "there is no contact to join"


def test_a_channel_of_another_numbering_does_not_join(rig: Rig) -> None:
    rig.connect()
    rig.connect(join=True, incarnation=bytes(8), epoch=9)
    assert rig.disconnected[-1].reason == "there is no contact to join"


def test_a_device_has_only_so_many_channels(rig: Rig) -> None:
    rig.connect()
    for _ in range(MOST_LINES):
        rig.join()
    (refusal,) = rig.disconnected
    assert refusal.code is CloseCode.OVERLOADED
    assert refusal.reason == "a device may have 4 channels at most"


def test_a_fresh_contact_replaces_every_channel(rig: Rig) -> None:
    first = rig.connect()
    second = rig.join()
    rig.connect()
    assert [(end.channel, end.code) for end in rig.disconnected] == [
        (first, CloseCode.REPLACED),
        (second, CloseCode.REPLACED),
    ]


def test_the_loss_of_the_last_greeted_channel_ends_a_join_under_way(rig: Rig) -> None:
    first = rig.connect()
    welcome = rig.welcome(first)
    rig.channels += 1
    rig.names[rig.channels] = "phone"
    joining = rig.connect(
        run=False, join=True, incarnation=welcome.incarnation, epoch=welcome.epoch
    )
    rig.gateway.channel_lost(first, "broken", rig.now)
    rig.run()
    assert [end.channel for end in rig.disconnected] == [joining]
    assert joining not in rig.sent


def test_credit_holds_over_all_channels_together(rig: Rig) -> None:
    first = rig.connect(window=Credit(2, 1 << 20))
    rig.publish(to("phone", b"a"))
    rig.run()
    second = rig.join()
    rig.publish(to("phone", b"b"), to("phone", b"c"))
    rig.run()
    assert rig.bodies(first) == [b"a"]
    assert rig.bodies(second) == [b"b"]
    rig.ack(first, 1)
    assert rig.bodies(second) == bodies("b", "c")


def test_the_log_names_the_link_that_carried_it(rig: Rig) -> None:
    first = rig.connect(link="mno")
    (key,) = rig.publish(to("phone"))
    rig.run()
    second = rig.join(link="wifi")
    rig.ack(second, 1)
    told = {event["kind"]: event.get("link") for event in rig.events() if event.get("msg") == key}
    assert told["transmitted"] == told["delivered"] == "mno"
    assert rig.bodies(first)


def test_a_window_counts_as_it_was_said_last_over_the_newest_channel(rig: Rig) -> None:
    first = rig.connect()
    second = rig.join()
    rig.hear(second, Credit(9, 900))
    rig.hear(first, Credit(0, 0))  # Said before, over a slower channel.
    session = rig.gateway.deliveries.named(APP, "phone")
    assert session.lane.window == Credit(9, 900)
    rig.hear(first, Credit(5, 500))  # Said again, since the second one is gone.
    rig.lose(second)
    assert session.lane.window == Credit(5, 500)
    rig.publish(to("phone", b"a"))
    rig.run()
    assert rig.bodies(first) == [b"a"]
