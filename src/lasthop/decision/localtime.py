"""Local time for decisions: calendar periods, wall clocks, and what daylight saving does to them.

Instants are microseconds of UTC everywhere; a zone only says which instants begin a local day and
what a wall clock shows. Periods cover time without gap or overlap, whatever the zone's clock does.
"""

from __future__ import annotations

from datetime import date, datetime, timedelta, tzinfo
from enum import StrEnum
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from lasthop.clock import Micros
from lasthop.decision.reasons import EPOCH
from lasthop.errors import InvalidRequest

MICROSECOND = timedelta(microseconds=1)

LAST_INSTANT: Micros = (datetime(9000, 1, 1, tzinfo=EPOCH.tzinfo) - EPOCH) // MICROSECOND
"""The last instant that is accepted. Python's calendar ends in the year 9999, and what people ask
for ends well before 9000."""


class Period(StrEnum):
    """Calendar periods in a device's zone; weeks begin on Monday (ISO 8601)."""

    DAY = "day"
    WEEK = "week"
    MONTH = "month"


@lru_cache(maxsize=1024)
def zone(name: str) -> ZoneInfo:
    """Return the time zone with this IANA name."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        # A name that is a path or a folder fails in other ways than one that is only unknown.
        raise InvalidRequest("no such time zone", zone=name) from None


def check_instant(name: str, at: Micros) -> None:
    """Refuse an instant that the calendar cannot show."""
    if not 0 <= at <= LAST_INSTANT:
        raise InvalidRequest("an instant must be between the years 1970 and 9000", **{name: at})


def local(at: Micros, tz: tzinfo) -> datetime:
    """Return what calendar and wall clock of the zone show at this instant."""
    return (EPOCH + timedelta(microseconds=at)).astimezone(tz)


def instant(moment: datetime) -> Micros:
    """Return the instant of a local time: the first one if clocks show it twice; if they skip it,
    the one that the clock would have shown without the change."""
    return (moment - EPOCH) // MICROSECOND


def day_start(day: date, tz: tzinfo) -> Micros:
    """Return the first instant of a local day; midnight itself may be skipped or come twice."""
    return instant(datetime(day.year, day.month, day.day, tzinfo=tz))


def period_at(at: Micros, period: Period, tz: tzinfo) -> tuple[Micros, Micros]:
    """Return the period that contains this instant: its first instant, and the first of the next
    period."""
    first = _first_day(local(at, tz).date(), period)
    end = day_start(_days_later(first, period, 1), tz)
    while end <= at:
        # Clocks set back across midnight show yesterday again: the new day has begun already.
        first = _days_later(first, period, 1)
        end = day_start(_days_later(first, period, 1), tz)
    return day_start(first, tz), end


def period_after(at: Micros, period: Period, tz: tzinfo, count: int) -> Micros | None:
    """Return the start of the `count`-th period after the one that contains `at`; `None` beyond the
    calendar."""
    start, _ = period_at(at, period, tz)
    first = _first_day(local(start, tz).date(), period)
    try:
        begins = day_start(_days_later(first, period, count), tz)
    except (OverflowError, ValueError):
        return None
    return begins if begins <= LAST_INSTANT else None


def _first_day(day: date, period: Period) -> date:
    if period is Period.DAY:
        return day
    if period is Period.WEEK:
        return day - timedelta(days=day.weekday())
    return day.replace(day=1)


def _days_later(first: date, period: Period, count: int) -> date:
    if period is Period.DAY:
        return first + timedelta(days=count)
    if period is Period.WEEK:
        return first + timedelta(weeks=count)
    months = first.year * 12 + first.month - 1 + count
    return date(months // 12, months % 12 + 1, 1)


def offset_change(after: Micros, until: Micros, tz: tzinfo) -> Micros | None:
    """Return the first instant in `(after, until]` at which the zone's clock has been changed, or
    None.

    It is found by bisection, so the span must contain at most one change: a few days at most.
    """
    before = local(after, tz).utcoffset()
    if local(until, tz).utcoffset() == before:
        return None
    while until - after > 1:
        middle = (after + until) // 2
        if local(middle, tz).utcoffset() == before:
            after = middle
        else:
            until = middle
    return until
