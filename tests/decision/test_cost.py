"""The cost function: the thesis's own example, and the cases that its logarithms cannot take."""

from __future__ import annotations

from math import inf, isfinite, nan

import pytest
from hypothesis import given, strategies as st

from lasthop.clock import SECOND
from lasthop.decision.cost import Weights, cost, difference, terms
from lasthop.decision.links import Charge, Link, Tariff
from lasthop.errors import InvalidRequest
from tests.decision.worlds import BLUETOOTH, MNO, SMS, WIFI

CHEAPEST = Weights(1, 0, 0, 0)


def test_the_worked_example_gives_what_is_printed_if_one_short_message_is_paid() -> None:
    one_paid = Link("sms", Tariff(per_unit=1_500), energy=600, latency=10 * SECOND, coverage=1000)
    assert difference(one_paid, MNO, size=512) == pytest.approx(2.13, abs=0.005)


def test_the_worked_example_with_the_price_of_all_four_short_messages() -> None:
    assert SMS.tariff.charge(512) == Charge(bytes=512, messages=1, units=4, money=6_000)
    assert MNO.tariff.price(512) == pytest.approx(2.384, abs=0.001)
    assert difference(SMS, MNO, size=512) == pytest.approx(2.48, abs=0.005)
    assert difference(MNO, SMS, size=512) == -difference(SMS, MNO, size=512)


def test_equal_weights_prefer_the_free_links_as_in_the_evaluation() -> None:
    ranked = sorted([SMS, MNO, WIFI], key=lambda link: cost(link, 512))
    assert [link.label for link in ranked] == ["wifi", "mno", "sms"]


@given(
    size=st.integers(0, 10**9),
    per_unit=st.integers(0, 10**9),
    per_volume=st.integers(0, 10**9),
    volume=st.integers(1, 10**12),
)
def test_on_price_alone_a_free_link_beats_any_other(
    size: int, per_unit: int, per_volume: int, volume: int
) -> None:
    paid = Tariff(per_unit=per_unit, per_volume=per_volume, volume=volume)
    if not paid.free:
        assert cost(Link("free", Tariff()), size, CHEAPEST) < cost(
            Link("paid", paid), size, CHEAPEST
        )


def test_other_weights_can_outvote_a_free_link() -> None:
    slow = Link("slow", Tariff(), energy=1000, latency=60 * SECOND, coverage=100)
    hasty = Weights(0.1, 0, 0.9, 0)
    assert cost(MNO, 512, hasty) < cost(slow, 512, hasty)


properties = st.none() | st.integers(0, 10**12)


@given(energy=properties, latency=properties, coverage=properties, size=st.integers(0, 10**12))
def test_a_cost_is_always_a_number(
    energy: int | None, latency: int | None, coverage: int | None, size: int
) -> None:
    link = Link("any", Tariff(), energy=energy, latency=latency, coverage=coverage)
    assert isfinite(cost(link, size))


def test_what_is_unknown_counts_as_the_worst_that_is_known() -> None:
    unknown = Link("new", Tariff())
    slowest = Link("new", Tariff(), energy=1500, latency=10 * SECOND, coverage=10)
    assert terms(unknown, 1, Weights()) == terms(slowest, 1, Weights())
    assert cost(BLUETOOTH, 1) < cost(unknown, 1)


def test_contention_makes_a_link_slower_and_dearer() -> None:
    contended = WIFI.measured(latency=None, contention=4.0)
    assert contended.transit(0) == 4 * WIFI.transit(0)
    assert difference(contended, WIFI, size=0, weights=Weights(0, 0, 1, 0)) > 1.38


def test_a_large_message_takes_the_time_of_its_bytes() -> None:
    narrow = Link("gprs", Tariff(), latency=SECOND, throughput=10_000)
    assert narrow.transit(50_000) == 6 * SECOND


@given(sizes=st.lists(st.integers(0, 10**6), max_size=20), price=st.integers(0, 10**6))
def test_money_is_never_booked_below_the_price(sizes: list[int], price: int) -> None:
    tariff = Tariff(per_unit=3, unit=140, per_volume=price, volume=1 << 20)
    for size in sizes:
        assert tariff.price(size) <= tariff.charge(size).money + 1e-6
        assert tariff.charge(size).money < tariff.price(size) + 1


@pytest.mark.parametrize(
    "weights", [(0.5, 0.5, 0.5, 0.5), (2, -1, 0, 0), (nan, 0, 0, 1), (inf, 0, 0, 0), (0, 0, 0, 0)]
)
def test_weights_that_mean_nothing_are_refused(weights: tuple[float, ...]) -> None:
    with pytest.raises(InvalidRequest, match="weight"):
        Weights(*weights)


def test_links_that_cannot_be_are_refused() -> None:
    with pytest.raises(InvalidRequest, match="price cannot be negative"):
        Tariff(per_unit=-1)
    with pytest.raises(InvalidRequest, match="price cannot be negative"):
        Tariff(per_volume=-1)
    with pytest.raises(InvalidRequest, match="volume at least 1"):
        Tariff(volume=0)
    with pytest.raises(InvalidRequest, match="unit"):
        Tariff(unit=-1)
    with pytest.raises(InvalidRequest, match="latency cannot be negative"):
        Link("wifi", Tariff(), latency=-1)
    with pytest.raises(InvalidRequest, match="energy cannot be negative"):
        Link("wifi", Tariff(), energy=-1)
    with pytest.raises(InvalidRequest, match="coverage cannot be negative"):
        Link("wifi", Tariff(), coverage=-1)
    with pytest.raises(InvalidRequest, match="throughput"):
        Link("wifi", Tariff(), throughput=0)
    with pytest.raises(InvalidRequest, match="contention"):
        Link("wifi", Tariff(), contention=nan)
    with pytest.raises(InvalidRequest, match="label"):
        Link("", Tariff())
    with pytest.raises(InvalidRequest, match="size cannot be negative"):
        cost(WIFI, -1)
    with pytest.raises(InvalidRequest, match="charge cannot be negative"):
        Charge(bytes=-1)
