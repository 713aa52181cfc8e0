"""What pushes over the air cost: reserved before they leave, counted as their carriers say, and
within the limits and caps of the device and of all devices.

About `core/air/spending.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest
from hypothesis import given, settings, strategies as st

from lasthop.clock import DAY, HOUR, SECOND
from lasthop.core.air.feature import FIRST_PAUSE
from lasthop.core.gateway import Identity
from lasthop.core.lifecycle import State
from lasthop.core.preferences.feature import preferences_of
from lasthop.core.publishing.acceptance import Withdrawal
from lasthop.decision.budgets import Budgets, Limit, Measure
from lasthop.decision.choice import QueueTerms
from lasthop.decision.links import Link, Tariff
from lasthop.decision.localtime import Period
from lasthop.decision.preferences import Cap, Preferences
from lasthop.decision.routes import Route, Variant
from lasthop.delivery.carrier import (
    Confirmed,
    NeedsMore,
    NotReached,
    Outcome,
    Sent,
    Spent,
    Unanswered,
    Unfit,
)
from tests.core.rig import APP, Rig, to

SMS = Link("sms", Tariff(per_unit=1_500, unit=140), latency=10 * SECOND)
TEXT = Route(Variant.WSP, "192.0.2.1", link=SMS)
DATA = Route(Variant.HTTP, "192.0.2.1", link=Link("mno", Tariff(), latency=SECOND))


def units(amount: int, link: str | None = "sms") -> Limit:
    return Limit(amount, Measure.UNITS, Period.DAY, link=link)


def limited(*limits: Limit, routes: tuple[Route, ...] = (TEXT,), **more: object) -> Rig:
    rig = Rig()
    rig.add("phone", *routes)
    rig.gateway.preferences.prefer(APP, "phone", Preferences(limits=limits, **more), rig.now)  # type: ignore[arg-type]
    rig.run()
    return rig


def budgets(rig: Rig) -> Budgets:
    found = preferences_of(rig.gateway.deliveries.named(APP, "phone"))
    assert found is not None
    return found.budgets


def used(rig: Rig) -> list[tuple[int, int]]:
    return [(meter.used, meter.held) for meter in budgets(rig).usage(rig.now)]


class TestLimits:
    def test_a_push_reserves_the_most_that_it_may_take_and_pays_what_it_took(self) -> None:
        rig = limited(units(6), Limit(9_000, Measure.MONEY, Period.DAY))
        (key,) = rig.publish(to("phone", b"x" * 100))
        rig.run()
        (carry,) = rig.carries
        assert carry.parcel.most is not None
        assert carry.parcel.most.units == 3, "with the protocol's overhead"
        assert used(rig) == [(0, 3), (0, 4_500)]
        rig.report(Sent(spent=Spent(120, 1)))
        assert used(rig) == [(1, 0), (1_500, 0)]
        (counted,) = [e for e in rig.events() if e["kind"] == "counted" and e["msg"] == key]
        facts = [counted[name] for name in ("link", "bytes", "count", "cost", "attempt")]
        assert facts == ["sms", 120, 1, 0.0015, 1]

    def test_a_push_that_a_limit_does_not_let_through_waits_for_the_next_period(self) -> None:
        rig = limited(units(4))
        keys = rig.publish(*[to("phone", b"x" * 100)] * 2)
        rig.run()
        assert len(rig.carries) == 1
        rig.report(Sent(spent=Spent(300, 3)))
        assert [rig.state(key) for key in keys] == [State.SENT, State.PENDING]
        assert rig.story(keys[1])[-1] == "held"
        rig.pass_time(DAY)
        rig.report(Sent(spent=Spent(300, 3)))
        assert rig.state(keys[1]) is State.SENT

    def test_what_was_reserved_in_vain_lets_the_next_one_leave(self) -> None:
        rig = limited(units(4))
        keys = rig.publish(*[to("phone", b"x" * 100)] * 2)
        rig.run()
        rig.report(Sent(spent=Spent(100, 1)))
        assert len(rig.carries) == 1, "three units are left"
        rig.report(Sent(spent=Spent(100, 1)))
        assert [rig.state(key) for key in keys] == [State.SENT] * 2
        assert used(rig) == [(2, 0)]
        assert rig.story(keys[1]).count("held") == 1

    def test_a_push_goes_by_the_route_whose_limit_has_room(self) -> None:
        rig = limited(units(2), routes=(TEXT, DATA))
        rig.publish(to("phone", b"x"))
        rig.run()
        assert rig.carries[0].parcel.route == DATA

    def test_a_queue_that_may_not_use_the_link_waits(self) -> None:
        rig = limited(queues=(QueueTerms("", links=("wifi",)),))
        rig.publish(to("phone", b"x"))
        rig.run()
        assert rig.carries == []
        assert "does not use sms" in rig.events()[-1]["reason"]

    def test_a_tariff_that_the_device_has_declared_counts(self) -> None:
        dear = Link("sms", Tariff(per_unit=20_000, unit=140))
        rig = limited(Limit(1_000_000, Measure.MONEY, Period.DAY), links=(dear,))
        rig.publish(to("phone", b"x"))
        rig.run()
        rig.report(Sent(spent=Spent(50, 1)))
        assert used(rig) == [(20_000, 0)]

    def test_the_price_of_the_provider_counts_more_than_any_tariff(self) -> None:
        rig = limited(Limit(1_000_000, Measure.MONEY, Period.DAY))
        rig.publish(to("phone", b"x"))
        rig.run()
        rig.report(Sent(spent=Spent(50, 1, money=7)))
        assert used(rig) == [(7, 0)]

    @pytest.mark.parametrize(
        "outcome, expected",
        [
            (NotReached("no session"), (0, 0)),
            (NotReached("no session", spent=Spent(90, 1)), (1, 0)),
            (Unanswered("no response"), (3, 0)),
            (Unfit(3006, "no"), (0, 0)),
            (Confirmed(spent=Spent(90, 2)), (2, 0)),
        ],
    )
    def test_each_outcome_is_paid_as_it_should_be(
        self, outcome: Outcome, expected: tuple[int, int]
    ) -> None:
        rig = limited(units(10))
        rig.publish(to("phone", b"x" * 100))
        rig.run()
        rig.report(outcome)
        assert used(rig) == [expected]

    def test_what_is_taken_back_costs_nothing(self) -> None:
        rig = limited(units(10), caps=(Cap(1, Period.DAY),))
        (key,) = rig.publish(to("phone", b"x"))
        rig.run()
        assert rig.gateway.cancel(APP, key, rig.now) == Withdrawal(1, 0)
        assert used(rig) == [(0, 0)]
        rig.publish(to("phone", b"y"))
        rig.run()
        assert len(rig.carries) == 1, "nor does it count towards caps"

    def test_caps_count_pushes_over_the_air(self) -> None:
        rig = limited(caps=(Cap(1, Period.DAY),))
        rig.publish(*[to("phone", b"x")] * 2)
        rig.run()
        assert len(rig.carries) == 1
        rig.report(Sent())
        assert rig.carries == []
        rig.pass_time(DAY)
        assert len(rig.carries) == 1

    def test_a_carrier_that_needs_more_gets_it_if_there_is_room(self) -> None:
        rig = limited(units(6))
        (key,) = rig.publish(to("phone", b"x"))
        rig.run()
        rig.report(NeedsMore(Spent(700, 5)))
        (carry,) = rig.carries
        assert carry.parcel.most is not None
        assert carry.parcel.most.units == 5
        rig.report(Sent(spent=Spent(700, 5)))
        assert rig.state(key) is State.SENT
        assert rig.row(key).attempts == 1
        assert used(rig) == [(5, 0)]

    def test_a_carrier_that_needs_more_than_there_is_waits(self) -> None:
        rig = limited(units(4))
        (key,) = rig.publish(to("phone", b"x"))
        rig.run()
        rig.report(NeedsMore(Spent(700, 5)))
        assert rig.carries == []
        assert rig.state(key) is State.PENDING
        rig.gateway.preferences.prefer(APP, "phone", Preferences(limits=(units(5),)), rig.now)
        rig.run()
        assert len(rig.carries) == 1

    def test_a_carrier_that_never_has_enough_is_tried_again_later(self) -> None:
        rig = limited(units(100))
        (key,) = rig.publish(to("phone", b"x"))
        rig.run()
        rig.report(NeedsMore(Spent(700, 5)))
        rig.report(NeedsMore(Spent(700, 5)))
        assert rig.carries == []
        assert rig.state(key) is State.PENDING
        rig.pass_time(FIRST_PAUSE)
        assert len(rig.carries) == 1

    def test_what_was_with_a_carrier_at_a_crash_counts_as_spent(self) -> None:
        rig = limited(units(4))
        (key,) = rig.publish(to("phone", b"x" * 100))
        rig.run()
        rig.crash()
        rig.run()
        assert used(rig) == [(3, 0)]
        assert rig.carries == [], "there is no room for another attempt"
        assert rig.state(key) is State.PENDING

    def test_a_device_that_is_removed_leaves_its_pushes_paid(self) -> None:
        rig = Rig()
        rig.identity = Identity(open_house=True, shared=(units(100),), zone="UTC")
        rig.crash()
        rig.add("phone", TEXT)
        rig.publish(to("phone", b"x" * 100))
        rig.run()
        shared = rig.gateway.preferences.shared
        assert shared is not None
        assert [(m.used, m.held) for m in shared.usage(rig.now)] == [(0, 3)]
        rig.gateway.admin.remove(APP, "phone", rig.now)
        rig.run()
        assert [(m.used, m.held) for m in shared.usage(rig.now)] == [(3, 0)]

    def test_limits_that_all_devices_share_hold_over_the_air(self) -> None:
        rig = Rig()
        rig.identity = Identity(open_house=True, shared=(units(4),), zone="UTC")
        rig.crash()
        for name in ("one", "two"):
            rig.add(name, TEXT)
            rig.publish(to(name, b"x" * 100))
        rig.run()
        assert len(rig.carries) == 1
        rig.crash()
        rig.run()
        assert rig.carries == [], "three of four are spent, also after a restart"

    def test_what_waits_for_a_limit_leaves_over_a_channel_that_opens(self) -> None:
        rig = Rig()
        rig.lose(rig.connect())
        rig.gateway.admin.amend(APP, "phone", rig.now, routes=[TEXT])
        rig.gateway.preferences.prefer(APP, "phone", Preferences(limits=(units(1),)), rig.now)
        rig.publish(to("phone", b"x" * 100))
        rig.run()
        assert rig.carries == []
        assert rig.bodies(rig.resume()) == [b"x" * 100]


class TestWithoutLimits:
    def test_what_costs_nothing_is_not_logged(self, rig: Rig) -> None:
        rig.add("phone", DATA)
        (key,) = rig.publish(to("phone"))
        rig.run()
        assert rig.carries[0].parcel.most is None
        rig.report(Sent(spent=Spent(200, 1)))
        assert "counted" not in rig.story(key)

    def test_what_costs_is_logged(self, rig: Rig) -> None:
        rig.add("phone", TEXT)
        (key,) = rig.publish(to("phone"))
        rig.run()
        rig.report(Sent(spent=Spent(200, 2)))
        assert rig.story(key) == ["accepted", "released", "transmitted", "counted", "sent"]


OUTCOMES = st.sampled_from(
    ["sent", "confirmed", "unanswered", "not reached", "more", "crash", "cancel", "later"]
)


@settings(max_examples=60, deadline=None)
@given(
    st.integers(1, 12),
    st.lists(st.tuples(st.integers(0, 400), OUTCOMES), min_size=1, max_size=16),
)
def test_no_order_of_events_spends_more_than_the_limit(
    most: int, script: list[tuple[int, str]]
) -> None:
    """A carrier that keeps to what was reserved never brings a limit to break."""
    rig = limited(units(most))
    spent_today: dict[int, int] = {}

    def spend(amount: int) -> Spent:
        day = rig.now // DAY
        spent_today[day] = spent_today.get(day, 0) + amount
        assert spent_today[day] <= most
        return Spent(amount * 140, amount)

    for size, verb in script:
        (key,) = rig.publish(to("phone", b"x" * size))
        rig.run()
        if verb == "later":
            rig.pass_time(7 * HOUR)
        elif verb == "cancel":
            rig.gateway.cancel(APP, key, rig.now)
            rig.run()
        elif rig.carries:
            reserved = rig.carries[0].parcel.most
            assert reserved is not None
            amount = 1 + size % reserved.units
            if verb == "crash":
                for carry in rig.carries:
                    assert carry.parcel.most is not None
                    spend(carry.parcel.most.units)
                rig.crash()
                rig.run()
            else:
                rig.report(reported(verb, reserved, partial(spend, amount)))


def reported(verb: str, reserved: Spent, spend: Callable[[], Spent]) -> Outcome:
    """What a carrier reports that keeps to what was reserved."""
    match verb:
        case "sent":
            return Sent(spent=spend())
        case "confirmed":
            return Confirmed(spent=spend())
        case "unanswered":
            return Unanswered("no response", spent=spend())
        case "more":
            return NeedsMore(Spent(140 * reserved.units + 1))
        case _:
            return NotReached("no session")
