"""The primitive types for dates, times and durations.

Values are Python's own, with their limits: years 1 to 9999 and microseconds. A text beyond these
limits is valid in XML Schema and stays plain content.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time, timedelta
from typing import NamedTuple

from lasthop_xml.xas.types.primitive import BLANKS, Primitive

_ZONE = r"(?:Z|[+-](?:0[0-9]|1[0-3]):[0-5][0-9]|[+-]14:00)?"
_CLOCK = rf"[0-2][0-9]:[0-5][0-9]:[0-5][0-9](?:\.[0-9]{{1,6}})?{_ZONE}"
_DAY = r"[0-9]{4}-[01][0-9]-[0-3][0-9]"
_DATE = re.compile(_DAY)
_TIME = re.compile(_CLOCK)
_DATE_TIME = re.compile(rf"{_DAY}T{_CLOCK}")
_DURATION = re.compile(
    r"(?P<minus>-)?P(?=[0-9T])(?:(?P<Y>[0-9]{1,9})Y)?(?:(?P<M>[0-9]{1,9})M)?(?:(?P<D>[0-9]{1,9})D)?"
    r"(?:T(?=[0-9])(?:(?P<h>[0-9]{1,9})H)?(?:(?P<m>[0-9]{1,9})M)?"
    r"(?:(?P<s>[0-9]{1,9})(?:\.(?P<f>[0-9]{1,9}))?S)?)?"
)
SECOND = 10**9
"""One second, in the nanoseconds of a `Duration`."""


class Duration(NamedTuple):
    """A length of time as months and nanoseconds, since months have no fixed length; both parts
    have the same sign."""

    months: int
    nanoseconds: int


def _zone(offset: timedelta | None) -> str:
    if offset is None:
        return ""
    if not offset:
        return "Z"
    minutes = offset // timedelta(minutes=1)
    hours, minutes_left = divmod(abs(minutes), 60)
    return f"{'-' if minutes < 0 else '+'}{hours:02}:{minutes_left:02}"


def _holds(offset: timedelta | None) -> bool:
    """Return whether XML Schema has this offset from UTC: whole minutes, at most fourteen hours."""
    return offset is None or (
        abs(offset) <= timedelta(hours=14) and not offset % timedelta(minutes=1)
    )


def _digits(text: str) -> str:
    """Return a clock reading without the zeros at the end of its fraction."""
    return text.rstrip("0").rstrip(".") if "." in text else text


def _in_utc(text: str) -> str:
    # Z and +00:00 are the same zone; some versions of Python read only the latter.
    return f"{text[:-1]}+00:00" if text.endswith("Z") else text


class DateTime(Primitive):
    """The type xsd:dateTime: an instant with its time zone, or a local time without one."""

    __slots__ = ()

    def parse(self, text: str) -> datetime:
        text = text.strip(BLANKS)
        if _DATE_TIME.fullmatch(text) is None:
            raise self.refuse(text)
        try:
            value = datetime.fromisoformat(_in_utc(text))
        except ValueError:
            raise self.refuse(text) from None
        return value if value.tzinfo is None or value.utcoffset() else value.replace(tzinfo=UTC)

    def format(self, value: object) -> str:
        if not isinstance(value, datetime) or not _holds(value.utcoffset()):
            raise self.refuse(value)
        return _digits(value.replace(tzinfo=None).isoformat()) + _zone(value.utcoffset())


class Date(Primitive):
    """The type xsd:date: a day of the calendar, without a time zone."""

    __slots__ = ()

    def parse(self, text: str) -> date:
        text = text.strip(BLANKS)
        if _DATE.fullmatch(text) is None:
            raise self.refuse(text)
        try:
            return date.fromisoformat(text)
        except ValueError:
            raise self.refuse(text) from None

    def format(self, value: object) -> str:
        if type(value) is not date:
            raise self.refuse(value)
        return value.isoformat()


class Time(Primitive):
    """The type xsd:time: a time of day, with or without a time zone."""

    __slots__ = ()

    def parse(self, text: str) -> time:
        text = text.strip(BLANKS)
        if _TIME.fullmatch(text) is None:
            raise self.refuse(text)
        try:
            value = time.fromisoformat(_in_utc(text))
        except ValueError:
            raise self.refuse(text) from None
        return value if value.tzinfo is None or value.utcoffset() else value.replace(tzinfo=UTC)

    def format(self, value: object) -> str:
        if not isinstance(value, time) or not _holds(value.utcoffset()):
            raise self.refuse(value)
        return _digits(value.replace(tzinfo=None).isoformat()) + _zone(value.utcoffset())


class DurationType(Primitive):
    """The type xsd:duration: a length of time in months and nanoseconds."""

    __slots__ = ()

    def parse(self, text: str) -> Duration:
        found = _DURATION.fullmatch(text.strip(BLANKS))
        if found is None:
            raise self.refuse(text)
        part = {key: int(value or 0) for key, value in found.groupdict().items() if key in "YMDhms"}
        seconds = ((part["D"] * 24 + part["h"]) * 60 + part["m"]) * 60 + part["s"]
        nanoseconds = seconds * SECOND + int((found["f"] or "").ljust(9, "0"))
        sign = -1 if found["minus"] else 1
        return Duration(sign * (part["Y"] * 12 + part["M"]), sign * nanoseconds)

    def format(self, value: object) -> str:
        if not isinstance(value, Duration) or value.months * value.nanoseconds < 0:
            raise self.refuse(value)
        if abs(value.months) >= 10**10 or abs(value.nanoseconds) >= 86400 * 10**9 * SECOND:
            raise self.refuse(value)
        years, months = divmod(abs(value.months), 12)
        seconds, fraction = divmod(abs(value.nanoseconds), SECOND)
        minutes, seconds = divmod(seconds, 60)
        hours, minutes = divmod(minutes, 60)
        days, hours = divmod(hours, 24)
        second = _digits(f"{seconds}.{fraction:09}")
        day = "".join(f"{n}{unit}" for n, unit in ((years, "Y"), (months, "M"), (days, "D")) if n)
        clock = "".join(f"{n}{unit}" for n, unit in ((hours, "H"), (minutes, "M")) if n)
        if second != "0" or not (day or clock):
            clock += f"{second}S"
        minus = "-" if value.months < 0 or value.nanoseconds < 0 else ""
        return f"{minus}P{day}{'T' if clock else ''}{clock}"
