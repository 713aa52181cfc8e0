"""Times as PAP writes them: `YYYY-MM-DDThh:mm:ssZ`, always UTC, always twenty characters."""

from __future__ import annotations

import re
from datetime import date

from lasthop.clock import DAY, SECOND, Micros

_TIME = re.compile(r"(\d{4})-(\d\d)-(\d\d)T([01]\d|2[0-3]):([0-5]\d):([0-5]\d)[Zz]", re.ASCII)
_DAY_OF_1970 = date(1970, 1, 1).toordinal()

EARLIEST: Micros = (date.min.toordinal() - _DAY_OF_1970) * DAY
LATEST: Micros = (date.max.toordinal() - _DAY_OF_1970 + 1) * DAY - SECOND


def parse_time(text: str) -> Micros:
    """Parse a time as microseconds since 1970; `ValueError` says what it should look like.

    There are no fractions, offsets or leap seconds. A lower-case `z` is read, since some
    documentation shows one, and never written.

    >>> parse_time("1970-01-02T00:00:01Z")
    86401000000
    """
    found = _TIME.fullmatch(text)
    if found is None:
        raise ValueError("a time must be YYYY-MM-DDThh:mm:ssZ in UTC")
    year, month, day, hour, minute, second = map(int, found.groups())
    try:
        days = date(year, month, day).toordinal() - _DAY_OF_1970
    except ValueError:
        raise ValueError("there is no such day") from None
    return days * DAY + ((hour * 60 + minute) * 60 + second) * SECOND


def format_time(time: Micros) -> str:
    """Format a time; fractions of a second are dropped."""
    return _format(time // SECOND)


def format_time_up(time: Micros) -> str:
    """Format a time that nothing may precede, rounded up to a full second, for
    deliver-after-timestamp."""
    return _format(-(-time // SECOND))


def _format(seconds: int) -> str:
    if not EARLIEST <= seconds * SECOND <= LATEST:
        raise ValueError("a time of PAP must lie in the years 1 to 9999")
    days, rest = divmod(seconds, DAY // SECOND)
    minutes, second = divmod(rest, 60)
    hour, minute = divmod(minutes, 60)
    day = date.fromordinal(days + _DAY_OF_1970)
    return f"{day.isoformat()}T{hour:02}:{minute:02}:{second:02}Z"
