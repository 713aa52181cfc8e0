"""Taking messages in, once and all or nothing; and taking them back while that is possible."""

from __future__ import annotations

import pytest

from lasthop.clock import SECOND
from lasthop.core.gateway import Idempotency, Submission
from lasthop.core.lifecycle import State
from lasthop.core.limits import Limits
from lasthop.core.publishing.acceptance import Withdrawal, own_key
from lasthop.core.registry import DeviceRecord
from lasthop.errors import (
    Conflict,
    Expired,
    InvalidRequest,
    LasthopError,
    NotFound,
    QuotaExceeded,
    TooLarge,
)
from lasthop.message import parse_id
from lasthop.wire.hop.frames import Credit
from tests.core.rig import APP, SHOP, START, Rig, to


@pytest.fixture
def rig() -> Rig:
    rig = Rig(Limits(open_per_device=3, body=10))
    for name in ("phone", "tablet"):
        rig.gateway.admin.register(APP, name, DeviceRecord(user="ann"), rig.now)
    rig.run()
    return rig


class TestABatch:
    @pytest.mark.parametrize(
        "bad, error",
        [
            (to("nobody"), NotFound),
            (to("user:nobody"), NotFound),
            (to("phone", b"x" * 11), TooLarge),
            (to("phone", deliver_before=START), Expired),
            (to("phone", deliver_after=START + 2, deliver_before=START + 2), InvalidRequest),
        ],
    )
    def test_is_accepted_as_a_whole_or_not_at_all(
        self, rig: Rig, bad: Submission, error: type[LasthopError]
    ) -> None:
        with pytest.raises(error) as refused:
            rig.publish(to("phone"), bad)
        assert refused.value.fields["item"] == 1
        assert rig.gateway.idle
        assert rig.gateway.deliveries.items == {}

    def test_that_does_not_fit_into_a_mailbox_is_refused(self, rig: Rig) -> None:
        rig.publish(to("phone"))
        with pytest.raises(QuotaExceeded):
            rig.publish(*[to("phone")] * 3)
        assert len(rig.publish(*[to("phone")] * 2)) == 2

    def test_of_nothing_is_refused(self, rig: Rig) -> None:
        with pytest.raises(InvalidRequest):
            rig.publish()

    def test_has_ids_in_its_own_order(self, rig: Rig) -> None:
        keys = rig.publish(to("phone", b"1"), to("tablet", b"2"))
        rig.run()
        assert [rig.store.messages(keys)[key].body for key in keys] == [b"1", b"2"]

    def test_is_not_seen_by_another_app(self, rig: Rig) -> None:
        with pytest.raises(NotFound):
            rig.gateway.publish("other", SHOP, [to("phone")], rig.now)
        (key,) = rig.publish(to("phone"))
        with pytest.raises(NotFound):
            rig.gateway.cancel("other", key, rig.now)
        with pytest.raises(NotFound):
            rig.gateway.replace("other", key, SHOP, to("phone"), rig.now)


class TestAnIdempotencyKey:
    def publish(self, rig: Rig, count: int = 1, digest: bytes = b"d") -> list[int] | None:
        once = Idempotency("k", digest)
        receipt = rig.gateway.publish(APP, SHOP, [to("phone")] * count, rig.now, once=once)
        return receipt.repeated

    def test_makes_a_repeated_batch_the_same_messages(self, rig: Rig) -> None:
        once = Idempotency("k", b"d")
        receipt = rig.gateway.publish(APP, SHOP, [to("phone")] * 3, rig.now, once=once)
        keys = [parse_id(text)[0] for text in receipt.ids]
        assert self.publish(rig, 3) == keys
        rig.run()
        assert rig.store.counts().messages == 3

    def test_is_answered_only_when_the_first_use_is_durable(self, rig: Rig) -> None:
        self.publish(rig)
        rig.take(flush=True)
        self.publish(rig)
        assert rig.gateway.horizon == rig.in_flight[0].n > rig.gateway.durable

    def test_survives_a_crash_with_its_message_and_only_with_it(self, rig: Rig) -> None:
        self.publish(rig)
        rig.crash()
        assert self.publish(rig) is None
        rig.run()
        rig.crash()
        assert self.publish(rig) is not None

    def test_may_be_known_to_the_store_alone(self, rig: Rig) -> None:
        self.publish(rig)
        rig.run()
        own = own_key(SHOP, "k")
        found = rig.store.find_keys(APP, [own])[own]
        rig.gateway._acceptance._recent.clear()
        once = Idempotency("k", b"d", found)
        assert rig.gateway.publish(APP, SHOP, [to("phone")], rig.now, once=once).repeated

    def test_cannot_stand_for_another_request(self, rig: Rig) -> None:
        self.publish(rig)
        with pytest.raises(Conflict):
            self.publish(rig, digest=b"other")

    def test_of_another_app_is_another_key(self, rig: Rig) -> None:
        self.publish(rig)
        rig.gateway.admin.register("other", "phone", DeviceRecord(), rig.now)
        once = Idempotency("k", b"other")
        receipt = rig.gateway.publish("other", SHOP, [to("phone")], rig.now, once=once)
        assert receipt.repeated is None

    def test_of_another_publisher_is_another_key(self, rig: Rig) -> None:
        self.publish(rig)
        for digest in (b"d", b"other"):
            source, once = f"publisher:{digest.decode()}", Idempotency("k", digest)
            receipt = rig.gateway.publish(APP, source, [to("phone")], rig.now, once=once)
            assert receipt.repeated is None
        assert self.publish(rig) is not None


class TestCancelling:
    def test_what_is_pending_is_taken_back(self, rig: Rig) -> None:
        (key,) = rig.publish(to("phone"))
        assert rig.gateway.cancel(APP, key, rig.now) == Withdrawal(1, 0)
        assert rig.gateway.cancel(APP, key, rig.now) is None
        channel = rig.connect()
        assert rig.messages(channel) == []
        assert rig.state(key) is State.CANCELLED

    def test_what_is_released_is_too_late_even_before_it_leaves(self, rig: Rig) -> None:
        channel = rig.connect()
        (key,) = rig.publish(to("phone"))
        rig.settle()
        assert rig.gateway.cancel(APP, key, rig.now) == Withdrawal(0, 1)
        rig.run()
        assert len(rig.messages(channel)) == 1

    def test_of_several_devices_each_is_one_or_the_other(self, rig: Rig) -> None:
        rig.connect("tablet")
        (key,) = rig.publish(to("user:ann"))
        rig.run()
        assert rig.gateway.cancel(APP, key, rig.now) == Withdrawal(1, 1)

    def test_a_delay_that_ends_later_brings_nothing_back(self, rig: Rig) -> None:
        channel = rig.connect()
        (key,) = rig.publish(to("phone", deliver_after=rig.now + SECOND))
        rig.gateway.cancel(APP, key, rig.now)
        rig.pass_time(2 * SECOND)
        assert rig.messages(channel) == []


class TestReplacing:
    def test_the_new_message_goes_to_those_who_were_not_sent_the_old_one(self, rig: Rig) -> None:
        tablet = rig.connect("tablet")
        (key,) = rig.publish(to("user:ann", b"old"))
        rig.run()
        withdrawal, new = rig.gateway.replace(APP, key, SHOP, to("user:ann", b"new"), rig.now)
        assert withdrawal == Withdrawal(1, 1)
        assert new is not None
        phone = rig.connect("phone")
        assert rig.bodies(phone) == [b"new"]
        assert rig.bodies(tablet) == [b"old"]

    def test_what_nobody_waits_for_is_not_replaced(self, rig: Rig) -> None:
        rig.connect()
        (key,) = rig.publish(to("phone"))
        rig.run()
        replaced = rig.gateway.replace(APP, key, SHOP, to("phone"), rig.now)
        assert replaced == (Withdrawal(0, 1), None)
        assert rig.gateway.replace(APP, 5, SHOP, to("phone"), rig.now) == (None, None)

    def test_a_bad_replacement_leaves_the_old_message_alone(self, rig: Rig) -> None:
        (key,) = rig.publish(to("phone"))
        with pytest.raises(TooLarge):
            rig.gateway.replace(APP, key, SHOP, to("phone", b"x" * 11), rig.now)
        rig.run()
        assert rig.state(key) is State.PENDING

    def test_under_a_replace_key_only_the_newest_waits(self, rig: Rig) -> None:
        for body in (b"1", b"2", b"3"):
            rig.publish(to("phone", body, replace_key="score"))
        rig.run()
        assert rig.bodies(rig.connect()) == [b"3"]
        assert rig.states() == {State.REPLACED: 2, State.SENDING: 1}

    def test_a_replace_key_of_another_publisher_is_another_key(self, rig: Rig) -> None:
        rig.publish(to("phone", b"1", replace_key="score"))
        rig.publish(to("phone", b"2", replace_key="score"), source="publisher:other")
        rig.run()
        rig.publish(to("phone", b"3", replace_key="score"))
        rig.run()
        assert rig.bodies(rig.connect()) == [b"2", b"3"]

    def test_a_message_that_comes_back_does_not_shield_a_later_one_from_replacement(
        self, rig: Rig
    ) -> None:
        rig.lose(rig.connect(window=Credit(1, 9)))
        channel = rig.connect(window=Credit(1, 9))
        rig.publish(to("phone", b"1", replace_key="score"))
        rig.run()
        rig.publish(to("phone", b"2", replace_key="score"))
        rig.lose(channel)
        channel = rig.connect(window=Credit(1, 9))
        assert rig.bodies(channel) == [b"1"]
        rig.publish(to("phone", b"3", replace_key="score"))
        rig.ack(channel, 1)
        assert rig.bodies(channel) == [b"1", b"3"]


class TestAMailboxThatIsFull:
    def test_suppresses_one_delivery_among_many_with_a_reason(self, rig: Rig) -> None:
        rig.publish(*[to("phone")] * 3)
        (key,) = rig.publish(to("user:ann"))
        rig.run()
        states = [State(row.state) for row in rig.store.deliveries(key)]
        assert states == [State.SUPPRESSED, State.PENDING]
        assert rig.gateway.cancel(APP, key, rig.now) == Withdrawal(1, 0)
        (event,) = [e for e in rig.events() if e["kind"] == "suppressed"]
        assert event["reason"] == "mailbox full"
