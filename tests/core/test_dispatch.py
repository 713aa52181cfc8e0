"""From the mailbox to the link: order, deadlines, and bodies that were left to the store."""

from __future__ import annotations

from lasthop.clock import MILLISECOND, SECOND
from lasthop.core.lifecycle import State
from lasthop.core.limits import Limits
from lasthop.core.registry import DeviceRecord
from lasthop.message import Handling, Reliability, key_time
from lasthop.wire.hop.frames import Ack, Credit, Headers
from tests.core.rig import APP, BEST_EFFORT, Rig, to


class TestOrder:
    def test_priorities_come_first_and_each_is_first_in_first_out(self, rig: Rig) -> None:
        rig.lose(rig.connect())
        preferences = [(4, b"a"), (9, b"b"), (0, b"c"), (4, b"d"), (9, b"e")]
        rig.publish(*[to("phone", body, priority=priority) for priority, body in preferences])
        rig.run()
        assert rig.bodies(rig.resume()) == [b"b", b"e", b"a", b"d", b"c"]

    def test_holds_when_the_clock_stands_still_and_millions_of_keys_are_given_out(
        self, rig: Rig
    ) -> None:
        channel = rig.connect(window=Credit(1024, 1 << 20))
        for _ in range(10):
            rig.publish(*[to("phone")] * 600)
            rig.run()
            rig.ack(channel, len(rig.messages(channel)))
        keys = [frame.key or 0 for frame in rig.messages(channel)]
        assert keys == sorted(set(keys))
        assert len(keys) == 6000


class TestTime:
    def test_nothing_leaves_before_its_time(self, rig: Rig) -> None:
        channel = rig.connect()
        rig.publish(to("phone", deliver_after=rig.now + SECOND))
        rig.pass_time(SECOND - 1)
        assert rig.messages(channel) == []
        rig.pass_time(1)
        assert len(rig.messages(channel)) == 1

    def test_what_expires_while_its_device_is_away_is_gone(self, rig: Rig) -> None:
        rig.lose(rig.connect())
        (key,) = rig.publish(to("phone", deliver_before=rig.now + SECOND))
        rig.pass_time(SECOND)
        assert rig.state(key) is State.EXPIRED
        assert rig.messages(rig.resume()) == []

    def test_what_expires_between_its_release_and_its_commit_does_not_leave(self, rig: Rig) -> None:
        channel = rig.connect()
        numbered, free = rig.publish(
            to("phone", deliver_before=rig.now + SECOND),
            to("phone", deliver_before=rig.now + SECOND, **BEST_EFFORT),
        )
        rig.settle()
        rig.take()
        rig.now += SECOND
        rig.run()
        assert rig.messages(channel) == []
        assert rig.skips(channel) == [0]
        assert rig.state(numbered) is rig.state(free) is State.EXPIRED

    def test_in_contact_the_device_decides_what_was_late(self, rig: Rig) -> None:
        channel = rig.connect()
        (key,) = rig.publish(to("phone", deliver_before=rig.now + SECOND))
        rig.run()
        rig.pass_time(10 * SECOND)
        assert rig.state(key) is State.SENDING
        rig.ack(channel, 1)
        assert rig.state(key) is State.DELIVERED

    def test_a_deadline_after_the_end_changes_nothing(self, rig: Rig) -> None:
        channel = rig.connect()
        (key,) = rig.publish(to("phone", deliver_before=rig.now + SECOND))
        rig.run()
        rig.ack(channel, 1)
        rig.pass_time(10 * SECOND)
        assert rig.story(key)[-1] == "delivered"

    def test_what_nobody_waits_for_is_written_soon_all_the_same(self, rig: Rig) -> None:
        channel = rig.connect()
        (key,) = rig.publish(to("phone"))
        rig.run()
        rig.hear(channel, run=False)
        rig.gateway.channel_lost(channel, "broken", rig.now)
        rig.run(flush=False)
        assert rig.gateway.durable < rig.gateway.horizon
        assert rig.gateway.next_wake() == rig.now + 20 * MILLISECOND
        rig.now += 20 * MILLISECOND
        rig.run(flush=False)
        assert rig.gateway.idle
        assert rig.state(key) is State.SENDING

    def test_a_session_that_changed_without_an_event_is_written_soon_as_well(
        self, rig: Rig
    ) -> None:
        rig.connect()
        rig.publish(to("phone", deliver_before=rig.now + SECOND))
        rig.run()
        rig.now += SECOND
        channel = rig.resume()
        assert rig.skips(channel) == [0]
        rig.hear(channel, Ack(1, 1), run=False)
        rig.settle()
        assert rig.gateway.next_wake() == rig.now + 20 * MILLISECOND


class TestBodiesLeftToTheStore:
    def rig(self) -> Rig:
        rig = Rig(Limits(resident=10))
        rig.gateway.admin.register(APP, "phone", DeviceRecord(), rig.now)
        return rig

    def resident(self, rig: Rig) -> list[bytes]:
        return [item.message.body for item in rig.gateway.deliveries.items.values()]

    def test_the_oldest_go_first_and_only_when_they_are_durable(self) -> None:
        rig = self.rig()
        rig.publish(*[to("phone", b"%d2345" % i) for i in range(4)])
        rig.settle()
        rig.take()
        assert self.resident(rig) == [b"02345", b"12345", b"22345", b"32345"]
        rig.write()
        assert self.resident(rig) == [b"", b"", b"22345", b"32345"]

    def test_a_body_that_only_memory_has_stays_there(self) -> None:
        rig = self.rig()
        rig.publish(to("phone", b"12345"))
        rig.take()
        rig.publish(*[to("phone", b"%d2345" % i) for i in range(3)])
        rig.write()
        assert self.resident(rig) == [b"", b"02345", b"12345", b"22345"]
        rig.run()
        assert self.resident(rig) == [b"", b"", b"12345", b"22345"]

    def test_they_come_back_when_their_turn_comes(self) -> None:
        rig = self.rig()
        rig.publish(*[to("phone", b"%d2345" % i) for i in range(4)])
        rig.run()
        channel = rig.connect()
        assert rig.bodies(channel) == [b"22345", b"32345"]
        rig.fetch()
        assert [(f.seq, f.body) for f in rig.messages(channel)][2:] == [
            (0, b"02345"),
            (1, b"12345"),
        ]

    def test_a_channel_that_takes_over_meanwhile_gets_each_once_and_after_its_welcome(
        self,
    ) -> None:
        rig = self.rig()
        rig.publish(*[to("phone", b"%d2345" % i) for i in range(3)])
        rig.run()
        rig.connect()
        claim = rig.welcome(1)
        second = rig.connect(run=False, incarnation=claim.incarnation, epoch=claim.epoch)
        rig.fetch()
        rig.run()
        assert sorted(rig.bodies(second)) == [b"02345", b"12345", b"22345"]
        third = rig.resume()
        rig.fetch()
        assert sorted(rig.bodies(third)) == [b"02345", b"12345", b"22345"]

    def test_what_was_acknowledged_meanwhile_is_not_sent_again(self) -> None:
        rig = self.rig()
        rig.connect()
        rig.publish(to("phone", b"12345"))
        rig.run()
        rig.publish(*[to("phone", b"12345")] * 2)
        rig.run()
        channel = rig.resume()
        assert len(rig.messages(channel)) == 2
        rig.hear(channel, Ack(1, 0))
        rig.fetch()
        assert len(rig.messages(channel)) == 2

    def test_best_effort_whose_channel_is_gone_by_then_waits_for_the_next(self) -> None:
        rig = self.rig()
        (key, *_) = rig.publish(*[to("phone", b"12345", **BEST_EFFORT)] * 3)
        rig.run()
        rig.lose(rig.connect())
        rig.fetch()
        rig.run()
        assert rig.state(key) is State.PENDING
        channel = rig.connect()
        rig.fetch()
        rig.run()
        assert len(rig.messages(channel)) == 1
        assert rig.states() == {State.SENT: 3}

    def test_what_ended_meanwhile_is_not_sent(self) -> None:
        rig = self.rig()
        rig.publish(*[to("phone", b"12345", deliver_before=rig.now + SECOND)] * 3)
        rig.run()
        channel = rig.connect()
        assert len(rig.messages(channel)) == 2
        rig.gateway.admin.remove(APP, "phone", rig.now)
        rig.fetch()
        rig.run()
        assert len(rig.messages(channel)) == 2
        assert rig.gateway.deliveries.items == {}
        assert rig.gateway.deliveries._resident_bytes == 0


class TestAFrame:
    def sent(self, rig: Rig, **fields: object) -> Headers | None:
        channel = rig.connect()
        rig.publish(to("phone", **fields))  # type: ignore[arg-type]
        rig.run()
        return rig.messages(channel)[-1].headers

    def test_of_a_plain_message_has_no_headers(self, rig: Rig) -> None:
        assert self.sent(rig) is None

    def test_says_what_differs_from_the_defaults(self, rig: Rig) -> None:
        headers = self.sent(
            rig,
            title="T",
            priority=9,
            rank=0.5,
            handling=Handling.SILENT,
            reliability=Reliability.AT_LEAST_ONCE_PROCESSING,
            headers=(("a", "b"),),
            queue="q",
            content_type="text/html",
            in_reply_to=5,
        )
        assert headers == Headers(
            content_type="text/html",
            priority=9,
            in_reply_to=5,
            handling=Handling.SILENT,
            reliability=Reliability.AT_LEAST_ONCE_PROCESSING,
            title="T",
            rank=0.5,
            extra=(("a", "b"),),
            queue="q",
        )

    def test_counts_its_deadline_from_its_key(self, rig: Rig) -> None:
        rig.now += 300
        channel = rig.connect()
        before = rig.now + 5 * SECOND
        (key,) = rig.publish(to("phone", deliver_before=before, reply_before=before))
        rig.run()
        headers = rig.messages(channel)[0].headers
        assert headers is not None
        assert headers.deliver_within == headers.reply_within
        assert headers.deliver_within == (before - key_time(key)) // MILLISECOND

    def test_names_the_device_that_sent_it_and_the_topic(self, rig: Rig) -> None:
        channel = rig.connect()
        rig.gateway.topics.subscribe(APP, "phone", "news", rig.now)
        rig.publish(to("topic:news"), source="device:tablet")
        rig.run()
        (frame,) = rig.messages(channel)
        assert frame.topic == "news"
        assert frame.headers is not None
        assert frame.headers.source == "device:tablet"
