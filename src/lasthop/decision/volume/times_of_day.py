"""The next of some times of the day, by the user's clock.

If a change of the clock skips a time, it comes later by the length of the change; if the change
repeats a time, the first one counts.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date, datetime, time, timedelta, tzinfo

from lasthop.clock import Micros
from lasthop.decision.localtime import instant, local


def next_of(minutes: Iterable[int], zone: tzinfo, now: Micros) -> Micros:
    """Return the first instant after `now` at which one of these minutes of the day begins."""
    today = local(now, zone).date()
    days = [today + timedelta(days=ahead) for ahead in (0, 1, 2)]
    moments = [at_minute(day, minute, zone) for minute in minutes for day in days]
    return min(moment for moment in moments if moment > now)


def at_minute(day: date, minute: int, zone: tzinfo) -> Micros:
    """Return the instant at which this minute of the day begins."""
    return instant(datetime.combine(day, time(minute // 60, minute % 60), zone))
