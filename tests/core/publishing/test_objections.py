"""What can never be met is refused when it comes, with a smallest set that is to blame."""

from __future__ import annotations

from typing import Any

import pytest

from lasthop.clock import DAY, HOUR, MINUTE, Micros
from lasthop.core.lifecycle import State
from lasthop.core.registry import DeviceRecord
from lasthop.decision.choice import QueueTerms
from lasthop.decision.constraints import QuietHours
from lasthop.decision.localtime import Period
from lasthop.decision.preferences import Cap, DigestTimes, Preferences
from lasthop.decision.routes import Route, Variant
from lasthop.errors import Contradiction, Expired, InvalidRequest, LinkContradiction
from lasthop.message import Binding, Quality
from lasthop.wire.hop.frames import ERROR_TYPE, Headers, MessageFrame
from tests.core.pushes.initiator import Initiator, user
from tests.core.rig import APP, START, Rig, to

NOW = START % DAY // MINUTE
"""Minutes since midnight UTC."""
NIGHT = QuietHours("UTC", start=NOW - 1, end=NOW + 59, override=5.0)
QUIET = Preferences(quiet=(NIGHT,))
SOON: Micros = 10 * MINUTE


@pytest.fixture
def rig() -> Rig:
    return Rig()


def add(rig: Rig, name: str, preferences: Preferences | None = None, **fields: Any) -> None:
    rig.gateway.admin.register(APP, name, DeviceRecord(**fields), rig.now)
    if preferences is not None:
        rig.gateway.preferences.prefer(APP, name, preferences, rig.now)
    rig.run()


def conflict(refused: pytest.ExceptionInfo[Contradiction]) -> tuple[str, ...]:
    return refused.value.conflict


def reasons(rig: Rig, kind: str) -> list[str]:
    return [event["reason"] for event in rig.events() if event["kind"] == kind]


class TestOneDevice:
    def test_quiet_hours_past_the_deadline(self, rig: Rig) -> None:
        add(rig, "phone", QUIET)
        with pytest.raises(Contradiction, match="no moment satisfies all constraints") as refused:
            rig.publish(to("phone", deliver_before=rig.now + SOON))
        assert conflict(refused) == ("deliver_before", NIGHT.name)
        assert refused.value.fields["device"] == "phone"
        rig.run()
        assert rig.store.counts().messages == 0
        assert "accepted" not in {event["kind"] for event in rig.events()}
        # Each of the two alone can be met.
        rig.publish(to("phone"), to("phone", rank=7.0, deliver_before=rig.now + SOON))

    def test_quiet_hours_past_the_tolerated_delay(self, rig: Rig) -> None:
        add(rig, "phone", QUIET)
        with pytest.raises(Contradiction) as refused:
            rig.publish(to("phone", delay_tolerance=SOON, deliver_before=rig.now + DAY))
        assert conflict(refused) == ("delay tolerance", NIGHT.name)

    def test_a_cap_that_is_used_up_until_after_the_deadline(self, rig: Rig) -> None:
        add(rig, "phone", Preferences(caps=(Cap(1, Period.DAY),)))
        channel = rig.connect()
        rig.publish(to("phone", b"a", deliver_before=rig.now + HOUR))
        rig.run()
        assert rig.bodies(channel) == [b"a"]
        with pytest.raises(Contradiction) as refused:
            rig.publish(to("phone", deliver_before=rig.now + HOUR))
        assert conflict(refused) == ("deliver_before", "at most 1 per day")
        rig.publish(to("phone", deliver_before=rig.now + 2 * DAY))

    def test_a_cap_of_another_queue_is_none_of_its_business(self, rig: Rig) -> None:
        add(rig, "phone", Preferences(caps=(Cap(1, Period.DAY, queues=("offers",)),)))
        rig.connect()
        rig.publish(to("phone", queue="offers"))
        rig.run()
        rig.publish(to("phone", deliver_before=rig.now + HOUR))
        with pytest.raises(Contradiction):
            rig.publish(to("phone", queue="offers", deliver_before=rig.now + HOUR))

    def test_a_digest_is_the_first_one_after_deliver_after(self, rig: Rig) -> None:
        add(rig, "phone", Preferences(digests=(DigestTimes((NOW + 30,)),)))
        after = rig.now + HOUR
        with pytest.raises(Contradiction) as refused:
            rig.publish(to("phone", deliver_after=after, deliver_before=after + HOUR))
        (deadline, digest) = conflict(refused)
        assert (deadline, digest.split(" at ")[0]) == ("deliver_before", "digest")

    def test_one_of_a_batch_is_named_and_none_is_stored(self, rig: Rig) -> None:
        add(rig, "phone", QUIET)
        add(rig, "watch")
        with pytest.raises(Contradiction) as refused:
            rig.publish(to("watch"), to("phone", deliver_before=rig.now + SOON))
        assert refused.value.fields["item"] == 1
        rig.run()
        assert rig.store.counts().messages == 0

    def test_a_replacement_that_can_never_come_leaves_the_old_one(self, rig: Rig) -> None:
        add(rig, "phone", QUIET)
        (key,) = rig.publish(to("phone"))
        rig.run()
        with pytest.raises(Contradiction):
            rig.gateway.replace(
                APP, key, "publisher:shop", to("phone", deliver_before=rig.now + SOON), rig.now
            )
        rig.run()
        assert rig.state(key) is State.PENDING

    def test_other_wishes_make_it_possible(self, rig: Rig) -> None:
        add(rig, "phone", QUIET)
        rig.gateway.preferences.prefer(APP, "phone", Preferences(), rig.now)
        rig.publish(to("phone", deliver_before=rig.now + SOON))
        rig.gateway.preferences.prefer(APP, "phone", QUIET, rig.now)
        rig.run()
        rig.crash()
        with pytest.raises(Contradiction):
            rig.publish(to("phone", deliver_before=rig.now + SOON))

    def test_what_contradicts_itself_is_said_more_simply(self, rig: Rig) -> None:
        add(rig, "phone", QUIET)
        with pytest.raises(Expired):
            rig.publish(to("phone", deliver_before=rig.now))
        after = rig.now + HOUR
        with pytest.raises(InvalidRequest, match="deliver_after must come before"):
            rig.publish(to("phone", deliver_after=after, deliver_before=after))

    def test_a_device_is_told_what_it_asked_of_another(self, rig: Rig) -> None:
        add(rig, "phone", QUIET)
        channel = rig.connect("watch")
        headers = Headers(to="device:phone", deliver_within=60_000)
        rig.hear(channel, MessageFrame(0, None, None, headers, b"hi"))
        (answer,) = rig.messages(channel)
        assert answer.headers is not None
        assert answer.headers.content_type == ERROR_TYPE
        assert b'"contradiction"' in answer.body
        assert NIGHT.name.encode() in answer.body


class TestLinks:
    WIFI_ONLY = Preferences(queues=(QueueTerms("", links=("wifi", "lan")),))
    SMS = Quality(bearer="SMS", bearer_required=True)

    def test_a_required_bearer_that_the_queue_may_not_use(self, rig: Rig) -> None:
        add(rig, "phone", self.WIFI_ONLY)
        with pytest.raises(LinkContradiction, match="no link satisfies") as refused:
            rig.publish(to("phone", quality=self.SMS))
        assert conflict(refused) == ("required bearer SMS", "queue '' only over wifi, lan")
        assert refused.value.pap_code == 3010

    @pytest.mark.parametrize(
        "quality",
        [
            Quality(bearer="SMS"),
            Quality(bearer="WiFi", bearer_required=True),
            Quality(bearer="Any", bearer_required=True),
            Quality(network="GSM", network_required=True),
        ],
    )
    def test_anything_that_may_come_about_is_waited_for(self, rig: Rig, quality: Quality) -> None:
        add(rig, "phone", self.WIFI_ONLY)
        (key,) = rig.publish(to("phone", quality=quality))
        rig.run()
        assert rig.state(key) is State.PENDING

    def test_a_route_over_the_air_will_do(self, rig: Rig) -> None:
        by_sms = Route(Variant.WSP, "10.0.0.1", bearer="SMS")
        add(rig, "phone", self.WIFI_ONLY, routes=[by_sms])
        rig.publish(to("phone", quality=self.SMS))
        rig.run()
        assert [carry.parcel.route for carry in rig.carries] == [by_sms]


class TestMany:
    def test_a_user_is_refused_what_none_of_the_devices_can_have(self, rig: Rig) -> None:
        add(rig, "phone", QUIET, user="alice")
        add(rig, "tablet", QUIET, user="alice")
        with pytest.raises(Contradiction) as refused:
            rig.publish(to("user:alice", deliver_before=rig.now + SOON))
        assert conflict(refused) == ("deliver_before", NIGHT.name)
        add(rig, "watch", user="alice")
        (key,) = rig.publish(to("user:alice", deliver_before=rig.now + SOON))
        rig.run()
        states = {row.device: State(row.state) for row in rig.store.deliveries(key)}
        assert states == {1: State.SUPPRESSED, 2: State.SUPPRESSED, 3: State.PENDING}

    def test_a_topic_is_for_whoever_can_have_it(self, rig: Rig) -> None:
        add(rig, "phone", QUIET)
        add(rig, "watch")
        for name in ("phone", "watch"):
            rig.gateway.topics.subscribe(APP, name, "news", rig.now)
        (key,) = rig.publish(to("topic:news", deliver_before=rig.now + SOON))
        rig.run()
        # The phone is not even there: it is known all the same.
        states = {row.device: State(row.state) for row in rig.store.deliveries(key)}
        assert states == {1: State.SUPPRESSED, 2: State.PENDING}
        assert reasons(rig, "suppressed") == [f"no moment satisfies: deliver_before; {NIGHT.name}"]

    def test_an_atomic_message_is_refused_if_one_member_can_never_have_it(self, rig: Rig) -> None:
        for name, preferences in (("phone", QUIET), ("watch", None)):
            add(rig, name, preferences, memberships=["group:crew"])
        deadline = rig.now + SOON
        with pytest.raises(Contradiction) as refused:
            rig.publish(to("group:crew", deliver_before=deadline, binding=Binding.ATOMIC))
        assert refused.value.fields["device"] == "phone"
        (key,) = rig.publish(to("group:crew", deliver_before=deadline))
        rig.run()
        states = {row.device: State(row.state) for row in rig.store.deliveries(key)}
        assert states == {1: State.SUPPRESSED, 2: State.PENDING}


class TestPushes:
    @pytest.fixture
    def initiator(self, rig: Rig) -> Initiator:
        add(rig, "phone", QUIET, user="alice")
        add(rig, "watch", user="bob")
        return Initiator(rig)

    def test_a_push_to_somebody_who_cannot_have_it_is_refused(
        self, rig: Rig, initiator: Initiator
    ) -> None:
        with pytest.raises(Contradiction) as refused:
            initiator.push("1", user("alice"), deliver_before=rig.now + SOON)
        assert refused.value.pap_code == 3003
        assert rig.store.counts().messages == 0
        initiator.push("1", user("alice"))

    def test_one_address_among_several_is_reported_by_itself(
        self, rig: Rig, initiator: Initiator
    ) -> None:
        initiator.push("1", user("alice"), user("bob"), deliver_before=rig.now + SOON)
        reports = initiator.reports("1")
        assert (reports[user("alice")].state, reports[user("alice")].code) == ("rejected", 3003)
        assert reports[user("bob")].state == "pending"

    def test_what_came_too_late_is_said_more_simply(self, rig: Rig, initiator: Initiator) -> None:
        with pytest.raises(Expired):
            initiator.push("1", user("alice"), deliver_before=rig.now)
