"""Devices come and go: what leaves when, and what their words mean."""

from __future__ import annotations

import msgspec
import pytest

from lasthop.clock import DAY, HOUR, SECOND, Micros
from lasthop.core.gateway import Gateway, Submission
from lasthop.core.lifecycle import State
from lasthop.core.limits import Limits
from lasthop.core.registry import DeviceRecord, hash_token
from lasthop.wire.hop.frames import (
    DEFAULT_WINDOW,
    Ack,
    CloseCode,
    Credit,
    Dropped,
    Hello,
    MessageFrame,
)
from tests.core.rig import (
    APP,
    AT_LEAST_ONCE_DELIVERY,
    BEST_EFFORT,
    START,
    Rig,
    publication,
    to,
)


def _register(rig: Rig, token_expires: Micros = 0) -> None:
    record = DeviceRecord(token_hash=hash_token("secret"), token_expires=token_expires)
    rig.gateway.admin.register(APP, "safe", record, rig.now)


class TestNothingLeavesTooEarly:
    def test_welcome_waits_for_its_commit(self, rig: Rig) -> None:
        channel = rig.connect(run=False)
        rig.settle()
        assert rig.take() is not None
        rig.settle()
        assert channel not in rig.sent
        rig.write()
        assert rig.welcome(channel).epoch == 1

    def test_a_message_waits_for_the_commit_of_its_number(self, rig: Rig) -> None:
        channel = rig.connect()
        rig.publish(to("phone"))
        rig.settle()
        rig.take()
        rig.settle()
        assert rig.messages(channel) == []
        rig.write()
        assert [frame.seq for frame in rig.messages(channel)] == [0]

    def test_what_comes_in_during_a_handshake_is_sent_once_and_after_its_own_commit(
        self, rig: Rig
    ) -> None:
        channel = rig.connect(run=False)
        rig.settle()
        rig.take()
        rig.publish(to("phone"))
        rig.settle()
        rig.take()
        rig.write()
        assert len(rig.sent[channel]) == 1
        rig.run()
        assert [frame.seq for frame in rig.messages(channel)] == [0]

    def test_a_number_that_is_not_durable_yet_is_not_sent_by_a_new_channel(self, rig: Rig) -> None:
        rig.connect()
        rig.publish(to("phone"))
        rig.settle()
        rig.take()
        first = rig.welcome(1)
        second = rig.connect(run=False, incarnation=first.incarnation, epoch=first.epoch)
        rig.settle()
        rig.write()
        assert rig.messages(1) == []
        assert second not in rig.sent
        rig.run()
        assert [frame.seq for frame in rig.messages(second)] == [0]

    def test_a_device_s_message_is_acknowledged_when_it_is_durable(self, rig: Rig) -> None:
        rig.connect("tablet")
        channel = rig.connect()
        rig.hear(channel, publication(0), publication(1), run=False)
        rig.settle()
        rig.take()
        rig.settle()
        assert rig.acks(channel) == []
        rig.write()
        assert rig.acks(channel) == [2]

    def test_a_watcher_hears_of_a_change_when_it_is_durable(self, rig: Rig) -> None:
        (key,) = rig.publish(to_registered(rig, "phone"))
        rig.gateway.deliveries.watch(key)
        rig.gateway.cancel(APP, key, rig.now)
        rig.settle()
        assert rig.changes == []
        rig.run()
        assert [(c.message, c.state) for c in rig.changes] == [(key, State.CANCELLED)]
        rig.gateway.deliveries.unwatch(key)
        assert not rig.gateway.deliveries.watched


class TestAHandshake:
    def test_a_second_hello_on_a_channel_ends_it(self, rig: Rig) -> None:
        channel = rig.connect()
        rig.hear(channel, Hello(app=APP, device="other"))
        assert [d.code for d in rig.disconnected] == [CloseCode.OUT_OF_ORDER]
        rig.publish(to("phone"))
        rig.run()
        assert rig.messages(channel) == []

    def test_a_stranger_is_refused_unless_the_house_is_open_and_it_is_here(self, rig: Rig) -> None:
        rig.gateway.frames_received(9, [Hello(app=APP, device="stranger")], rig.now)
        rig.run()
        assert [d.code for d in rig.disconnected] == [CloseCode.UNKNOWN_DEVICE]

    def test_a_wrong_token_is_refused(self, rig: Rig) -> None:
        rig.gateway.admin.register(
            APP, "safe", DeviceRecord(token_hash=hash_token("secret")), rig.now
        )
        rig.connect("safe", token="guess")
        rig.connect("safe")
        assert [d.code for d in rig.disconnected] == [CloseCode.UNAUTHORIZED] * 2
        assert rig.welcome(rig.connect("safe", token="secret")).epoch == 1

    def test_a_token_that_has_expired_is_refused_and_named_so(self, rig: Rig) -> None:
        _register(rig, token_expires=rig.now + SECOND)
        assert rig.welcome(rig.connect("safe", token="secret")).epoch == 1
        rig.now += SECOND
        rig.run()
        assert rig.disconnected.pop().reason == "the device's token has expired"
        rig.connect("safe", token="secret")
        rig.connect("safe", token="guess")
        assert [d.code for d in rig.disconnected] == [CloseCode.UNAUTHORIZED] * 2
        expired, wrong = (d.reason for d in rig.disconnected)
        assert expired == "the device's token has expired: give it a new one (device='safe')"
        assert wrong == "wrong token (device='safe')"

    def test_a_device_that_gets_a_new_token_in_time_stays_connected(self, rig: Rig) -> None:
        _register(rig, token_expires=rig.now + SECOND)
        rig.connect("safe", token="secret")
        later = rig.now + DAY
        changes = {"token_hash": hash_token("next"), "token_expires": later, "former_until": later}
        rig.gateway.admin.amend(APP, "safe", rig.now, **changes)
        rig.now += SECOND
        rig.run()
        assert rig.disconnected == []
        rig.now = later
        rig.run()
        assert [d.code for d in rig.disconnected] == [CloseCode.UNAUTHORIZED]

    def test_the_last_use_of_a_token_is_known_to_the_hour_also_after_a_restart(
        self, rig: Rig
    ) -> None:
        used = []
        _register(rig)
        for wait in (0, SECOND, HOUR):
            rig.now += wait
            rig.connect("safe", token="secret")
            rig.crash()
            used.append(rig.gateway.registry.named(APP, "safe").record.token_used)
        assert used == [START, START, rig.now]

    def test_more_delivered_than_received_is_refused(self, rig: Rig) -> None:
        rig.connect("phone", received=1, delivered=2)
        assert [d.code for d in rig.disconnected] == [CloseCode.OUT_OF_ORDER]

    def test_a_hello_without_a_window_has_the_default_again(self, rig: Rig) -> None:
        rig.connect(window=Credit(2, 100))
        rig.resume()
        device = rig.gateway.registry.named(APP, "phone")
        assert rig.gateway.deliveries.session(device).lane.window == DEFAULT_WINDOW

    def test_the_window_is_never_above_the_gateway_s_own(self, rig: Rig) -> None:
        rig.connect(window=Credit(1 << 40, 1 << 40))
        window = rig.gateway.deliveries.named(APP, "phone").lane.window
        assert (window.messages, window.bytes) == (4096, 4 << 20)

    def test_a_device_may_ask_for_a_shorter_preservation_and_has_it(self, rig: Rig) -> None:
        channel = rig.connect(preserve=60)
        assert rig.welcome(channel).preserve == 60
        (key,) = rig.publish(to("phone", deliver_before=rig.now + 30 * SECOND))
        rig.run()
        rig.lose(channel)
        rig.pass_time(59 * SECOND)
        assert rig.state(key) is State.SENDING
        rig.pass_time(2 * SECOND)
        assert rig.state(key) is State.TIMED_OUT


class TestTakingOver:
    def test_the_old_channel_is_told_and_its_late_frames_count_for_nothing(self, rig: Rig) -> None:
        old = rig.connect()
        (key,) = rig.publish(to("phone"))
        rig.run()
        new = rig.resume()
        assert [(d.channel, d.code) for d in rig.disconnected] == [(old, CloseCode.REPLACED)]
        rig.ack(old, 1)
        assert rig.state(key) is State.SENDING
        rig.lose(old)
        rig.ack(new, 1)
        assert rig.state(key) is State.DELIVERED

    def test_an_acknowledgement_for_the_old_channel_is_not_sent_over_the_new_one(
        self, rig: Rig
    ) -> None:
        rig.connect("tablet")
        old = rig.connect()
        rig.hear(old, publication(0), run=False)
        rig.settle()
        rig.take()
        first = rig.welcome(old)
        new = rig.connect(run=False, incarnation=first.incarnation, epoch=first.epoch)
        rig.run()
        assert rig.acks(old) == []
        assert rig.acks(new) == []
        assert rig.welcome(new).received == 1

    def test_a_channel_that_is_replaced_before_its_welcome_says_nothing(self, rig: Rig) -> None:
        first = rig.connect(run=False)
        rig.settle()
        rig.take()
        second = rig.connect(run=False)
        rig.run()
        assert first not in rig.sent
        assert rig.welcome(second).epoch == 2


class TestAcknowledgements:
    def test_received_and_delivered_are_two_steps(self, rig: Rig) -> None:
        channel = rig.connect()
        (key,) = rig.publish(to("phone"))
        rig.run()
        rig.ack(channel, 1, 0)
        assert rig.state(key) is State.RECEIVED
        rig.ack(channel, 1, 1)
        assert rig.story(key) == ["accepted", "released", "transmitted", "received", "delivered"]

    def test_delivered_at_once_is_one_step(self, rig: Rig) -> None:
        channel = rig.connect()
        (key,) = rig.publish(to("phone"))
        rig.run()
        rig.ack(channel, 1)
        assert rig.story(key) == ["accepted", "released", "transmitted", "delivered"]

    def test_receipt_is_enough_for_at_least_once_delivery(self, rig: Rig) -> None:
        channel = rig.connect()
        (key,) = rig.publish(to("phone", **AT_LEAST_ONCE_DELIVERY))
        rig.run()
        rig.ack(channel, 1, 0)
        assert rig.state(key) is State.DELIVERED
        rig.ack(channel, 1, 1)
        assert rig.story(key).count("delivered") == 1

    def test_best_effort_is_sent_and_that_is_all(self, rig: Rig) -> None:
        channel = rig.connect()
        (key,) = rig.publish(to("phone", **BEST_EFFORT))
        rig.run()
        assert [frame.seq for frame in rig.messages(channel)] == [None]
        assert rig.story(key) == ["accepted", "released", "transmitted", "sent"]

    @pytest.mark.parametrize("ack", [Ack(2, 0), Ack(0, 0, ((1, 2),)), Ack(1, 2)])
    def test_an_impossible_one_ends_the_channel(self, rig: Rig, ack: Ack) -> None:
        channel = rig.connect()
        (key,) = rig.publish(to("phone"))
        rig.run()
        rig.hear(channel, ack)
        assert [d.code for d in rig.disconnected] == [CloseCode.OUT_OF_ORDER]
        assert rig.state(key) is State.SENDING

    @pytest.mark.parametrize("frame", [Ack(1, 1), Dropped(((0, 1),))])
    def test_a_number_that_has_not_left_cannot_be_spoken_of(
        self, rig: Rig, frame: Ack | Dropped
    ) -> None:
        channel = rig.connect()
        (key,) = rig.publish(to("phone"))
        rig.settle()
        rig.hear(channel, frame, run=False)
        rig.run()
        assert [d.code for d in rig.disconnected] == [CloseCode.OUT_OF_ORDER]
        assert rig.state(key) is State.SENDING

    def test_what_the_device_dropped_has_expired(self, rig: Rig) -> None:
        channel = rig.connect()
        first, second = rig.publish(*[to("phone", deliver_before=rig.now + SECOND)] * 2)
        rig.run()
        rig.hear(channel, Dropped(((0, 1),)), Ack(2, 2))
        assert rig.state(first) is State.EXPIRED
        assert rig.state(second) is State.DELIVERED

    def test_what_was_dropped_while_away_is_said_in_the_next_hello(self, rig: Rig) -> None:
        channel = rig.connect()
        (key,) = rig.publish(to("phone", deliver_before=rig.now + SECOND))
        rig.run()
        rig.lose(channel)
        rig.resume(received=1, dropped=((0, 1),))
        assert rig.state(key) is State.EXPIRED

    def test_nothing_is_in_flight_when_everything_has_ended(self, rig: Rig) -> None:
        channel = rig.connect()
        session = rig.gateway.deliveries.named(APP, "phone")
        before = rig.now + SECOND
        rig.publish(*[to("phone", deliver_before=before)] * 4, to("phone", **BEST_EFFORT))
        rig.settle()
        assert (session.lane.flight_bytes, session.lane.leaving) == (25, 1)
        rig.run()
        rig.hear(channel, Dropped(((0, 1),)), Ack(2, 1))
        assert (session.lane.flight_bytes, session.lane.leaving) == (10, 0)
        rig.lose(channel)
        rig.pass_time(8 * DAY)
        assert rig.states() == {State.EXPIRED: 1, State.TIMED_OUT: 3, State.SENT: 1}
        assert session.lane.flight_bytes == 0


class TestANewEpoch:
    def test_what_was_under_way_is_sent_again_in_its_old_order(self, rig: Rig) -> None:
        channel = rig.connect(window=Credit(2, 1 << 20))
        rig.publish(*[to("phone", b"%d" % i) for i in range(4)])
        rig.run()
        rig.lose(channel)
        again = rig.connect()
        assert rig.bodies(again) == [b"0", b"1", b"2", b"3"]
        assert [f.seq for f in rig.messages(again)] == [0, 1, 2, 3]
        marked = [f.headers is not None and f.headers.redelivered for f in rig.messages(again)]
        assert marked == [True, True, False, False]

    def test_what_is_too_late_by_then_is_not_sent_again_nor_said_to_be_unseen(
        self, rig: Rig
    ) -> None:
        channel = rig.connect()
        (key,) = rig.publish(to("phone", deliver_before=rig.now + SECOND))
        rig.run()
        rig.lose(channel)
        rig.pass_time(2 * SECOND)
        again = rig.connect()
        assert rig.messages(again) == []
        assert rig.state(key) is State.TIMED_OUT

    def test_what_may_have_been_seen_is_too_late_to_cancel(self, rig: Rig) -> None:
        channel = rig.connect()
        (key,) = rig.publish(to("phone"))
        rig.run()
        rig.lose(channel)
        rig.connect(run=False, window=Credit(0, 0))
        rig.run()
        assert rig.state(key) is State.PENDING
        withdrawal = rig.gateway.cancel(APP, key, rig.now)
        assert withdrawal is not None
        assert (withdrawal.taken_back, withdrawal.too_late) == (0, 1)

    def test_a_copy_of_the_store_does_not_continue_the_numbers_of_the_original(
        self, rig: Rig
    ) -> None:
        channel = rig.connect()
        (key,) = rig.publish(to("phone"))
        rig.run()
        claim = rig.welcome(channel)
        rig.store = rig.store.crash()
        copy = msgspec.structs.replace(rig.store.open(), incarnation=8)
        rig.gateway = Gateway(rig.identity, copy, random64=lambda: 1, now=rig.now)
        again = rig.connect(
            incarnation=claim.incarnation, epoch=claim.epoch, received=1, delivered=1
        )
        assert not rig.welcome(again).resumed
        assert rig.welcome(again).incarnation == (8).to_bytes(8)
        assert rig.state(key) is State.DELIVERED

    def test_a_device_ahead_of_an_older_copy_is_believed_as_far_as_that_knows(
        self, rig: Rig
    ) -> None:
        channel = rig.connect()
        first, second = rig.publish(to("phone", b"1"), to("phone", b"2"))
        rig.run()
        claim = rig.welcome(channel)
        again = rig.connect(
            incarnation=claim.incarnation, epoch=claim.epoch, received=9, delivered=1
        )
        assert rig.welcome(again).epoch == claim.epoch + 1
        assert rig.state(first) is State.DELIVERED
        assert rig.bodies(again) == [b"2"]
        assert rig.state(second) is State.SENDING


class TestBeingAway:
    def test_only_what_is_missing_is_sent_again(self, rig: Rig) -> None:
        channel = rig.connect()
        rig.publish(*[to("phone", b"%d" % i) for i in range(3)])
        rig.run()
        rig.lose(channel)
        again = rig.resume(received=1, individual=((2, 3),))
        assert rig.bodies(again) == [b"1"]
        assert rig.welcome(again).resumed

    def test_what_expired_meanwhile_closes_its_number(self, rig: Rig) -> None:
        channel = rig.connect()
        late, fine = rig.publish(to("phone", deliver_before=rig.now + SECOND), to("phone"))
        rig.run()
        rig.lose(channel)
        rig.now += 2 * SECOND
        again = rig.resume()
        assert rig.skips(again) == [0]
        assert [frame.seq for frame in rig.messages(again)] == [1]
        assert rig.state(late) is State.EXPIRED
        rig.ack(again, 2)
        assert rig.state(fine) is State.DELIVERED

    def test_an_outcome_that_only_the_device_knows_is_waited_for_and_then_given_up(
        self, rig: Rig
    ) -> None:
        channel = rig.connect()
        sent, held = rig.publish(*[to("phone", deliver_before=rig.now + SECOND)] * 2)
        rig.run()
        rig.hear(channel, Ack(1, 0))
        rig.lose(channel)
        rig.pass_time(6 * DAY)
        assert rig.states() == {State.SENDING: 1, State.RECEIVED: 1}
        back = rig.resume(received=1, delivered=0)
        rig.lose(back)
        rig.pass_time(6 * DAY)
        assert rig.state(sent) is State.RECEIVED
        rig.pass_time(2 * DAY)
        assert {rig.state(sent), rig.state(held)} <= {State.TIMED_OUT, State.EXPIRED}
        assert rig.gateway.deliveries.items == {}

    def test_coming_and_going_leaves_no_timers_behind(self, rig: Rig) -> None:
        rig.connect()
        rig.publish(*[to("phone", deliver_before=rig.now + 9 * DAY)] * 5)
        rig.run()
        for _ in range(50):
            rig.lose(rig.resume())
        assert len(rig.gateway.deliveries.timers) <= 7

    def test_best_effort_that_could_not_leave_waits_for_the_next_contact(self, rig: Rig) -> None:
        channel = rig.connect()
        (key,) = rig.publish(to("phone", **BEST_EFFORT))
        rig.settle()
        rig.gateway.channel_lost(channel, "broken", rig.now)
        rig.run()
        assert rig.state(key) is State.PENDING
        again = rig.resume()
        assert len(rig.messages(again)) == 1
        assert rig.state(key) is State.SENT


class TestCredit:
    def test_no_more_than_the_window_is_under_way(self, rig: Rig) -> None:
        channel = rig.connect(window=Credit(2, 1 << 20))
        rig.publish(*[to("phone", **BEST_EFFORT)] * 2, *[to("phone")] * 4)
        rig.settle()
        session = rig.gateway.deliveries.named(APP, "phone")
        assert session.lane.outbound.in_flight + session.lane.leaving == 2
        rig.run()
        assert [frame.seq for frame in rig.messages(channel)] == [None, None, 0, 1]
        rig.ack(channel, 1, 0)
        assert rig.messages(channel)[-1].seq == 2

    @pytest.mark.parametrize("size", [0, 4])
    def test_a_message_larger_than_the_window_goes_alone(self, rig: Rig, size: int) -> None:
        channel = rig.connect(window=Credit(10, size))
        rig.publish(to("phone", b"123456"), to("phone", b"x"))
        rig.run()
        assert rig.bodies(channel) == [b"123456"]
        rig.ack(channel, 1)
        assert rig.bodies(channel) == [b"123456", b"x"]

    def test_a_pause_holds_everything_until_it_ends(self, rig: Rig) -> None:
        channel = rig.connect()
        rig.gateway.channel_paused(channel, True, rig.now)
        rig.publish(to("phone"), to("phone", **BEST_EFFORT))
        rig.run()
        assert rig.messages(channel) == []
        rig.gateway.channel_paused(channel, False, rig.now)
        rig.run()
        assert len(rig.messages(channel)) == 2

    def test_what_is_sent_again_keeps_to_the_window_of_the_new_contact(self, rig: Rig) -> None:
        channel = rig.connect(window=Credit(4, 1 << 20))
        rig.publish(*[to("phone", b"%d" % i) for i in range(6)])
        rig.run()
        assert len(rig.messages(channel)) == 4
        rig.lose(channel)
        again = rig.resume(received=1, window=Credit(0, 0))
        assert rig.messages(again) == []
        rig.hear(again, Credit(1, 1 << 20))
        assert rig.bodies(again) == [b"1"]
        rig.ack(again, 2)
        assert rig.bodies(again) == [b"1", b"2"]
        rig.hear(again, Credit(3, 1 << 20))
        assert rig.bodies(again) == [b"1", b"2", b"3", b"4"]
        rig.ack(again, 5)
        assert [frame.seq for frame in rig.messages(again)] == [1, 2, 3, 4, 5]

    def test_what_still_waits_for_room_goes_in_the_next_contact(self, rig: Rig) -> None:
        channel = rig.connect(window=Credit(3, 1 << 20))
        rig.publish(*[to("phone", b"%d" % i) for i in range(3)])
        rig.run()
        rig.lose(channel)
        again = rig.resume(window=Credit(1, 1 << 20))
        assert rig.bodies(again) == [b"0"]
        rig.lose(again)
        rig.pass_time(SECOND)
        last = rig.resume(received=1, window=Credit(8, 1 << 20))
        assert rig.bodies(last) == [b"1", b"2"]

    def test_a_smaller_and_a_larger_window_take_effect_at_once(self, rig: Rig) -> None:
        channel = rig.connect(window=Credit(0, 0))
        rig.publish(to("phone"))
        rig.run()
        assert rig.messages(channel) == []
        rig.hear(channel, Credit(1, 1))
        assert len(rig.messages(channel)) == 1


class TestALargeMessage:
    def test_what_is_larger_than_the_device_takes_is_undeliverable_and_holds_up_nothing(
        self, rig: Rig
    ) -> None:
        channel = rig.connect(max_frame=8192, window=Credit(10, 1 << 20))
        large, small = rig.publish(to("phone", b"x" * 9000), to("phone", b"small"))
        rig.run()
        assert rig.state(large) is State.UNDELIVERABLE
        assert rig.bodies(channel) == [b"small"]
        assert rig.skips(channel) == [0]
        rig.ack(channel, 2)
        assert rig.state(small) is State.DELIVERED

    def test_what_just_fits_is_sent(self, rig: Rig) -> None:
        channel = rig.connect(max_frame=8192, window=Credit(10, 1 << 20))
        rig.publish(to("phone", b"x" * 8000))
        rig.run()
        assert rig.bodies(channel) == [b"x" * 8000]


class TestALossyChannel:
    def test_what_is_not_acknowledged_is_sent_again_more_and_more_slowly(self, rig: Rig) -> None:
        channel = rig.connect(reliable=False)
        rig.publish(to("phone"))
        rig.run()
        start = rig.now
        times: list[int] = []
        while not rig.disconnected:
            rig.pass_time(SECOND)
            if len(rig.messages(channel)) > len(times) + 1:
                times.append((rig.now - start) // SECOND)
        assert times == [2, 6, 14, 30, 62, 122, 182, 242]
        assert [(d.channel, d.code) for d in rig.disconnected] == [(channel, CloseCode.TIMEOUT)]
        attempts = [e["attempt"] for e in rig.events() if e["kind"] == "transmitted"]
        assert attempts == list(range(1, 10))

    def test_progress_starts_the_patience_over_and_silence_ends_the_timer(self, rig: Rig) -> None:
        channel = rig.connect(reliable=False)
        rig.publish(to("phone", b"a"), to("phone", b"b"))
        rig.run()
        rig.pass_time(7 * SECOND)
        assert rig.bodies(channel) == [b"a", b"b"] * 3
        rig.ack(channel, 1)
        rig.pass_time(2 * SECOND)
        assert rig.bodies(channel)[6:] == [b"b"]
        rig.ack(channel, 2)
        rig.pass_time(DAY)
        assert len(rig.messages(channel)) == 7
        assert len(rig.gateway.deliveries.timers) == 0

    def test_a_lost_message_is_repeated_though_later_ones_keep_arriving(self, rig: Rig) -> None:
        channel = rig.connect(reliable=False)
        rig.publish(to("phone", b"lost"))
        rig.run()
        for i in range(5):
            rig.publish(to("phone", b"%d" % i))
            rig.pass_time(SECOND // 2)
            rig.hear(channel, Ack(0, 0, ((1, i + 2),)))
        assert rig.bodies(channel).count(b"lost") == 2

    def test_what_has_just_left_is_given_its_time(self, rig: Rig) -> None:
        channel = rig.connect(reliable=False)
        rig.publish(to("phone", b"old"))
        rig.run()
        rig.pass_time(SECOND)
        rig.publish(to("phone", b"new"))
        rig.run()
        rig.pass_time(SECOND)
        assert rig.bodies(channel) == [b"old", b"new", b"old"]

    def test_after_its_deadline_nothing_is_repeated_and_nobody_claims_to_know(
        self, rig: Rig
    ) -> None:
        channel = rig.connect(reliable=False)
        (key,) = rig.publish(to("phone", deliver_before=rig.now + SECOND))
        rig.run()
        rig.pass_time(3 * SECOND)
        assert len(rig.messages(channel)) == 1
        assert rig.skips(channel) == [0]
        assert rig.state(key) is State.TIMED_OUT

    def test_a_lost_skip_is_repeated_as_well(self, rig: Rig) -> None:
        rig.lose(rig.connect())
        rig.publish(to("phone", deliver_before=rig.now + SECOND))
        channel = rig.connect()
        rig.lose(channel)
        rig.now += 2 * SECOND
        first = rig.welcome(channel)
        lossy = rig.connect(reliable=False, incarnation=first.incarnation, epoch=first.epoch)
        rig.pass_time(3 * SECOND)
        assert rig.skips(lossy) == [0, 0]

    def test_a_lost_skip_of_what_never_left_is_repeated_too(self, rig: Rig) -> None:
        channel = rig.connect(reliable=False)
        rig.publish(to("phone", deliver_before=rig.now + SECOND))
        rig.settle()
        rig.take()
        rig.now += SECOND
        rig.run()
        rig.pass_time(3 * SECOND)
        assert rig.messages(channel) == []
        assert rig.skips(channel) == [0, 0]

    def test_a_duplicate_from_the_device_is_acknowledged_again(self, rig: Rig) -> None:
        rig.connect("tablet")
        channel = rig.connect(reliable=False)
        rig.hear(channel, publication(0))
        rig.hear(channel, publication(0))
        assert rig.acks(channel) == [1, 1]
        assert len(rig.messages(1)) == 1

    def test_progress_at_the_last_moment_starts_the_count_of_attempts_over(self, rig: Rig) -> None:
        channel = rig.connect(reliable=False)
        rig.publish(to("phone", b"a"), to("phone", b"b"))
        rig.run()
        rig.pass_time(243 * SECOND)
        assert rig.bodies(channel).count(b"a") == 9
        rig.ack(channel, 1)
        rig.pass_time(243 * SECOND)
        assert rig.disconnected == []
        assert rig.bodies(channel).count(b"b") == 17

    def test_nothing_is_kept_of_channels_that_are_gone(self, rig: Rig) -> None:
        channel = rig.connect(reliable=False)
        rig.gateway.channel_opened(channel + 1, reliable=False)
        rig.lose(channel)
        rig.lose(channel + 1)
        assert not rig.gateway.contacts._lossy
        assert not rig.gateway.contacts._by_channel

    def test_a_timer_of_a_channel_that_is_gone_does_nothing(self, rig: Rig) -> None:
        channel = rig.connect(reliable=False)
        rig.publish(to("phone"))
        rig.run()
        reliable = rig.resume()
        rig.pass_time(10 * SECOND)
        assert len(rig.messages(channel)) == 1
        assert len(rig.messages(reliable)) == 1


class TestALimitedDevice:
    def test_what_waits_behind_a_gap_is_bounded(self) -> None:
        rig = Rig(Limits(window_bytes=1000))
        channel = rig.connect()
        rig.hear(channel, *[publication(seq, bytes(200)) for seq in range(1, 12)])
        assert [d.code for d in rig.disconnected] == [CloseCode.CREDIT_EXCEEDED]

    def test_what_cannot_be_made_durable_is_bounded(self) -> None:
        rig = Rig(Limits(window_bytes=1000))
        rig.connect("tablet")
        channel = rig.connect()
        rig.hear(channel, *[publication(seq, bytes(200)) for seq in range(12)], run=False)
        rig.settle()
        assert [d.code for d in rig.disconnected] == [CloseCode.CREDIT_EXCEEDED]

    def test_a_device_within_its_window_may_send_for_ever(self) -> None:
        rig = Rig(Limits(window_bytes=1000))
        rig.connect("tablet")
        channel = rig.connect()
        for seq in range(0, 60, 2):
            rig.hear(channel, publication(seq, bytes(400)), run=False)
            rig.settle()
            rig.take()
            rig.hear(channel, publication(seq + 1, bytes(400)), run=False)
            rig.settle()
            rig.write()
        rig.hear(channel, MessageFrame(None, None, "news", None, bytes(400)))
        assert rig.disconnected == []
        assert rig.acks(channel)[-1] == 60
        session = rig.gateway.deliveries.named(APP, "phone")
        assert (session.held_bytes, session.taken_bytes) == (0, 0)


def to_registered(rig: Rig, name: str) -> Submission:
    rig.gateway.admin.register(APP, name, DeviceRecord(), rig.now)
    return to(name)
