"""Times of SMPP: both forms, read and written."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from lasthop.clock import DAY, SECOND
from lasthop.errors import Malformed
from lasthop.wire.smpp.smpp_times import LONGEST, absolute, parse_time, relative

NOW = 1_709_193_600 * SECOND


@given(st.integers(1, LONGEST // SECOND))
def test_a_relative_time_comes_back(seconds: int) -> None:
    assert parse_time(relative(seconds * SECOND), NOW) == NOW + seconds * SECOND


@given(st.integers(NOW // SECOND, NOW // SECOND + 10**8), st.integers(0, 9))
def test_an_absolute_time_comes_back(seconds: int, tenths: int) -> None:
    at = seconds * SECOND + tenths * SECOND // 10
    assert parse_time(absolute(at), 0) == at


def test_known_times() -> None:
    assert relative(DAY) == "000001000000000R"
    assert relative(1) == "000000000001000R"
    assert relative(1000 * DAY) == relative(LONGEST)
    assert absolute(NOW) == "240229080000000+"
    assert parse_time("240229100000008+", 0) == NOW
    assert parse_time("240229060000008-", 0) == NOW


@pytest.mark.parametrize(
    "text", ["", "240229080000000", "2402290800000x0+", "240230080000000+", "000001000000000X"]
)
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(Malformed):
        parse_time(text, NOW)
