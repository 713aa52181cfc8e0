"""Pushes: who gets them, what is reported of each address, cancelling and replacing."""

from __future__ import annotations

import gc

import pytest

from lasthop.clock import HOUR, SECOND
from lasthop.core.lifecycle import State, Step
from lasthop.core.limits import Limits
from lasthop.core.pushes.addresses import AddressNotServed, AddressUnknown
from lasthop.core.pushes.feature import NotReplaceable, PushUnknown, TooManyDevices
from lasthop.core.pushes.push import PushInProgress
from lasthop.core.pushes.push_ids import DuplicatePush
from lasthop.errors import Conflict, PapAddressError
from lasthop.message import DeliveryMethod, Reliability, Target, TargetKind
from lasthop.wire.pap.documents import ReplaceMethod
from tests.core.pushes.initiator import Initiator, user
from tests.core.rig import APP, Rig

ALL, PENDING_ONLY = ReplaceMethod.ALL, ReplaceMethod.PENDING_ONLY
PHONE = "WAPPUSH=+1555-1999/TYPE=PLMN@ppg.example.com"
NEWS = Target(TargetKind.TOPIC, "news")


@pytest.fixture
def initiator(rig: Rig) -> Initiator:
    initiator = Initiator(rig)
    initiator.register("phone", "alice", addresses=["PLMN:+15551999"])
    initiator.register("tablet", "alice")
    initiator.register("watch", "bob")
    return initiator


def test_nothing_of_a_push_that_is_over_waits_for_the_collector(
    rig: Rig, initiator: Initiator
) -> None:
    gc.collect()
    gc.disable()
    try:
        key = initiator.push("1", user("alice"))
        rig.gateway.cancel(APP, key, rig.now)
        rig.run()
        assert key not in rig.gateway.deliveries.items
        assert not any(isinstance(found, PushInProgress) for found in gc.get_objects())
    finally:
        gc.enable()


class TestAddresses:
    @pytest.mark.conformance("PPG-ADD-S-001", "PPG-ADD-S-002")
    def test_a_user_is_all_of_their_devices(self, rig: Rig, initiator: Initiator) -> None:
        key = initiator.push("1", user("alice"))
        assert [row.device for row in rig.store.deliveries(key)] == [1, 2]

    @pytest.mark.conformance("PPG-ADD-S-003")
    def test_a_device_is_found_by_its_own_address(self, rig: Rig, initiator: Initiator) -> None:
        key = initiator.push("1", PHONE)
        assert [row.device for row in rig.store.deliveries(key)] == [1]

    def test_an_identifier_may_name_a_device(self, rig: Rig, initiator: Initiator) -> None:
        key = initiator.push("1", user("watch"))
        assert [row.device for row in rig.store.deliveries(key)] == [3]

    def test_a_device_counts_for_each_of_its_addresses(
        self, rig: Rig, initiator: Initiator, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("lasthop.core.pushes.feature.MAX_LISTED", 3)
        again = user("alice").replace("@", "@another.")
        with pytest.raises(TooManyDevices, match="push to large groups one by one"):
            initiator.push("1", user("alice"), again)
        initiator.push("2", user("alice"), user("bob"))

    def test_a_record_of_its_own_comes_first(self, rig: Rig, initiator: Initiator) -> None:
        rig.gateway.pushes.point(APP, "USER:alice", Target(TargetKind.DEVICE, "watch"))
        key = initiator.push("1", user("alice"))
        assert [row.device for row in rig.store.deliveries(key)] == [3]
        rig.crash()
        key = initiator.push("2", user("alice"))
        assert [row.device for row in rig.store.deliveries(key)] == [3]
        rig.gateway.pushes.point(APP, "USER:alice", None)
        rig.run()
        rig.crash()
        assert len(rig.store.deliveries(initiator.push("3", user("alice")))) == 2

    def test_any_type_is_served_once_somebody_has_one(self, initiator: Initiator) -> None:
        address = "WAPPUSH=42/TYPE=X25@ppg.example.com"
        with pytest.raises(AddressNotServed):
            initiator.push("1", address)
        initiator.register("modem", addresses=["X25:42"])
        initiator.push("2", address)
        with pytest.raises(AddressUnknown):
            initiator.push("3", address.replace("42", "43"))

    def test_two_devices_cannot_have_one_phone_number(self, initiator: Initiator) -> None:
        with pytest.raises(Conflict, match="another device has this address"):
            initiator.register("other", addresses=["PLMN:+15551999"])

    def test_two_devices_can_have_one_identifier(self, rig: Rig, initiator: Initiator) -> None:
        initiator.register("one", addresses=["USER:desk"])
        initiator.register("two", addresses=["USER:desk"])
        key = initiator.push("1", user("desk"))
        assert [row.device for row in rig.store.deliveries(key)] == [4, 5]
        rig.crash()
        assert initiator.states("1") == {user("desk"): "pending"}

    def test_an_address_goes_with_its_device(self, rig: Rig, initiator: Initiator) -> None:
        rig.gateway.admin.remove(APP, "phone", rig.now)
        with pytest.raises(AddressUnknown):
            initiator.push("1", PHONE)

    def test_changed_addresses_hold_from_then_on(self, rig: Rig, initiator: Initiator) -> None:
        rig.gateway.admin.amend(APP, "watch", rig.now, addresses=["MAN:12345678"])
        rig.gateway.admin.amend(APP, "phone", rig.now, addresses=[])
        rig.run()
        rig.crash()
        initiator.push("1", "WAPPUSH=12345678/TYPE=MAN@x")
        with pytest.raises(AddressUnknown):
            initiator.push("2", PHONE)

    def test_an_address_that_is_none_is_refused(self, initiator: Initiator) -> None:
        with pytest.raises(PapAddressError):
            initiator.push("1", "alice")

    def test_nobody_there_is_refused_and_nothing_is_kept(
        self, rig: Rig, initiator: Initiator
    ) -> None:
        with pytest.raises(AddressUnknown):
            initiator.push("1", user("nobody"))
        rig.run()
        assert initiator.known("1") is None
        assert rig.store.counts().messages == 0

    def test_one_unknown_among_several_does_not_keep_the_others_from_theirs(
        self, initiator: Initiator
    ) -> None:
        initiator.push("1", user("nobody"), user("bob"), "bad")
        assert {t: (r.state, r.code) for t, r in initiator.reports("1").items()} == {
            user("nobody"): ("undeliverable", 2003),
            user("bob"): ("pending", 1000),
            "bad": ("undeliverable", 2002),
        }
        assert initiator.hear() == [
            ("1", user("nobody"), "undeliverable", 2003),
            ("1", "bad", "undeliverable", 2002),
        ]

    def test_a_device_with_two_addresses_gets_the_message_once(
        self, rig: Rig, initiator: Initiator
    ) -> None:
        key = initiator.push("1", user("alice"), PHONE, user("alice"))
        assert [row.device for row in rig.store.deliveries(key)] == [1, 2]
        channel = rig.connect("phone")
        rig.ack(channel, 1)
        assert initiator.states("1") == {user("alice"): "delivered", PHONE: "delivered"}
        assert [result[1] for result in initiator.hear()] == [user("alice"), PHONE]


class TestPushIds:
    def test_a_push_id_is_used_once_for_ever(self, rig: Rig, initiator: Initiator) -> None:
        initiator.push("1", user("bob"))
        with pytest.raises(DuplicatePush):
            initiator.push("1", user("bob"))
        initiator.cancel("1")
        initiator.hear()
        while rig.store.retire(messages_before=rig.now + HOUR, keys_before=0).messages:
            pass
        assert rig.store.counts().messages == 0
        rig.crash()
        with pytest.raises(DuplicatePush):
            initiator.push("1", user("bob"))

    def test_what_is_not_durable_yet_is_used_as_well(self, initiator: Initiator) -> None:
        initiator.push("1", user("bob"), run=False)
        assert initiator.known("1") is None
        with pytest.raises(DuplicatePush):
            initiator.push("1", user("bob"))


class TestReports:
    @pytest.mark.conformance("PPG-GEN-S-002", "PPG-GEN-S-007")
    def test_it_is_pending_until_the_application_has_had_it(
        self, rig: Rig, initiator: Initiator
    ) -> None:
        initiator.push("1", user("bob"))
        assert initiator.states("1") == {user("bob"): "pending"}
        channel = rig.connect("watch")
        assert initiator.states("1") == {user("bob"): "pending"}
        rig.ack(channel, 1, 0)
        assert initiator.states("1") == {user("bob"): "pending"}
        rig.ack(channel, 1, 1)
        report = initiator.reports("1")[user("bob")]
        assert (report.state, report.code) == ("delivered", 1000)

    @pytest.mark.conformance("PPG-GEN-S-013")
    def test_a_confirmed_push_says_so(self, rig: Rig, initiator: Initiator) -> None:
        initiator.push("1", user("bob"), method=DeliveryMethod.CONFIRMED)
        rig.ack(rig.connect("watch"), 1)
        report = initiator.reports("1")[user("bob")]
        assert report.method is DeliveryMethod.CONFIRMED
        assert report.event_time == rig.now

    @pytest.mark.conformance("PPG-GEN-S-012", "PPG-GEN-S-027")
    @pytest.mark.parametrize("method", [DeliveryMethod.UNCONFIRMED, DeliveryMethod.ONESHOT])
    def test_an_unconfirmed_push_is_delivered_when_it_was_sent(
        self, rig: Rig, initiator: Initiator, method: DeliveryMethod
    ) -> None:
        initiator.push("1", user("bob"), method=method, reliability=Reliability.BEST_EFFORT)
        rig.connect("watch")
        report = initiator.reports("1")[user("bob")]
        assert (report.state, report.method) == ("delivered", method)
        ((_, _, state, _),) = initiator.hear()
        assert state == "delivered"

    @pytest.mark.conformance("PPG-GEN-S-010")
    def test_a_push_that_is_late_has_expired(self, rig: Rig, initiator: Initiator) -> None:
        initiator.push("1", user("bob"), deliver_before=rig.now + SECOND)
        rig.pass_time(2 * SECOND)
        assert initiator.states("1") == {user("bob"): "expired"}
        assert initiator.hear() == [("1", user("bob"), "expired", 4000)]

    @pytest.mark.conformance("PPG-GEN-S-010")
    def test_nothing_leaves_before_its_time(self, rig: Rig, initiator: Initiator) -> None:
        initiator.push("1", user("bob"), deliver_after=rig.now + HOUR)
        channel = rig.connect("watch")
        assert rig.bodies(channel) == []
        rig.pass_time(HOUR)
        assert rig.bodies(channel) == [b"1"]

    def test_a_removed_device_makes_it_undeliverable(self, rig: Rig, initiator: Initiator) -> None:
        initiator.push("1", user("bob"))
        rig.gateway.admin.remove(APP, "watch", rig.now)
        rig.run()
        assert initiator.hear() == [("1", user("bob"), "undeliverable", 3003)]

    @pytest.mark.parametrize(
        "step, code, expected",
        [
            (Step.GIVE_UP, 3006, ("undeliverable", 3006)),
            (Step.GIVE_UP, 3010, ("undeliverable", 3010)),
            (Step.GIVE_UP, 5026, ("undeliverable", 3003)),
            (Step.ABORT, 5027, ("aborted", 5027)),
            (Step.ABORT, 0, ("aborted", 5000)),
            (Step.TIME_OUT, 0, ("timeout", 4000)),
            (Step.SUPPRESS, 0, ("undeliverable", 4001)),
        ],
    )
    def test_the_code_of_an_end_is_reported_where_it_fits(
        self, rig: Rig, initiator: Initiator, step: Step, code: int, expected: tuple[str, int]
    ) -> None:
        key = initiator.push("1", user("bob"))
        (delivery,) = rig.gateway.deliveries.items[key].deliveries
        rig.gateway.deliveries.step(delivery, step, rig.now, "for a reason", code=code)
        rig.run()
        assert initiator.hear() == [("1", user("bob"), *expected)]
        rig.crash()
        report = initiator.reports("1")[user("bob")]
        assert (report.state, report.code) == expected

    def test_a_person_is_reached_when_one_device_is(self, rig: Rig, initiator: Initiator) -> None:
        initiator.push("1", user("alice"))
        rig.ack(rig.connect("tablet"), 1)
        assert initiator.hear() == [("1", user("alice"), "delivered", 1000)]
        rig.crash()
        rig.ack(rig.connect("phone"), 1)
        assert initiator.hear() == []
        assert initiator.states("1") == {user("alice"): "delivered"}

    def test_a_person_is_not_reached_when_the_last_device_is_not(
        self, rig: Rig, initiator: Initiator
    ) -> None:
        initiator.push("1", user("alice"))
        rig.gateway.admin.remove(APP, "phone", rig.now)
        rig.run()
        assert initiator.states("1") == {user("alice"): "pending"}
        rig.crash()
        rig.gateway.admin.remove(APP, "tablet", rig.now)
        rig.run()
        assert initiator.hear() == [("1", user("alice"), "undeliverable", 3003)]

    def test_a_group_is_reported_once_when_the_last_device_is_through(
        self, rig: Rig, initiator: Initiator
    ) -> None:
        for name in ("phone", "tablet", "watch"):
            rig.gateway.topics.subscribe(APP, name, "news", rig.now)
        rig.gateway.pushes.point(APP, "USER:everyone", NEWS)
        initiator.push("1", user("everyone"))
        for name in ("phone", "tablet"):
            rig.ack(rig.connect(name), 1)
        assert initiator.states("1") == {user("everyone"): "pending"}
        rig.crash()
        rig.gateway.admin.remove(APP, "watch", rig.now)
        rig.run()
        assert initiator.hear() == [("1", user("everyone"), "delivered", 1000)]

    def test_a_push_goes_to_those_who_are_in_a_group(self, rig: Rig, initiator: Initiator) -> None:
        crew = Target(TargetKind.GROUP, "crew")
        for name in ("phone", "tablet"):
            rig.gateway.groups.join(APP, name, crew, rig.now)
        rig.gateway.pushes.point(APP, "USER:crew", crew)
        initiator.push("1", user("crew"))
        rig.gateway.groups.join(APP, "watch", crew, rig.now)
        rig.ack(rig.connect("phone"), 1)
        assert initiator.states("1") == {user("crew"): "pending"}
        rig.crash()
        rig.ack(rig.connect("tablet"), 1)
        assert initiator.hear() == [("1", user("crew"), "delivered", 1000)]

    def test_a_full_mailbox_is_said_to_be_unavailable(self) -> None:
        rig = Rig(Limits(open_per_device=1))
        initiator = Initiator(rig)
        initiator.register("phone", "alice")
        initiator.register("tablet", "alice")
        initiator.push("1", user("alice"))
        initiator.push("2", user("alice"))
        assert initiator.hear() == [("2", user("alice"), "undeliverable", 4001)]


class TestCancelling:
    @pytest.mark.conformance("PPG-GEN-S-016", "PPG-GEN-S-017")
    def test_a_pending_push_is_taken_back_and_reported(
        self, rig: Rig, initiator: Initiator
    ) -> None:
        initiator.push("1", user("alice"), user("bob"))
        assert initiator.cancel("1") == {user("alice"): 1000, user("bob"): 1000}
        assert initiator.states("1") == {user("alice"): "cancelled", user("bob"): "cancelled"}
        assert {result[2] for result in initiator.hear()} == {"cancelled"}
        assert rig.bodies(rig.connect("watch")) == []

    @pytest.mark.conformance("PPG-GEN-S-017")
    def test_a_push_on_its_way_is_not(self, rig: Rig, initiator: Initiator) -> None:
        initiator.push("1", user("bob"))
        channel = rig.connect("watch")
        assert initiator.cancel("1") == {user("bob"): 2008}
        rig.ack(channel, 1)
        assert initiator.cancel("1") is None
        assert initiator.states("1") == {user("bob"): "delivered"}

    def test_one_address_is_taken_back_by_itself(self, rig: Rig, initiator: Initiator) -> None:
        initiator.push("1", user("alice"), user("bob"))
        assert initiator.cancel("1", user("bob")) == {user("bob"): 1000}
        assert initiator.states("1") == {user("alice"): "pending", user("bob"): "cancelled"}
        assert rig.bodies(rig.connect("watch")) == []
        assert rig.bodies(rig.connect("phone")) == [b"1"]

    def test_it_is_wholly_or_not_at_all(self, rig: Rig, initiator: Initiator) -> None:
        initiator.push("1", user("alice"))
        rig.connect("phone")
        assert initiator.cancel("1") == {user("alice"): 2008}
        assert rig.bodies(rig.connect("tablet")) == [b"1"]

    def test_a_person_who_has_it_on_one_device_gets_it_on_the_other(
        self, rig: Rig, initiator: Initiator
    ) -> None:
        initiator.push("1", user("alice"))
        rig.ack(rig.connect("phone"), 1)
        assert initiator.cancel("1") == {user("alice"): 2008}
        assert rig.bodies(rig.connect("tablet")) == [b"1"]

    def test_a_device_keeps_what_another_address_brings_it(
        self, rig: Rig, initiator: Initiator
    ) -> None:
        initiator.push("1", user("alice"), PHONE)
        assert initiator.cancel("1", PHONE) == {PHONE: 2008}
        assert rig.bodies(rig.connect("phone")) == [b"1"]

    def test_an_address_that_is_not_of_the_push_is_not_found(self, initiator: Initiator) -> None:
        initiator.push("1", user("bob"))
        assert initiator.cancel("1", user("alice")) == {user("alice"): 2003}

    def test_what_has_expired_for_one_device_can_be_cancelled_for_the_other(
        self, rig: Rig, initiator: Initiator
    ) -> None:
        initiator.push("1", user("alice"))
        rig.gateway.admin.remove(APP, "phone", rig.now)
        assert initiator.cancel("1") == {user("alice"): 1000}

    def test_a_group_is_taken_back_while_it_fans_out(self) -> None:
        rig = Rig(Limits(fanout_batch=1))
        initiator = Initiator(rig)
        for number in range(4):
            initiator.register(f"device-{number}", subscriptions=["news"])
        rig.gateway.pushes.point(APP, "USER:everyone", NEWS)
        initiator.push("1", user("everyone"), run=False)
        rig.run_commits(1)
        assert initiator.cancel("1") == {user("everyone"): 1000}
        assert initiator.states("1") == {user("everyone"): "cancelled"}
        assert initiator.hear() == [("1", user("everyone"), "cancelled", 1000)]
        rig.crash()
        assert initiator.states("1") == {user("everyone"): "cancelled"}
        assert rig.bodies(rig.connect("device-3")) == []

    @pytest.mark.parametrize("alone", [True, False])
    def test_who_cancels_the_message_cancels_the_push(self, alone: bool) -> None:
        rig = Rig(Limits(fanout_batch=1))
        initiator = Initiator(rig)
        for number in range(4):
            initiator.register(f"device-{number}", "alice", subscriptions=["news"])
        rig.gateway.pushes.point(APP, "USER:everyone", NEWS)
        to = [user("everyone")] if alone else [user("everyone"), user("alice"), user("nobody")]
        key = initiator.push("1", *to, run=False)
        rig.run_commits(1)
        rig.gateway.cancel(APP, key, rig.now)
        rig.run()
        states = dict.fromkeys(to, "cancelled")
        if not alone:
            states[user("nobody")] = "undeliverable"
        assert {text: state for _, text, state, _ in initiator.hear()} == states
        assert initiator.states("1") == states
        rig.crash()
        assert initiator.states("1") == states

    def test_several_addresses_are_taken_back_while_they_fan_out(self) -> None:
        rig = Rig(Limits(fanout_batch=1))
        initiator = Initiator(rig)
        for number in range(4):
            initiator.register(f"device-{number}")
        addresses = [user(f"device-{number}") for number in range(4)]
        initiator.push("1", *addresses, run=False)
        rig.run_commits(1)
        assert initiator.cancel("1", addresses[3]) == {addresses[3]: 1000}
        assert rig.bodies(rig.connect("device-3")) == []
        assert rig.bodies(rig.connect("device-2")) == [b"1"]

    def test_a_fan_out_that_a_crash_interrupted_goes_on(self) -> None:
        rig = Rig(Limits(fanout_batch=1))
        initiator = Initiator(rig)
        for number in range(4):
            initiator.register(f"device-{number}")
        addresses = [user(f"device-{number}") for number in range(4)]
        initiator.push("1", *addresses, run=False)
        rig.run_commits(1)
        rig.crash()
        for number in range(4):
            rig.ack(rig.connect(f"device-{number}"), 1)
        assert initiator.hear() == [("1", address, "delivered", 1000) for address in addresses]


@pytest.mark.conformance("PPG-GEN-S-020")
class TestReplacing:
    def test_a_pending_push_is_replaced(self, rig: Rig, initiator: Initiator) -> None:
        initiator.push("1", user("bob"))
        initiator.push("2", user("bob"), replaces="1")
        assert initiator.hear() == [("1", user("bob"), "cancelled", 1000)]
        assert rig.bodies(rig.connect("watch")) == [b"2"]

    def test_all_sends_the_new_one_to_those_who_have_the_old_one(
        self, rig: Rig, initiator: Initiator
    ) -> None:
        initiator.push("1", user("alice"), user("bob"))
        channel = rig.connect("watch")
        initiator.push("2", user("alice"), user("bob"), replaces="1")
        assert rig.bodies(channel) == [b"1", b"2"]
        assert rig.bodies(rig.connect("phone")) == [b"2"]

    def test_pending_only_leaves_those_alone(self, rig: Rig, initiator: Initiator) -> None:
        initiator.push("1", user("alice"), user("bob"))
        channel = rig.connect("watch")
        initiator.push("2", user("alice"), user("bob"), replaces="1", how=PENDING_ONLY)
        assert rig.bodies(channel) == [b"1"]
        assert rig.bodies(rig.connect("phone")) == [b"2"]
        assert initiator.states("2") == {user("alice"): "pending", user("bob"): "rejected"}
        assert ("2", user("bob"), "rejected", 3003) in initiator.hear()
        rig.crash()
        assert initiator.states("2") == {user("alice"): "pending", user("bob"): "rejected"}

    def test_pending_only_holds_for_each_device_of_a_person(
        self, rig: Rig, initiator: Initiator
    ) -> None:
        initiator.push("1", user("alice"))
        phone = rig.connect("phone")
        initiator.push("2", user("alice"), replaces="1", how=PENDING_ONLY)
        assert rig.bodies(phone) == [b"1"]
        tablet = rig.connect("tablet")
        assert rig.bodies(tablet) == [b"2"]
        rig.crash()
        rig.ack(rig.connect("tablet"), 1)
        assert initiator.states("2") == {user("alice"): "delivered"}

    @pytest.mark.parametrize("method", [ALL, PENDING_ONLY])
    def test_in_a_group_each_member_counts(
        self, rig: Rig, initiator: Initiator, method: ReplaceMethod
    ) -> None:
        for name in ("phone", "tablet", "watch"):
            rig.gateway.topics.subscribe(APP, name, "news", rig.now)
        rig.gateway.pushes.point(APP, "USER:everyone", NEWS)
        initiator.push("1", user("everyone"))
        rig.ack(watch := rig.connect("watch"), 1)
        initiator.push("2", user("everyone"), replaces="1", how=method)
        assert rig.bodies(watch) == ([b"1", b"2"] if method is ALL else [b"1"])
        for name in ("phone", "tablet"):
            rig.ack(channel := rig.connect(name), 1)
            assert rig.bodies(channel) == [b"2"]
        if method is ALL:
            rig.ack(watch, 2)
        assert initiator.hear() == [
            ("1", user("everyone"), "delivered", 1000),
            ("2", user("everyone"), "delivered", 1000),
        ]

    def test_pending_only_where_nothing_is_pending_is_refused(
        self, rig: Rig, initiator: Initiator
    ) -> None:
        initiator.push("1", user("bob"))
        rig.ack(rig.connect("watch"), 1)
        with pytest.raises(NotReplaceable):
            initiator.push("2", user("bob"), replaces="1", how=PENDING_ONLY)
        assert initiator.known("2") is None

    def test_a_push_that_nobody_sent_cannot_be_replaced(self, initiator: Initiator) -> None:
        with pytest.raises(PushUnknown):
            initiator.push("2", user("bob"), replaces="1")

    def test_a_recipient_of_the_old_push_alone_keeps_it(
        self, rig: Rig, initiator: Initiator
    ) -> None:
        initiator.push("1", user("alice"), user("bob"))
        initiator.push("2", user("bob"), replaces="1")
        assert rig.bodies(rig.connect("phone")) == [b"1"]
        assert rig.bodies(rig.connect("watch")) == [b"2"]

    def test_a_refused_replacement_takes_nothing_back(self, rig: Rig, initiator: Initiator) -> None:
        initiator.push("1", user("bob"))
        with pytest.raises(AddressUnknown):
            initiator.push("2", user("nobody"), replaces="1")
        assert initiator.states("1") == {user("bob"): "pending"}


def test_a_push_that_only_the_store_knows_is_reported_as_it_was(
    rig: Rig, initiator: Initiator
) -> None:
    key = initiator.push("1", user("bob"))
    rig.ack(rig.connect("watch"), 1)
    assert key not in rig.gateway.deliveries.items
    assert rig.state(key) is State.DELIVERED
    assert initiator.states("1") == {user("bob"): "delivered"}
