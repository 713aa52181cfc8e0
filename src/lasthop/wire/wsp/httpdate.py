"""Dates of HTTP headers: the three forms to read and the one to write (RFC 9110, 5.6.7)."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_FORMS = (
    re.compile(r"\w{3}, (?P<d>\d\d) (?P<m>\w{3}) (?P<y>\d{4}) (?P<t>\d\d:\d\d:\d\d) GMT", re.ASCII),
    re.compile(r"\w+, (?P<d>\d\d)-(?P<m>\w{3})-(?P<y>\d\d) (?P<t>\d\d:\d\d:\d\d) GMT", re.ASCII),
    re.compile(r"\w{3} (?P<m>\w{3}) (?P<d>[ \d]\d) (?P<t>\d\d:\d\d:\d\d) (?P<y>\d{4})", re.ASCII),
)

LAST = int((datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC) - _EPOCH).total_seconds())


def parse_http_date(text: str) -> int:
    """Parse an HTTP date as seconds since 1970; raise ValueError."""
    for form in _FORMS:
        found = form.fullmatch(text)
        if found is not None and found["m"] in _MONTHS:
            year = int(found["y"])
            if len(found["y"]) == 2:
                year += 1900 if year >= 70 else 2000
            hour, minute, second = map(int, found["t"].split(":"))
            month = _MONTHS.index(found["m"]) + 1
            moment = datetime(year, month, int(found["d"]), hour, minute, second, tzinfo=UTC)
            return int((moment - _EPOCH).total_seconds())
    raise ValueError(f"not a date: {text!r}")


def format_http_date(seconds: int) -> str:
    """Format seconds since 1970 as `Thu, 29 Feb 2024 08:00:00 GMT`; raise ValueError beyond the
    year 9999."""
    if seconds > LAST:
        raise ValueError("a date must not lie beyond the year 9999")
    moment = _EPOCH + timedelta(seconds=seconds)
    day, month = _DAYS[moment.weekday()], _MONTHS[moment.month - 1]
    return f"{day}, {moment.day:02} {month} {moment.year:04} {moment:%H:%M:%S} GMT"
