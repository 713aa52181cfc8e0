"""Times of PAP are exact: one form, UTC, whole seconds."""

from datetime import UTC, datetime

import pytest
from hypothesis import given, strategies as st

from lasthop.clock import SECOND
from lasthop.wire.pap.times import EARLIEST, LATEST, format_time, format_time_up, parse_time


@given(st.datetimes(timezones=st.just(UTC)))
def test_times_agree_with_the_calendar(moment: datetime) -> None:
    whole = moment.replace(microsecond=0)
    text = whole.replace(tzinfo=None).isoformat() + "Z"
    time = parse_time(text)
    assert time == (whole - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds() * SECOND
    assert format_time(time) == format_time_up(time) == text


def test_the_ends_of_the_calendar() -> None:
    assert format_time(EARLIEST) == "0001-01-01T00:00:00Z"
    assert format_time(LATEST) == "9999-12-31T23:59:59Z"
    for write, beyond in ((format_time, EARLIEST - 1), (format_time_up, LATEST + 1)):
        with pytest.raises(ValueError, match="1 to 9999"):
            write(beyond)


def test_a_small_z_is_read() -> None:
    assert parse_time("2024-02-29T08:00:00z") == parse_time("2024-02-29T08:00:00Z")


def test_nothing_leaves_before_its_time_by_rounding() -> None:
    assert format_time(1_999_999) == "1970-01-01T00:00:01Z"
    assert format_time_up(1_000_001) == "1970-01-01T00:00:02Z"
    assert format_time(-1) == "1969-12-31T23:59:59Z"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2024-02-29",
        "2024-02-29T08:00:00",
        "2024-02-29 08:00:00Z",
        "2024-02-29t08:00:00Z",
        "2024-02-29T08:00:00.5Z",
        "2024-02-29T08:00:00+00:00",
        "2024-02-29T08:00Z",
        "24-02-29T08:00:00Z",
        "2024-02-29T24:00:00Z",
        "2024-02-29T08:60:00Z",
        "2016-12-31T23:59:60Z",
        " 2024-02-29T08:00:00Z",
        "2024-02-29T08:00:00Z\n",
        "２０２４-02-29T08:00:00Z",
    ],
)
def test_other_forms_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="a time must be YYYY-MM-DDThh:mm:ssZ in UTC"):
        parse_time(text)


@pytest.mark.parametrize("day", ["2023-02-29", "2024-13-01", "2024-00-01", "0000-01-01"])
def test_days_that_do_not_exist_are_refused(day: str) -> None:
    with pytest.raises(ValueError, match="there is no such day"):
        parse_time(f"{day}T00:00:00Z")
