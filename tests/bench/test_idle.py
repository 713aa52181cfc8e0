"""What the benchmark of idle devices concludes, and what it does not."""

from __future__ import annotations

import msgspec
import pytest

from bench.idle import Idle, spread

GOOD = Idle(
    devices=10_000,
    stored_bytes=2000,
    connection_bytes=2700,
    heartbeat=20,
    seconds=60,
    connected=10_000,
    pongs=30_000,
    longest_gap=21.5,
    few_median=[1000, 1010, 990, 1005, 995],
    many_median=[1020, 1030, 1010, 1025, 1015],
    few_p99=[2000, 2050, 1950, 2010, 1990],
    many_p99=[2100, 2150, 2050, 2110, 2090],
)


def words(result: Idle) -> list[str]:
    return [verdict.word for verdict in result.verdicts()]


def changed(**fields: object) -> list[str]:
    return words(msgspec.structs.replace(GOOD, **fields))


def test_goals_that_are_reached_pass() -> None:
    assert words(GOOD) == ["PASS"] * 4


@pytest.mark.parametrize(
    "fields,failed",
    [
        ({"connection_bytes": 4097.0}, 0),
        ({"connected": 9_999}, 1),
        ({"longest_gap": 31.0}, 1),
        ({"many_median": [1200.0] * 5}, 2),
        ({"many_p99": [2600.0] * 5}, 3),
    ],
)
def test_each_goal_can_be_missed(fields: dict[str, object], failed: int) -> None:
    assert [i for i, word in enumerate(changed(**fields)) if word == "FAIL"] == [failed]


def test_noise_is_no_result_however_good_it_looks() -> None:
    few = [1300.0, 3700.0, 3300.0, 1200.0, 3400.0]
    assert changed(few_median=few, many_median=[900.0] * 5)[2] == "UNCLEAR"


def test_one_round_that_went_wrong_is_not_noise() -> None:
    assert spread([100, 101, 102, 103, 9000]) < 1.05
    assert changed(few_p99=[2000.0, 2050.0, 1950.0, 2010.0, 168_000.0])[3] == "PASS"
