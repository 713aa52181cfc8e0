"""Over the air: what leaves when, what each outcome means, and what a crash in between does."""

from __future__ import annotations

from typing import Any

import pytest

from lasthop.clock import DAY, HOUR, MINUTE, SECOND
from lasthop.core.air.feature import FIRST_PAUSE
from lasthop.core.gateway import Identity
from lasthop.core.lifecycle import State
from lasthop.core.limits import Limits
from lasthop.core.publishing.acceptance import Withdrawal
from lasthop.decision.constraints import QuietHours
from lasthop.decision.links import Link, Tariff
from lasthop.decision.preferences import Preferences
from lasthop.decision.routes import Route, Variant
from lasthop.decision.volume.terms import TopicTerms
from lasthop.delivery.carrier import (
    Aborted,
    Confirmed,
    NotReached,
    ReturnedContent,
    Sent,
    Unanswered,
    Unfit,
)
from lasthop.message import DeliveryMethod, Quality, Reliability
from lasthop.wire.hop.frames import ALL_FEATURES, Piece
from tests.core.rig import APP, BEST_EFFORT, START, Rig, to

UDP = Route(Variant.WSP, "192.0.2.1")
SESSION = Route(Variant.WSP_SESSION, "192.0.2.1")
HTTP = Route(Variant.HTTP, "192.0.2.1")


class TestLeaving:
    @pytest.mark.conformance("PPG-GEN-S-011", "PPG-GEN-S-012")
    def test_a_push_leaves_when_its_release_is_durable(self, rig: Rig) -> None:
        rig.add("phone", UDP, capabilities={"ota.accept": "text/vnd.wap.si"})
        headers = (("A", "b"), ("traceparent", "too dear to be carried"))
        (key,) = rig.publish(to("phone", b"x", content_type="text/plain", headers=headers))
        rig.run()  # The rig checks that nothing leaves before.
        (carry,) = rig.carries
        parcel = carry.parcel
        assert (parcel.route, parcel.body, parcel.content_type) == (UDP, b"x", "text/plain")
        assert parcel.headers == (("A", "b"),)
        assert parcel.capabilities == {"ota.accept": "text/vnd.wap.si"}
        assert not parcel.confirmed
        rig.report(Sent())
        assert rig.state(key) is State.SENT
        assert rig.story(key) == ["accepted", "released", "transmitted", "sent"]

    def test_nothing_leaves_before_its_time_or_after_it(self, rig: Rig) -> None:
        rig.add("phone", UDP)
        early, late = rig.publish(
            to("phone", b"early", deliver_after=rig.now + SECOND),
            to("phone", b"late", deliver_before=rig.now + SECOND),
        )
        rig.settle()
        rig.take()
        rig.now += SECOND  # While the release is being written.
        rig.run()
        assert [carry.parcel.body for carry in rig.carries] == [b"early"]
        assert rig.state(late) is State.EXPIRED
        assert rig.state(early) is State.SENDING

    def test_ranked_topics_wait_for_the_device_itself(self, rig: Rig) -> None:
        rig.add("phone", UDP)
        rig.gateway.topics.subscribe(APP, "phone", "news", rig.now, TopicTerms(max=1))
        (plain,) = rig.publish(to("phone", b"plain"))
        rig.run()
        assert [carry.parcel.body for carry in rig.carries] == [b"plain"]
        rig.report(Sent())
        assert rig.state(plain) is State.SENT
        assert [row.open for row in rig.store.all_deliveries()].count(True) == 1, "its terms"

    def test_so_many_are_with_carriers_at_a_time(self) -> None:
        rig = Rig(Limits(carried_per_device=2))
        rig.add("phone", UDP)
        rig.publish(*[to("phone")] * 5)
        rig.run()
        assert len(rig.carries) == 2
        for _ in range(5):
            rig.report(Sent())
        assert rig.carries == []
        assert rig.states() == {State.SENT: 5}

    def test_a_body_that_was_left_to_the_store_is_fetched_first(self) -> None:
        rig = Rig(Limits(resident=0, carried_per_device=1))
        rig.add("phone", UDP)
        rig.publish(to("phone", b"one"), to("phone", b"two"))
        rig.run()
        for body in (b"one", b"two"):
            rig.fetch()
            rig.run()
            assert rig.report(Sent()).parcel.body == body

    def test_a_device_that_calls_is_served_by_its_channel(self, rig: Rig) -> None:
        channel = rig.connect()
        rig.gateway.admin.amend(APP, "phone", rig.now, routes=[UDP])
        rig.publish(to("phone", b"by hop"))
        rig.run()
        assert rig.bodies(channel) == [b"by hop"]
        assert rig.carries == []
        rig.ack(channel, 1)
        rig.lose(channel)
        rig.publish(to("phone", b"over the air"))
        rig.run()
        assert [carry.parcel.body for carry in rig.carries] == [b"over the air"]

    def test_what_waits_leaves_as_soon_as_there_is_a_route(self, rig: Rig) -> None:
        rig.add("phone")
        rig.publish(to("phone"))
        rig.run()
        assert rig.carries == []
        rig.gateway.admin.amend(APP, "phone", rig.now, routes=[UDP])
        rig.run()
        assert len(rig.carries) == 1


@pytest.mark.conformance("PPG-GEN-S-008")
class TestQuality:
    def test_a_required_bearer_that_is_missing_fails(self, rig: Rig) -> None:
        rig.add("phone", UDP)
        wanted = Quality(bearer="SMS", bearer_required=True)
        (key,) = rig.publish(to("phone", quality=wanted))
        rig.run()
        assert rig.carries == []
        assert (rig.state(key), rig.row(key).code) == (State.UNDELIVERABLE, 3010)

    def test_it_holds_for_a_device_that_is_connected_too(self, rig: Rig) -> None:
        channel = rig.connect(link="wifi", network="home")
        keys = rig.publish(
            to("phone", b"no", quality=Quality(bearer="GPRS", bearer_required=True)),
            to("phone", b"no", quality=Quality(network="GSM", network_required=True)),
            to("phone", b"yes", quality=Quality(bearer="WiFi", bearer_required=True)),
            to("phone", b"any", quality=Quality(bearer="GPRS")),
        )
        rig.run()
        assert rig.bodies(channel) == [b"yes", b"any"]
        assert [rig.row(key).code for key in keys] == [3010, 3009, 0, 0]

    def test_a_connected_device_is_reached_over_the_required_bearer(self, rig: Rig) -> None:
        channel = rig.connect(link="wifi")
        rig.gateway.admin.amend(APP, "phone", rig.now, routes=[UDP])
        rig.publish(to("phone", quality=Quality(bearer="packet data", bearer_required=True)))
        rig.run()
        assert rig.bodies(channel) == []
        assert rig.report(Sent()).parcel.route == UDP
        assert rig.states() == {State.SENT: 1}

    @pytest.mark.conformance("PPG-GEN-S-025")
    def test_a_response_needs_a_route_that_can_bring_one(self, rig: Rig) -> None:
        rig.add("phone", UDP, SESSION)
        (key,) = rig.publish(to("phone", method=DeliveryMethod.CONFIRMED_WITH_RESPONSE))
        rig.run()
        assert (rig.state(key), rig.row(key).code) == (State.UNDELIVERABLE, 3007)


class TestOutcomes:
    @pytest.mark.conformance("PPG-GEN-S-011", "PPG-GEN-S-013", "PPG-CO-S-001")
    def test_a_confirmed_push_is_delivered(self, rig: Rig) -> None:
        rig.add("phone", SESSION)
        (key,) = rig.publish(to("phone", method=DeliveryMethod.CONFIRMED))
        rig.run()
        assert rig.report(Confirmed()).parcel.confirmed
        assert rig.state(key) is State.DELIVERED

    @pytest.mark.conformance("PPG-GEN-S-013")
    @pytest.mark.parametrize(
        "reason, code", [(0xEA, 5026), (0xEB, 5027), (0xEC, 5028), (0xED, 5029), (0xEE, 5030)]
    )
    def test_an_abort_is_final_and_keeps_its_reason(self, rig: Rig, reason: int, code: int) -> None:
        rig.add("phone", SESSION)
        (key,) = rig.publish(to("phone", method=DeliveryMethod.CONFIRMED))
        rig.run()
        rig.report(Aborted(reason))
        assert (rig.state(key), rig.row(key).code) == (State.ABORTED, code)

    @pytest.mark.conformance("PPG-GEN-S-007")
    def test_what_cannot_be_adapted_is_undeliverable(self, rig: Rig) -> None:
        rig.add("phone", UDP)
        (key,) = rig.publish(to("phone"))
        rig.run()
        rig.report(Unfit(3006, "not well-formed"))
        assert (rig.state(key), rig.row(key).code) == (State.UNDELIVERABLE, 3006)

    @pytest.mark.conformance("PPG-GEN-S-013")
    def test_without_an_answer_it_is_tried_again_and_then_times_out(self, rig: Rig) -> None:
        rig.add("phone", SESSION)
        (key,) = rig.publish(to("phone", method=DeliveryMethod.CONFIRMED))
        rig.run()
        rig.report(Unanswered("no response"))
        assert rig.state(key) is State.PENDING
        assert rig.carries == []
        rig.pass_time(FIRST_PAUSE)
        rig.report(Unanswered("no response"))
        rig.pass_time(2 * FIRST_PAUSE)
        rig.report(Unanswered("no response"))
        assert (rig.state(key), rig.row(key).code) == (State.TIMED_OUT, 4000)
        assert rig.row(key).attempts == 3

    def test_what_never_left_can_be_cancelled_and_expires(self, rig: Rig) -> None:
        rig.add("phone", SESSION)
        one, two = rig.publish(to("phone"), to("phone", deliver_before=rig.now + 2 * SECOND))
        rig.run()
        rig.report(NotReached("no session"))
        rig.report(NotReached("no session"))
        withdrawal = rig.gateway.cancel(APP, one, rig.now)
        assert withdrawal is not None
        assert withdrawal.taken_back == 1
        rig.pass_time(2 * SECOND)
        assert [rig.state(key) for key in (one, two)] == [State.CANCELLED, State.EXPIRED]

    def test_what_may_have_been_shown_cannot_be_cancelled(self, rig: Rig) -> None:
        rig.add("phone", SESSION)
        (key,) = rig.publish(to("phone"))
        rig.run()
        rig.report(Unanswered("no response"))
        withdrawal = rig.gateway.cancel(APP, key, rig.now)
        assert withdrawal is not None
        assert (withdrawal.taken_back, withdrawal.too_late) == (0, 1)

    @pytest.mark.conformance("PPG-GEN-S-009")
    def test_an_unreachable_device_is_looked_for_until_patience_ends(self, rig: Rig) -> None:
        rig.add("phone", SESSION)
        (key,) = rig.publish(to("phone"))
        rig.run()
        tries = 0
        while rig.state(key) is not State.UNDELIVERABLE:
            rig.report(NotReached("no session"))
            tries += 1
            if not rig.state(key).final:
                rig.pass_time(DAY // 96)
        assert rig.row(key).code == 4000
        assert 90 < tries < 110

    def test_another_route_is_tried_at_once(self, rig: Rig) -> None:
        rig.add("phone", SESSION, UDP)
        rig.publish(to("phone", method=DeliveryMethod.PREFER_CONFIRMED))
        rig.run()
        assert rig.report(NotReached("no session")).parcel.route == SESSION
        rig.pass_time(0)
        carry = rig.report(Sent())
        assert (carry.parcel.route, carry.parcel.confirmed) == (UDP, False)
        assert rig.states() == {State.SENT: 1}

    @pytest.mark.conformance("PPG-GEN-S-027")
    def test_one_shot_is_tried_once(self, rig: Rig) -> None:
        rig.add("phone", UDP)
        (key,) = rig.publish(to("phone", method=DeliveryMethod.ONESHOT, **BEST_EFFORT))
        rig.run()
        rig.report(NotReached("no network"))
        rig.pass_time(DAY)
        assert rig.carries == []
        assert rig.state(key) is State.UNDELIVERABLE

    @pytest.mark.conformance("PPG-GEN-S-024")
    def test_content_that_a_client_returns_is_the_answer(self, rig: Rig) -> None:
        rig.add("phone", HTTP)
        (key,) = rig.publish(to("phone", method=DeliveryMethod.CONFIRMED_WITH_RESPONSE))
        rig.gateway.deliveries.watch(key)
        rig.run()
        carry = rig.report(Confirmed(ReturnedContent("text/plain", b"yes")))
        assert carry.parcel.response
        row = rig.row(key)
        assert row.state == State.DELIVERED
        answer = rig.store.messages([row.reply])[row.reply]
        assert (answer.body, answer.in_reply_to, answer.source) == (b"yes", key, "device:phone")
        assert [change.reply for change in rig.changes if change.reply] == [row.reply]

    def test_content_that_nobody_asked_for_is_not_kept(self, rig: Rig) -> None:
        rig.add("phone", HTTP)
        (key,) = rig.publish(to("phone", method=DeliveryMethod.CONFIRMED))
        rig.run()
        rig.report(Confirmed(ReturnedContent("text/plain", b"yes")))
        assert (rig.state(key), rig.row(key).reply) == (State.DELIVERED, 0)

    def test_a_report_after_the_device_was_removed_changes_nothing(self, rig: Rig) -> None:
        rig.add("phone", SESSION)
        (key,) = rig.publish(to("phone"))
        rig.run()
        rig.gateway.admin.remove(APP, "phone", rig.now)
        rig.run()
        rig.report(Confirmed())
        assert rig.state(key) is State.TIMED_OUT

    def test_the_deadline_waits_for_the_carriers_word(self, rig: Rig) -> None:
        rig.add("phone", SESSION)
        keys = rig.publish(*[to("phone", deliver_before=rig.now + SECOND)] * 3)
        rig.run()
        rig.pass_time(SECOND)
        assert rig.states() == {State.SENDING: 3}
        rig.report(Confirmed())
        rig.report(Unanswered("no response"))
        rig.report(NotReached("no session"))
        expected = [State.DELIVERED, State.TIMED_OUT, State.EXPIRED]
        assert [rig.state(key) for key in keys] == expected


class TestTakingBack:
    """What waits inside a carrier can be taken back until something of it has left."""

    def carried(self, *names: str, **fields: Any) -> tuple[Rig, list[int]]:
        rig = Rig()
        rig.add("phone", SESSION)
        keys = rig.publish(*[to("phone", name.encode(), **fields) for name in names])
        rig.run()
        assert len(rig.carries) == len(names)
        return rig, keys

    def test_a_push_that_waits_inside_its_carrier_is_cancelled(self) -> None:
        rig, (one, two) = self.carried("one", "two")
        assert rig.gateway.cancel(APP, one, rig.now) == Withdrawal(1, 0)
        rig.run()
        assert rig.state(one) is State.CANCELLED
        assert rig.row(one).attempts == 0
        assert rig.report(Sent()).message == two
        rig.pass_time(DAY)
        assert rig.carries == []

    def test_it_is_too_late_once_something_has_left(self) -> None:
        rig, (key,) = self.carried("one")
        rig.gone.add(rig.carries[0].parcel.number)
        assert rig.gateway.cancel(APP, key, rig.now) == Withdrawal(0, 1)
        rig.report(Confirmed())
        assert rig.state(key) is State.DELIVERED

    def test_after_an_earlier_attempt_it_stays_with_its_carrier(self) -> None:
        rig, (key,) = self.carried("one")
        rig.report(Unanswered("no response"))
        rig.pass_time(FIRST_PAUSE)
        assert rig.gateway.cancel(APP, key, rig.now) == Withdrawal(0, 1)
        assert rig.report(Confirmed()).message == key
        assert rig.state(key) is State.DELIVERED

    @pytest.mark.parametrize("resident", [0, 1 << 20])
    def test_on_the_way_to_its_carrier_it_is_cancelled_too(self, resident: int) -> None:
        rig = Rig(Limits(resident=resident))
        rig.add("phone", SESSION)
        (key,) = rig.publish(to("phone", b"one"))
        rig.run()
        if resident:
            rig.report(NotReached("no session"))
            rig.pass_time(FIRST_PAUSE - 1)
            rig.now += 1
            rig.settle()  # Its second release is not durable yet.
        assert rig.state(key) is State.SENDING or resident
        assert rig.gateway.cancel(APP, key, rig.now) == Withdrawal(1, 0)
        rig.fetch()
        rig.pass_time(DAY)
        assert rig.carries == []
        assert rig.state(key) is State.CANCELLED

    def test_it_is_replaced(self) -> None:
        rig, (key,) = self.carried("old")
        new = to("phone", b"new")
        withdrawal, _ = rig.gateway.replace(APP, key, "publisher:test", new, rig.now)
        assert withdrawal == Withdrawal(1, 0)
        rig.run()
        assert rig.state(key) is State.REPLACED
        assert [carry.parcel.body for carry in rig.carries] == [b"new"]

    def test_it_is_replaced_under_its_key(self) -> None:
        rig, (key,) = self.carried("old", replace_key="score")
        rig.publish(to("phone", b"new", replace_key="score"))
        rig.run()
        assert rig.state(key) is State.REPLACED
        assert [carry.parcel.body for carry in rig.carries] == [b"new"]

    def test_what_has_left_is_delivered_beside_what_replaces_it(self) -> None:
        rig, (key,) = self.carried("old", replace_key="score")
        rig.gone.add(rig.carries[0].parcel.number)
        rig.publish(to("phone", b"new", replace_key="score"))
        rig.run()
        assert [carry.parcel.body for carry in rig.carries] == [b"old", b"new"]
        rig.report(Sent())
        rig.report(Sent())
        assert rig.states() == {State.SENT: 2}
        assert rig.state(key) is State.SENT

    def test_one_that_is_taken_back_for_nothing_leaves_again_once(self) -> None:
        rig, (key,) = self.carried("one")
        delivery = rig.gateway.deliveries.items[key].deliveries[0]
        assert rig.gateway.deliveries.recall(delivery, rig.now)
        assert rig.carries == []
        rig.run()
        assert rig.report(Sent()).message == key
        assert rig.state(key) is State.SENT
        assert rig.row(key).attempts == 1

    def test_a_release_that_was_taken_back_does_not_leave_beside_the_next_one(self) -> None:
        rig = Rig()
        rig.add("phone", SESSION)
        (key,) = rig.publish(to("phone", b"one"))
        rig.settle()
        rig.take()
        delivery = rig.gateway.deliveries.items[key].deliveries[0]
        assert rig.gateway.deliveries.recall(delivery, rig.now)
        rig.run()
        assert len(rig.carries) == 1
        rig.report(Sent())
        assert rig.state(key) is State.SENT

    def test_a_cancellation_that_no_commit_has_is_forgotten(self) -> None:
        rig, (key,) = self.carried("one")
        rig.gateway.cancel(APP, key, rig.now)
        rig.crash()
        rig.run()
        assert rig.report(Confirmed()).message == key
        assert rig.state(key) is State.DELIVERED


class TestVariants:
    """A gateway may not speak everything."""

    def rig(self, *routes: Route) -> Rig:
        rig = Rig()
        rig.identity = Identity(open_house=True, variants=frozenset({Variant.WSP}))
        rig.crash()
        rig.add("phone", *routes)
        return rig

    def test_a_route_that_is_not_served_is_not_taken(self) -> None:
        rig = self.rig(SESSION, UDP)
        rig.publish(to("phone"))
        rig.run()
        assert rig.carries[0].parcel.route == UDP
        rig.report(NotReached("no network"))
        rig.pass_time(FIRST_PAUSE)
        assert rig.report(Sent()).parcel.route == UDP

    def test_without_any_the_push_fails_at_once(self) -> None:
        rig = self.rig(SESSION)
        (key,) = rig.publish(to("phone"))
        rig.run()
        assert (rig.state(key), rig.row(key).code) == (State.UNDELIVERABLE, 3003)


class TestComingBack:
    """A device that can be reached again is not kept waiting for the end of a pause."""

    def rig_with_a_failed_push(self, *routes: Route) -> tuple[Rig, int]:
        rig = Rig()
        rig.add("phone", *routes)
        (key,) = rig.publish(to("phone"))
        rig.run()
        rig.report(NotReached("no session"))
        assert rig.carries == []
        return rig, key

    def test_by_opening_a_session(self) -> None:
        rig, key = self.rig_with_a_failed_push(SESSION)
        rig.gateway.air.reachable_at("192.0.2.7", rig.now)
        rig.run()
        assert rig.carries == []
        rig.gateway.air.reachable_at("192.0.2.1", rig.now)
        rig.run()
        rig.report(Confirmed())
        assert rig.state(key) is State.DELIVERED
        rig.pass_time(DAY)
        assert rig.carries == []

    def test_by_connecting(self) -> None:
        rig = Rig()
        rig.lose(rig.connect())
        rig.gateway.admin.amend(APP, "phone", rig.now, routes=[SESSION])
        rig.publish(to("phone", b"by hop"))
        rig.run()
        rig.report(NotReached("no session"))
        assert rig.bodies(rig.resume()) == [b"by hop"]

    def test_by_another_route(self) -> None:
        rig, _ = self.rig_with_a_failed_push(SESSION)
        rig.gateway.admin.amend(APP, "phone", rig.now, routes=[UDP])
        rig.run()
        assert rig.report(Sent()).parcel.route == UDP
        assert rig.gateway.air.hosts.at("192.0.2.1") != []
        rig.gateway.admin.remove(APP, "phone", rig.now)
        assert rig.gateway.air.hosts.at("192.0.2.1") == []

    def test_what_waits_for_its_time_goes_on_waiting(self) -> None:
        rig, _ = self.rig_with_a_failed_push(SESSION)
        rig.publish(to("phone", b"later", deliver_after=rig.now + SECOND))
        rig.gateway.air.reachable_at("192.0.2.1", rig.now)
        rig.run()
        assert len(rig.carries) == 1


class TestCrash:
    def test_what_was_with_a_carrier_is_carried_again(self, rig: Rig) -> None:
        rig.add("phone", SESSION)
        (key,) = rig.publish(to("phone", method=DeliveryMethod.CONFIRMED))
        rig.run()
        rig.crash()
        rig.run()
        assert rig.report(Confirmed()).message == key
        assert rig.state(key) is State.DELIVERED
        assert "requeued" in rig.story(key)

    def test_best_effort_is_not(self, rig: Rig) -> None:
        rig.add("phone", UDP)
        (key,) = rig.publish(to("phone", reliability=Reliability.BEST_EFFORT))
        rig.run()
        rig.crash()
        rig.run()
        assert rig.carries == []
        assert rig.state(key) is State.SENT

    def test_a_pending_push_leaves_after_the_restart(self, rig: Rig) -> None:
        rig.add("phone", UDP)
        rig.publish(to("phone"))
        rig.settle()
        rig.take()
        rig.store.apply(rig.in_flight.pop())
        rig.crash()
        rig.run()
        assert len(rig.carries) == 1

    def test_attempts_and_routes_outlive_it(self, rig: Rig) -> None:
        rig.add("phone", SESSION)
        (key,) = rig.publish(to("phone"))
        rig.run()
        rig.report(Unanswered("no response"))
        rig.crash()
        rig.run()
        rig.report(Unanswered("no response"))
        rig.pass_time(DAY)
        rig.report(Unanswered("no response"))
        assert rig.state(key) is State.TIMED_OUT


@pytest.mark.conformance("PPG-GEN-S-008")
class TestQualityOverSeveralLinks:
    """What a publisher requires of the link holds for each of them, not for the newest."""

    WIFI = Quality(bearer="wifi", bearer_required=True)
    HOME = Quality(network="home", network_required=True)

    @pytest.fixture(params=[False, True], ids=["plain", "with preferences"])
    def channels(self, rig: Rig, request: pytest.FixtureRequest) -> tuple[int, int]:
        wifi = rig.connect(link="wifi", network="home")
        mno = rig.join(link="mno", network="operator")
        if request.param:
            cheap = Link("mno", Tariff(), latency=1)
            dear = Link("wifi", Tariff(per_unit=1000), latency=SECOND // 4)
            rig.gateway.preferences.prefer(APP, "phone", Preferences(links=(cheap, dear)), rig.now)
            rig.run()
        return wifi, mno

    @pytest.mark.parametrize("quality", [WIFI, HOME], ids=["bearer", "network"])
    def test_the_one_that_fits_carries_it(
        self, rig: Rig, channels: tuple[int, int], quality: Quality
    ) -> None:
        wifi, mno = channels
        rig.publish(to("phone", b"required", quality=quality), to("phone", b"any"))
        rig.run()
        assert (rig.bodies(wifi), rig.bodies(mno)) == ([b"required"], [b"any"])

    def test_it_is_not_repeated_over_another(self, rig: Rig, channels: tuple[int, int]) -> None:
        wifi, mno = channels
        rig.publish(to("phone", b"required", quality=self.WIFI))
        rig.run()
        rig.pass_time(20 * SECOND)
        assert rig.bodies(mno) == []
        assert len(rig.bodies(wifi)) > 1

    def test_a_large_body_goes_over_it_as_well(self, rig: Rig) -> None:
        streams = int(ALL_FEATURES)
        wifi = rig.connect(link="wifi", features=streams)
        mno = rig.join(link="mno", features=streams)
        cheap = Link("mno", Tariff(), latency=1)
        rig.gateway.preferences.prefer(APP, "phone", Preferences(links=(cheap,)), rig.now)
        rig.publish(to("phone", bytes(90_000), quality=self.WIFI))
        rig.run()
        assert [f for f in rig.sent[mno] if isinstance(f, Piece)] == []
        assert [f for f in rig.sent[wifi] if isinstance(f, Piece)] != []

    def test_without_one_it_fails(self, rig: Rig, channels: tuple[int, int]) -> None:
        (key,) = rig.publish(to("phone", quality=Quality(bearer="GPRS", bearer_required=True)))
        rig.run()
        assert rig.row(key).code == 3010


class TestQuietHours:
    """What a device says of the time holds over the air as well."""

    NOW = START % DAY // MINUTE
    NIGHT = QuietHours("UTC", start=NOW - 1, end=NOW + 59, override=5.0)

    @pytest.fixture(autouse=True)
    def asleep(self, rig: Rig) -> None:
        rig.add("phone", UDP)
        rig.gateway.preferences.prefer(APP, "phone", Preferences(quiet=(self.NIGHT,)), rig.now)
        rig.run()

    def bodies(self, rig: Rig) -> list[bytes]:
        return [carry.parcel.body for carry in rig.carries]

    def test_they_hold_and_then_let_go_in_order(self, rig: Rig) -> None:
        keys = rig.publish(to("phone", b"a"), to("phone", b"b"), to("phone", b"now", rank=7.0))
        rig.run()
        assert self.bodies(rig) == [b"now"]
        assert rig.story(keys[0]) == ["accepted", "held"]
        rig.pass_time(HOUR)
        assert self.bodies(rig) == [b"now", b"a", b"b"]

    def test_they_hold_across_a_restart(self, rig: Rig) -> None:
        rig.publish(to("phone", b"a"))
        rig.run()
        rig.crash()
        rig.run()
        assert rig.carries == []
        rig.pass_time(HOUR)
        assert self.bodies(rig) == [b"a"]

    def test_other_wishes_let_go_at_once_and_only_once(self, rig: Rig) -> None:
        rig.publish(to("phone", b"a"))
        rig.run()
        rig.gateway.preferences.prefer(APP, "phone", Preferences(), rig.now)
        rig.run()
        assert self.bodies(rig) == [b"a"]
        rig.report(Sent())
        rig.pass_time(HOUR)
        assert rig.carries == []
        assert rig.states() == {State.SENT: 1}

    def test_what_is_held_can_be_cancelled(self, rig: Rig) -> None:
        (key,) = rig.publish(to("phone", b"a"))
        rig.run()
        rig.gateway.cancel(APP, key, rig.now)
        rig.run()
        rig.gateway.preferences.prefer(APP, "phone", Preferences(), rig.now)
        rig.pass_time(HOUR)
        assert rig.carries == []
        assert rig.state(key) is State.CANCELLED

    def test_they_hold_for_what_is_diverted_to_a_route(self, rig: Rig) -> None:
        rig.gateway.admin.amend(APP, "phone", rig.now, token_hash=b"")
        channel = rig.connect(link="wifi")
        required = Quality(bearer="packet data", bearer_required=True)
        rig.publish(to("phone", b"a", quality=required))
        rig.run()
        assert rig.carries == []
        rig.pass_time(HOUR)
        assert (rig.bodies(channel), self.bodies(rig)) == ([], [b"a"])

    def test_a_device_that_comes_into_contact_is_left_alone_too(self, rig: Rig) -> None:
        rig.gateway.admin.amend(APP, "phone", rig.now, token_hash=b"")
        rig.publish(to("phone", b"a"))
        rig.run()
        channel = rig.connect()
        assert rig.bodies(channel) == []
        rig.pass_time(HOUR)
        assert (rig.bodies(channel), rig.carries) == ([b"a"], [])
