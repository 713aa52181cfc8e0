"""Times of the day where the user is: when an on-line topic is quiet, when a digest is due.

Wall-clock times follow daylight saving: a time that a change of the clock skips comes as much
later, one that it repeats counts the first time. The zone is an argument like everything else.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo

from lasthop.clock import Micros

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)


def local(now: Micros, zone: tzinfo) -> datetime:
    """The user's calendar and clock at `now`."""
    return (EPOCH + timedelta(microseconds=now)).astimezone(zone)


def instant(day: date, at: time, zone: tzinfo) -> Micros:
    """When it is `at` on that day."""
    return (datetime.combine(day, at, zone).astimezone(UTC) - EPOCH) // MICROSECOND


def next_of(times: Iterable[time], zone: tzinfo, now: Micros) -> Micros:
    """The first of these times of day after `now`."""
    today = local(now, zone).date()
    days = (today + timedelta(days=ahead) for ahead in (0, 1, 2))
    return min(moment for day in days for at in times if (moment := instant(day, at, zone)) > now)


@dataclass(frozen=True, slots=True)
class QuietHours:
    """From `start` to `end` every day; past midnight if `end` comes first."""

    start: time
    end: time

    def covers(self, now: Micros, zone: tzinfo) -> bool:
        """Whether it is quiet."""
        at = local(now, zone).time()
        if self.start <= self.end:
            return self.start <= at < self.end
        return at >= self.start or at < self.end
