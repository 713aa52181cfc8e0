"""Times and durations of XML Schema: all eight forms of a date or time, and durations.

Values are compared as XML Schema 1.0 says (part 2, section 3.2.7.4): a time without a zone is
neither before nor after a time with a zone that is less than fourteen hours away.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import NamedTuple

_YEAR = r"(?P<year>-?(?:[1-9][0-9]{3,8}|0[0-9]{3}))"
_MONTH = r"(?P<month>0[1-9]|1[0-2])"
_DAY = r"(?P<day>0[1-9]|[12][0-9]|3[01])"
_CLOCK = (
    r"(?P<hour>[01][0-9]|2[0-4]):(?P<minute>[0-5][0-9]):(?P<second>[0-5][0-9](?:\.[0-9]{1,99})?)"
)
_ZONE = r"(?P<zone>Z|[+-](?:0[0-9]|1[0-3]):[0-5][0-9]|[+-]14:00)?"

_FORMS = {
    "dateTime": f"{_YEAR}-{_MONTH}-{_DAY}T{_CLOCK}{_ZONE}",
    "time": f"{_CLOCK}{_ZONE}",
    "date": f"{_YEAR}-{_MONTH}-{_DAY}{_ZONE}",
    "gYearMonth": f"{_YEAR}-{_MONTH}{_ZONE}",
    "gYear": f"{_YEAR}{_ZONE}",
    "gMonthDay": f"--{_MONTH}-{_DAY}{_ZONE}",
    "gDay": f"---{_DAY}{_ZONE}",
    "gMonth": f"--{_MONTH}(?:--)?{_ZONE}",  # the first edition had two more hyphens
}
FORMS = {name: re.compile(form) for name, form in _FORMS.items()}

_DURATION = re.compile(
    r"(?P<sign>-)?P(?=[0-9T])(?:(?P<Y>[0-9]{1,99})Y)?(?:(?P<M>[0-9]{1,99})M)?(?:(?P<D>[0-9]{1,99})D)?"
    r"(?:T(?=[0-9])(?:(?P<h>[0-9]{1,99})H)?(?:(?P<m>[0-9]{1,99})M)?"
    r"(?:(?P<s>[0-9]{1,99}(?:\.[0-9]{1,99})?)S)?)?"
)
_LENGTHS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_LEAP_YEAR = 2000  # stands in for a missing year, and has 29 February
_MOST_APART = 14 * 3600


class Instant(NamedTuple):
    """A point in time: seconds on the time line, and whether a time zone was given."""

    seconds: Decimal
    zoned: bool


class Length(NamedTuple):
    """A duration, with its months apart, since months have no fixed length in seconds."""

    months: int
    seconds: Decimal


def instant(form: str, text: str) -> Instant | None:
    """Return the time that a text in one of the FORMS means; None if it is not in that form."""
    found = FORMS[form].fullmatch(text)
    if found is None:
        return None
    part: dict[str, str | None] = found.groupdict()
    year = int(part.get("year") or _LEAP_YEAR)
    month, day = int(part.get("month") or 1), int(part.get("day") or 1)
    if year == 0 or day > _days_in(year, month):
        return None
    seconds = Decimal(_days(year, month, day)) * 86400
    if "hour" in part:
        hour, minute, second = int(found["hour"]), int(found["minute"]), Decimal(found["second"])
        if hour == 24 and (minute or second):
            return None
        if form == "time":
            hour %= 24
        seconds += hour * 3600 + minute * 60 + second
    return Instant(seconds - _offset(part["zone"]), part["zone"] is not None)


def _offset(zone: str | None) -> int:
    if zone is None or zone == "Z":
        return 0
    seconds = int(zone[1:3]) * 3600 + int(zone[4:6]) * 60
    return -seconds if zone[0] == "-" else seconds


def _days_in(year: int, month: int) -> int:
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    return _LENGTHS[month - 1] + (leap and month == 2)


def _days(year: int, month: int, day: int) -> int:
    """Return the days since 1 March of year 0, by counting years that end with February."""
    year -= month < 3
    month = (month - 3) % 12
    return 365 * year + year // 4 - year // 100 + year // 400 + (153 * month + 2) // 5 + day - 1


def compare_instants(one: Instant, other: Instant) -> int | None:
    """Return -1 if `one` is earlier than `other`, 1 if it is later, 0 if they are equal; None if
    XML Schema does not order them."""
    if one.zoned == other.zoned:
        return (one.seconds > other.seconds) - (one.seconds < other.seconds)
    difference = one.seconds - other.seconds
    return None if abs(difference) <= _MOST_APART else (1 if difference > 0 else -1)


def length(text: str) -> Length | None:
    """Return the duration that a text means; None if it is not a duration."""
    found = _DURATION.fullmatch(text)
    if found is None:
        return None
    sign = -1 if found["sign"] else 1
    number = {key: Decimal(found[key] or 0) for key in "YMDhms"}
    seconds = ((number["D"] * 24 + number["h"]) * 60 + number["m"]) * 60 + number["s"]
    return Length(sign * int(number["Y"] * 12 + number["M"]), sign * seconds)


def compare_lengths(one: Length, other: Length) -> int | None:
    """Compare two durations by adding them to the four dates that XML Schema gives (part 2, section
    3.2.6.2); None if the results differ."""
    answers = set()
    for year, month in ((1696, 9), (1697, 2), (1903, 3), (1903, 7)):
        ends = [
            _days(*_later(year, month, each.months), 1) * 86400 + each.seconds
            for each in (one, other)
        ]
        answers.add((ends[0] > ends[1]) - (ends[0] < ends[1]))
    return answers.pop() if len(answers) == 1 else None


def _later(year: int, month: int, months: int) -> tuple[int, int]:
    years, month = divmod(month - 1 + months, 12)
    return year + years, month + 1
