"""Budgets hold, whatever is reserved, committed, refunded or restored, and in any order."""

from __future__ import annotations

from collections import defaultdict
from random import Random

import msgspec
import pytest
from hypothesis import given, settings, strategies as st

from lasthop.clock import DAY, HOUR, MINUTE
from lasthop.decision.budgets import (
    MAX_LIMITS,
    BudgetHold,
    BudgetRefusal,
    Budgets,
    BudgetState,
    Limit,
    Measure,
)
from lasthop.decision.links import Charge, Tariff
from lasthop.decision.localtime import Period, period_at, zone
from lasthop.errors import InvalidRequest, TooLarge
from tests.decision.worlds import LABELS, MONDAY, QUEUES, limits, random_limit

ZONES = ["UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe"]
LEAST = Charge(1, 1, 1, 0)


def covered(limit: Limit, queue: str, link: str) -> bool:
    return (not limit.queues or queue in limit.queues) and limit.link in (None, link)


class Book:
    """Counts for itself what was committed, per limit and period."""

    def __init__(self, every: list[Limit], zone_name: str) -> None:
        self._limits = every
        self._tz = zone(zone_name)
        self._spent: dict[tuple[int, int], int] = defaultdict(int)

    def spend(self, hold: BudgetHold, now: int) -> None:
        for index, limit in enumerate(self._limits):
            if covered(limit, hold.queue, hold.link):
                start, _ = period_at(now, limit.period, self._tz)
                self._spent[index, start] += getattr(hold.charge, limit.measure)

    def check(self) -> None:
        for (index, _), spent in self._spent.items():
            assert spent <= self._limits[index].amount


@settings(max_examples=1000, deadline=None)
@given(seed=st.integers(0, 2**32), name=st.sampled_from(ZONES))
def test_no_schedule_breaks_a_limit(seed: int, name: str) -> None:
    random = Random(seed)
    own = [random_limit(random) for _ in range(random.randrange(6))]
    common = [random_limit(random) for _ in range(random.randrange(3))]
    shared = Budgets(common, zone_name="UTC")
    devices = [Budgets(own, zone_name=name, shared=shared) for _ in range(2)]
    ledger = [Book(own, name) for _ in devices]
    everything = Book(common, "UTC")
    open_holds: list[list[BudgetHold]] = [[], []]
    # Around a night in which New York and, a week earlier, Berlin change their clocks.
    now = MONDAY + random.randrange(60, 320) * DAY
    for _ in range(80):
        now += random.choice([0, MINUTE, HOUR, 9 * HOUR])
        who = random.randrange(2)
        device, holds = devices[who], open_holds[who]
        match random.randrange(5):
            case 0 | 1 | 2:
                charge = Charge(
                    random.randrange(3000),
                    1,
                    random.randrange(1, 5),
                    random.choice([0, random.randrange(6000)]),
                )
                queue, link = random.choice([*QUEUES, "other", ""]), random.choice(LABELS)
                expected = device.refusal(charge, queue=queue, link=link, now=now)
                answer = device.reserve(charge, queue=queue, link=link, now=now)
                assert (expected is None) == isinstance(answer, BudgetHold)
                if isinstance(answer, BudgetHold):
                    holds.append(answer)
            case 3 if holds:
                hold = holds.pop(random.randrange(len(holds)))
                if random.random() < 0.7:
                    assert device.commit(hold.number, now=now)
                    ledger[who].spend(hold, now)
                    everything.spend(hold, now)
                else:
                    assert device.refund(hold.number, now=now)
                assert not device.commit(hold.number, now=now)
                assert not device.refund(hold.number, now=now)
            case 4 if random.random() < 0.3:
                devices[who] = _through_storage(device, shared)
        for book in (*ledger, everything):
            book.check()
        for budgets in (*devices, shared):
            for meter in budgets.snapshot().meters:
                assert meter.used >= 0
                assert meter.held >= 0
                assert meter.used + meter.held <= meter.limit.amount


def _through_storage(budgets: Budgets, shared: Budgets) -> Budgets:
    stored = msgspec.msgpack.encode(budgets.snapshot())
    restored = Budgets.restore(msgspec.msgpack.decode(stored, type=BudgetState), shared=shared)
    assert restored.outstanding() == budgets.outstanding()
    assert restored.snapshot() == budgets.snapshot()
    return restored


def messages(amount: int, period: Period = Period.DAY, **scope: object) -> Limit:
    return Limit(amount, Measure.MESSAGES, period, **scope)  # type: ignore[arg-type]


def test_what_fits_again_when_a_reservation_is_refunded() -> None:
    budgets = limits(messages(1))
    first = budgets.reserve(LEAST, queue="", link="wifi", now=MONDAY)
    assert isinstance(first, BudgetHold)
    refused = budgets.reserve(LEAST, queue="", link="wifi", now=MONDAY)
    assert isinstance(refused, BudgetRefusal)
    assert refused.until == MONDAY + DAY
    assert str(refused.reason("wifi")) == (
        "wifi: 1 of 1 messages per day used, 1 more would break it; it ends 2026-01-06T00:00:00Z"
    )
    budgets.refund(first.number, now=MONDAY)
    assert isinstance(budgets.reserve(LEAST, queue="", link="wifi", now=MONDAY), BudgetHold)


def test_a_reservation_is_spent_in_the_period_in_which_it_is_committed() -> None:
    budgets = limits(messages(1))
    hold = budgets.reserve(LEAST, queue="", link="wifi", now=MONDAY + DAY - 1)
    assert isinstance(hold, BudgetHold)
    tuesday = MONDAY + DAY
    assert budgets.refusal(LEAST, queue="", link="wifi", now=tuesday) is not None
    budgets.commit(hold.number, now=tuesday)
    assert budgets.refusal(LEAST, queue="", link="wifi", now=tuesday + HOUR) is not None
    assert budgets.refusal(LEAST, queue="", link="wifi", now=tuesday + DAY) is None


def test_a_clock_that_jumps_back_gives_nothing_away() -> None:
    budgets = limits(messages(1))
    hold = budgets.reserve(LEAST, queue="", link="wifi", now=MONDAY + DAY)
    assert isinstance(hold, BudgetHold)
    budgets.commit(hold.number, now=MONDAY + DAY)
    assert budgets.refusal(LEAST, queue="", link="wifi", now=MONDAY) is not None


def test_days_are_those_of_the_device() -> None:
    tokyo = limits(messages(1), zone="Asia/Tokyo")
    refused_until = []
    for _ in range(2):
        answer = tokyo.reserve(LEAST, queue="", link="wifi", now=MONDAY)
        if isinstance(answer, BudgetRefusal):
            refused_until.append(answer.until)
    assert refused_until == [MONDAY + 15 * HOUR]


def test_queues_and_links_have_their_own_limits_and_share_others() -> None:
    budgets = limits(
        messages(1, queues=("news",)),
        messages(2, link="sms"),
        messages(3, queues=("news", "mail")),
        messages(4),
    )

    def send(queue: str, link: str) -> str | None:
        answer = budgets.reserve(LEAST, queue=queue, link=link, now=MONDAY)
        return str(answer.limit) if isinstance(answer, BudgetRefusal) else None

    assert send("news", "wifi") is None
    assert send("news", "wifi") == "1 messages per day of news"
    assert send("mail", "sms") is None
    assert send("mail", "sms") is None
    assert send("mail", "sms") == "2 messages per day over sms"
    assert send("mail", "wifi") == "3 messages per day of news+mail"
    assert send("urgent", "wifi") is None
    assert send("urgent", "wifi") == "4 messages per day"


def test_the_longest_of_several_refusals_says_when_to_come_back() -> None:
    budgets = limits(messages(1), messages(1, Period.WEEK))
    budgets.reserve(LEAST, queue="", link="wifi", now=MONDAY)
    refusal = budgets.refusal(LEAST, queue="", link="wifi", now=MONDAY)
    assert refusal is not None
    assert refusal.until == MONDAY + 7 * DAY


def test_what_is_more_than_the_whole_limit_is_told_that_waiting_is_vain() -> None:
    budgets = limits(Limit(100, Measure.BYTES, Period.DAY))
    refusal = budgets.refusal(Charge(101, 1, 1, 0), queue="", link="wifi", now=MONDAY)
    assert refusal is not None
    assert refusal.until is None
    assert str(refusal.reason("wifi")) == "wifi: 101 is more than all of 100 bytes per day"


def test_a_link_that_reaches_its_limit_stays_closed_until_the_period_ends() -> None:
    budgets = limits(messages(1, link="sms"), messages(1, queues=("news",), link="wifi"))
    hold = budgets.reserve(LEAST, queue="news", link="sms", now=MONDAY)
    assert isinstance(hold, BudgetHold)
    assert budgets.closure("sms", tariff=Tariff(), now=MONDAY) is None, "it may yet be refunded"
    budgets.commit(hold.number, now=MONDAY)
    closure = budgets.closure("sms", tariff=Tariff(), now=MONDAY + HOUR)
    assert closure is not None
    assert str(closure.reason()) == (
        "sms has reached 1 messages per day over sms and stays closed until 2026-01-06T00:00:00Z"
    )
    assert budgets.closure("sms", tariff=Tariff(), now=closure.until - 1) == closure
    assert budgets.closure("sms", tariff=Tariff(), now=closure.until) is None


def test_a_limit_of_one_queue_closes_no_link() -> None:
    budgets = limits(messages(0, queues=("news",), link="wifi"), messages(0))
    assert budgets.closure("wifi", tariff=Tariff(), now=MONDAY) is None


def test_a_shared_limit_counts_all_devices_and_refunds_to_all() -> None:
    shared = limits(messages(2, link="sms"))
    one, other = (Budgets((), zone_name="UTC", shared=shared) for _ in range(2))
    holds = [d.reserve(LEAST, queue="", link="sms", now=MONDAY) for d in (one, other)]
    assert all(isinstance(hold, BudgetHold) for hold in holds)
    assert one.refusal(LEAST, queue="", link="sms", now=MONDAY) is not None
    assert isinstance(holds[1], BudgetHold)
    other.refund(holds[1].number, now=MONDAY)
    assert one.refusal(LEAST, queue="", link="sms", now=MONDAY) is None
    closed = limits(messages(0, link="sms"))
    assert Budgets((), zone_name="UTC", shared=closed).closure("sms", tariff=Tariff(), now=MONDAY)


def test_a_changed_amount_keeps_what_was_used() -> None:
    budgets = limits(messages(5))
    holds = [budgets.reserve(LEAST, queue="", link="wifi", now=MONDAY) for _ in range(3)]
    assert isinstance(holds[0], BudgetHold)
    budgets.commit(holds[0].number, now=MONDAY)
    budgets.change([messages(3), messages(2, link="wifi")])
    first, second = budgets.snapshot().meters
    assert (first.used, first.held) == (1, 2)
    assert (second.used, second.held) == (0, 2), "a new limit still owes what is reserved"
    assert budgets.refusal(LEAST, queue="", link="sms", now=MONDAY) is not None


def test_unknown_names_do_not_make_the_index_grow() -> None:
    budgets = limits(messages(1, queues=("news",)), messages(1, link="sms"))
    for number in range(100):
        budgets.refusal(LEAST, queue=f"q{number}", link=f"l{number}", now=MONDAY)
    assert len(budgets._applying) == 1


def test_limits_that_mean_nothing_are_refused() -> None:
    with pytest.raises(InvalidRequest, match="limit cannot be negative"):
        messages(-1)
    with pytest.raises(InvalidRequest, match="must not be empty"):
        messages(1, queues=("",))
    with pytest.raises(InvalidRequest, match="must not be empty"):
        messages(1, link="")
    with pytest.raises(InvalidRequest, match="no such time zone"):
        limits(messages(1), zone="Moon/Base")
    with pytest.raises(TooLarge, match="too many limits"):
        limits(*[messages(1)] * (MAX_LIMITS + 1))
    with pytest.raises(TooLarge, match="too many limits"):
        limits().change([messages(1)] * (MAX_LIMITS + 1))
