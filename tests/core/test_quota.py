"""Token buckets: bounded in rate, fair in what they say, bounded in memory."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from lasthop.clock import SECOND
from lasthop.core.quota import CallerQuota, Rate

rates = st.builds(Rate, st.integers(1, 1000), st.integers(1, 1000))
requests = st.lists(st.tuples(st.integers(0, 5 * SECOND), st.integers(0, 300)), max_size=60)


@given(rates, requests)
def test_no_more_is_let_through_than_burst_and_rate_allow(
    rate: Rate, asked: list[tuple[int, int]]
) -> None:
    quota = CallerQuota(rate)
    now = 0
    let_through: list[tuple[int, int]] = []
    for pause, amount in asked:
        now += pause
        if quota.take("a", now, amount) == 0:
            let_through.append((now, amount))
    for i, (start, _) in enumerate(let_through):
        total = 0
        for at, amount in let_through[i:]:
            # A request above the burst is let through by a full bucket, and then paid for.
            allowed = max(rate.burst, amount) * SECOND + (at - start) * rate.per_second
            total += amount
            assert (total - amount) * SECOND <= allowed
            assert total * SECOND <= allowed + max(0, amount - rate.burst) * SECOND


@given(rates, rates, requests)
def test_who_waits_as_long_as_told_is_let_through(
    one: Rate, other: Rate, asked: list[tuple[int, int]]
) -> None:
    quota = CallerQuota(one, other)
    now = 0
    for pause, amount in asked:
        now += pause
        wait = quota.take("a", now, amount, 2 * amount)
        assert wait >= 0
        if wait:
            assert quota.take("a", now + wait - 1, amount, 2 * amount) == 1
            now += wait
            assert quota.take("a", now, amount, 2 * amount) == 0


def test_a_refused_request_takes_nothing() -> None:
    quota = CallerQuota(Rate(1, 10), Rate(1, 10))
    assert quota.take("a", 0, 5, 11) == 0
    assert quota.take("a", 0, 5, 1) == 2 * SECOND
    assert quota.take("a", SECOND, 5, 0) == 0


def test_holders_do_not_share() -> None:
    quota = CallerQuota(Rate(1, 1))
    assert quota.take("a", 0, 1) == 0
    assert quota.take("b", 0, 1) == 0
    assert quota.take("a", 0, 1) == SECOND


def test_a_clock_that_stands_still_or_goes_back_gives_nothing() -> None:
    quota = CallerQuota(Rate(1, 1))
    assert quota.take("a", SECOND, 1) == 0
    assert quota.take("a", 0, 1) == SECOND


@given(st.lists(st.integers(0, 100), max_size=200))
def test_memory_is_bounded_whoever_comes(holders: list[int]) -> None:
    quota = CallerQuota(Rate(1, 5), max_holders=8)
    for now, holder in enumerate(holders):
        quota.take(holder, now, 1)
        assert len(quota) <= 8


def test_a_full_bucket_is_forgotten_before_a_busy_one() -> None:
    quota = CallerQuota(Rate(1, 1), max_holders=4)
    quota.take("busy", 0, 100)
    for i in range(20):
        quota.take(i, i * 10 * SECOND // 4, 1)
    assert quota.take("busy", 50 * SECOND, 1) > 0


def test_a_rate_of_nothing_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        Rate(0, 1)
