"""Reads times and durations in the forms that publishers may write."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Annotated

import msgspec

from lasthop.clock import DAY, HOUR, MILLISECOND, MINUTE, SECOND, Micros
from lasthop.errors import InvalidRequest

MAX_DURATION = 3660 * DAY
"""The longest duration, ten years: a longer one is a mistake in the unit."""

END_OF_TIME = 253_402_300_800 * SECOND
"""The first time that is too late: the year 10000, which RFC 3339 cannot write."""

_UNITS = {"ms": MILLISECOND, "s": SECOND, "m": MINUTE, "h": HOUR, "d": DAY, "w": 7 * DAY}
_PART = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,6})?) *(ms|[smhdw])")
_WHOLE = re.compile(rf"(?:{_PART.pattern} *)+")
_NUMBER = re.compile(r"[0-9]{1,12}(?:\.[0-9]{1,6})?")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_Instant = Annotated[datetime, msgspec.Meta(tz=True)]


def duration(value: float | str, field: str) -> Micros:
    """Return a duration in microseconds, from seconds or from text with units.

    >>> duration("1h30m", "ttl") // MINUTE
    90
    """
    if isinstance(value, str):
        if _NUMBER.fullmatch(value):
            micros = round(float(value) * SECOND)
        elif _WHOLE.fullmatch(value):
            micros = sum(round(float(n) * _UNITS[unit]) for n, unit in _PART.findall(value))
        else:
            raise InvalidRequest(
                f"{field}: a duration must be a number of seconds, or have units: 90s, 1h30m, 3d",
                field=field,
            )
    elif 0 <= value <= MAX_DURATION:
        micros = round(value * SECOND)
    else:
        micros = -1
    if not 0 <= micros <= MAX_DURATION:
        raise InvalidRequest(f"{field}: a duration must be between 0 and ten years", field=field)
    return micros


def instant(value: float | str, field: str) -> Micros:
    """Return a time in microseconds, from RFC 3339 with a zone or from seconds since 1970."""
    micros = -1
    if isinstance(value, str) and not _NUMBER.fullmatch(value):
        try:
            micros = micros_of(msgspec.convert(value, _Instant))
        except (msgspec.ValidationError, OverflowError):
            raise InvalidRequest(
                f"{field}: a time must be RFC 3339 with a zone (2030-01-31T12:00:00Z), or seconds"
                " since 1970",
                field=field,
            ) from None
    else:
        seconds = float(value) if isinstance(value, str) else value
        if 0 <= seconds <= END_OF_TIME:
            micros = round(seconds * SECOND)
    if not 0 <= micros < END_OF_TIME:
        raise InvalidRequest(
            f"{field}: a time must lie between the years 1970 and 9999", field=field
        )
    return micros


def micros_of(time: datetime) -> Micros:
    """Return a time in microseconds since 1970."""
    return (time - _EPOCH) // timedelta(microseconds=1)


def datetime_of(time: Micros) -> datetime:
    """Return a time in microseconds since 1970 as a `datetime` in UTC."""
    return _EPOCH + timedelta(microseconds=time)
