"""Constraints on the moment of a delivery: each one is a set of instants that it allows.

Constraints are values: they come from publishers and devices, are checked when they are made, and
are logged with the decision. `schedule` finds the first instant that all of them allow. Local times
are what the wall clock in the constraint's zone shows, also when daylight saving changes it.
"""

from __future__ import annotations

from datetime import date, datetime, timedelta
from math import isnan
from typing import TypeAlias

import msgspec

from lasthop.clock import DAY, HOUR, MINUTE, SECOND, Micros
from lasthop.decision.delay import check_delay
from lasthop.decision.localtime import (
    Period,
    check_instant,
    instant,
    local,
    offset_change,
    period_after,
    zone,
)
from lasthop.decision.reasons import Code, Reason, because
from lasthop.errors import InvalidRequest

WEEKDAYS = (0, 1, 2, 3, 4, 5, 6)
MINUTES = 24 * 60

QUIET_STEPS = 40
"""The largest number of adjoining quiet periods that are followed one by one: about one a day, and
a few more when the clock changes. If five weeks have no gap, there is none."""


MAX_TIMES = 24
"""The largest number of times of day in a digest: messages that come more often than hourly are not
collected."""


class NotBefore(msgspec.Struct, frozen=True, tag="after", forbid_unknown_fields=True):
    """A message may not be delivered before this instant: the publisher's `deliver_after`."""

    at: Micros

    def __post_init__(self) -> None:
        check_instant("deliver_after", self.at)

    @property
    def name(self) -> str:
        return "deliver_after"

    def next(self, t: Micros, _rank: float) -> Micros | None:
        return max(t, self.at)

    def reason(self, at: Micros | None) -> Reason:
        return because(Code.TOO_EARLY, name=self.name, at=at)


class Before(msgspec.Struct, frozen=True, tag="before", forbid_unknown_fields=True):
    """A message may only be delivered before this instant: the publisher's `deliver_before`."""

    at: Micros

    def __post_init__(self) -> None:
        check_instant("deliver_before", self.at)

    @property
    def name(self) -> str:
        return "deliver_before"

    def next(self, t: Micros, _rank: float) -> Micros | None:
        return t if t < self.at else None

    def reason(self, _at: Micros | None) -> Reason:
        return because(Code.TOO_LATE, name=self.name, at=self.at)


class Tolerance(msgspec.Struct, frozen=True, tag="tolerance", forbid_unknown_fields=True):
    """A message may be delayed on purpose for at most `delay` after `since`."""

    since: Micros
    delay: Micros

    def __post_init__(self) -> None:
        check_instant("since", self.since)
        check_delay(self.delay)

    @property
    def name(self) -> str:
        return "delay tolerance"

    def next(self, t: Micros, _rank: float) -> Micros | None:
        return t if t <= self.since + self.delay else None

    def reason(self, _at: Micros | None) -> Reason:
        return because(Code.TOO_LATE, name=self.name, at=self.since + self.delay)


class QuietHours(msgspec.Struct, frozen=True, tag="quiet", forbid_unknown_fields=True):
    """No message is delivered while the wall clock shows `start` until `end` (minutes of the day).

    Hours that pass midnight belong to the weekday on which they start. If clocks show an hour
    twice, both are quiet; if they skip `end`, quiet hours end when they jump. A message ranked
    `override` or higher is delivered in quiet hours, too.
    """

    zone: str
    start: int
    end: int
    days: tuple[int, ...] = WEEKDAYS
    override: float | None = None

    def __post_init__(self) -> None:
        zone(self.zone)
        _check_days(self.days)
        if not (0 <= self.start < MINUTES and 0 <= self.end <= MINUTES):
            raise InvalidRequest(
                "quiet hours must be minutes of the day, 0 to 1440", start=self.start, end=self.end
            )
        if self.start == self.end:
            raise InvalidRequest(
                "quiet hours must not start and end at the same time; a whole day is 0 to 1440",
                start=self.start,
            )
        if self.override is not None and isnan(self.override):
            raise InvalidRequest("a rank must be a number", override=self.override)

    @property
    def name(self) -> str:
        return f"quiet hours {_clock(self.start)}-{_clock(self.end)} {self.zone}"

    def next(self, t: Micros, rank: float) -> Micros | None:
        if self.override is not None and rank >= self.override:
            return t
        tz = zone(self.zone)
        for _ in range(QUIET_STEPS):
            left = self._left(local(t, tz))
            if not left:
                return t
            then = t + left
            t = offset_change(t, then, tz) or then
        return None

    def _left(self, here: datetime) -> Micros:
        """Return how long it stays quiet after this local time; 0 if it is not quiet."""
        day = here.weekday()
        passed = here.hour * HOUR + here.minute * MINUTE + here.second * SECOND + here.microsecond
        start, end = self.start * MINUTE, self.end * MINUTE
        if start < end:
            return end - passed if start <= passed < end and day in self.days else 0
        if passed >= start:
            return DAY - passed + end if day in self.days else 0
        return end - passed if passed < end and (day - 1) % 7 in self.days else 0

    def reason(self, at: Micros | None) -> Reason:
        return because(Code.QUIET, name=self.name, at=at)


class FrequencyCap(msgspec.Struct, frozen=True, tag="cap", forbid_unknown_fields=True):
    """At most `limit` messages are delivered per calendar period; those of higher rank go first.

    `sent` messages were sent in the period of `as_of`, and `ahead` messages of higher rank are
    waiting: this message goes in the first period that has room for all of them and for itself.
    """

    limit: int
    period: Period
    zone: str
    as_of: Micros
    sent: int = 0
    ahead: int = 0

    def __post_init__(self) -> None:
        zone(self.zone)
        check_instant("as_of", self.as_of)
        if min(self.limit, self.sent, self.ahead) < 0:
            raise InvalidRequest("counts cannot be negative", limit=self.limit, sent=self.sent)

    @property
    def name(self) -> str:
        return f"at most {self.limit} per {self.period}"

    def next(self, t: Micros, _rank: float) -> Micros | None:
        room = max(0, self.limit - self.sent)
        if self.ahead < room:
            return t
        if not self.limit:
            return None
        periods = (self.ahead - room) // self.limit + 1
        turn = period_after(self.as_of, self.period, zone(self.zone), periods)
        return None if turn is None else max(t, turn)

    def reason(self, at: Micros | None) -> Reason:
        return because(Code.CAPPED, name=self.name, at=at)


class Digest(msgspec.Struct, frozen=True, tag="digest", forbid_unknown_fields=True):
    """Messages are collected, and become due together at the next of these times of day (in
    minutes).

    If clocks show a time twice, the first one counts; if they skip a time, it comes when they jump.
    Messages with the same `moment` form one digest.
    """

    zone: str
    since: Micros
    times: tuple[int, ...]
    days: tuple[int, ...] = WEEKDAYS

    def __post_init__(self) -> None:
        zone(self.zone)
        check_instant("since", self.since)
        _check_days(self.days)
        if not 1 <= len(self.times) <= MAX_TIMES:
            raise InvalidRequest("a digest must have 1 to 24 times of day", times=len(self.times))
        if not all(0 <= time < MINUTES for time in self.times):
            raise InvalidRequest("times must be minutes of the day, 0 to 1439", times=self.times)

    @property
    def name(self) -> str:
        return f"digest at {', '.join(map(_clock, sorted(self.times)))} {self.zone}"

    def moment(self) -> Micros:
        """Return the instant at which the digest of this message is due."""
        today = local(self.since, zone(self.zone)).date()
        # Yesterday's times as well: clocks that are set back over midnight show yesterday again.
        days = (today + timedelta(days=ahead) for ahead in range(-1, 9))
        return next(
            at
            for day in days
            if day.weekday() in self.days
            for time in sorted(self.times)
            if (at := self._instant(day, time)) >= self.since
        )

    def _instant(self, day: date, time: int) -> Micros:
        tz = zone(self.zone)
        wanted = datetime(day.year, day.month, day.day, time // 60, time % 60, tzinfo=tz)
        at = instant(wanted)
        if local(at, tz).replace(tzinfo=None) == wanted.replace(tzinfo=None):
            return at
        return offset_change(at - DAY, at, tz) or at

    def next(self, t: Micros, _rank: float) -> Micros | None:
        return max(t, self.moment())

    def reason(self, at: Micros | None) -> Reason:
        return because(Code.DIGEST, name=self.name, at=at)


Constraint: TypeAlias = NotBefore | Before | Tolerance | QuietHours | FrequencyCap | Digest


def _check_days(days: tuple[int, ...]) -> None:
    if not days or not all(0 <= day <= 6 for day in days):
        raise InvalidRequest(
            "weekdays must be numbers from 0 (Monday) to 6, at least one", days=days
        )


def _clock(minutes: int) -> str:
    return f"{minutes // 60:02}:{minutes % 60:02}"
