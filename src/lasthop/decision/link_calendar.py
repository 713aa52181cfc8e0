"""The link calendar: how likely a device has each link, by weekday and hour of its own zone.

The McGill thesis asks people to type it in ("Monday 9:00 to 18:00, 90 % WiFi"); the pipeline learns
the same table from contacts. Section 3.5.3 of the thesis needs one number from it: the probability
that a link appears within a given time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import tzinfo
from math import isfinite

import msgspec

from lasthop.clock import HOUR, MINUTE, SECOND, Micros
from lasthop.decision.localtime import local, zone
from lasthop.errors import InvalidRequest

HOURS = 7 * 24


class CalendarEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One line of a calendar as people write it: the weekdays (Monday is 0), from one hour to
    another."""

    link: str
    days: tuple[int, ...]
    start: int
    end: int
    probability: float

    def __post_init__(self) -> None:
        if not self.days or not all(0 <= day <= 6 for day in self.days):
            raise InvalidRequest(
                "weekdays must be numbers from 0 (Monday) to 6, at least one", days=self.days
            )
        if not 0 <= self.start < self.end <= 24:
            raise InvalidRequest(
                "hours must be from 0 to 24, the first before the last",
                start=self.start,
                end=self.end,
            )
        _check_probability(self.link, self.probability)


class LinkCalendar(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The probabilities of each link in the 168 hours of a week, from Monday 0:00, in the zone's
    local time."""

    zone: str
    hours: dict[str, tuple[float, ...]]

    def __post_init__(self) -> None:
        zone(self.zone)
        if not self.hours:
            raise InvalidRequest("a calendar must name at least one link")
        for link, probabilities in self.hours.items():
            if not link:
                raise InvalidRequest("a link needs a label")
            if len(probabilities) != HOURS:
                raise InvalidRequest(
                    "a link must have 168 probabilities, one for each hour of a week",
                    link=link,
                    probabilities=len(probabilities),
                )
            for probability in probabilities:
                _check_probability(link, probability)

    @classmethod
    def of(cls, entries: Iterable[CalendarEntry], *, zone_name: str) -> LinkCalendar:
        """Return the calendar that these entries describe; where they overlap, the later entry
        applies."""
        hours: dict[str, list[float]] = {}
        for entry in entries:
            week = hours.setdefault(entry.link, [0.0] * HOURS)
            for day in entry.days:
                for hour in range(entry.start, entry.end):
                    week[24 * day + hour] = entry.probability
        return cls(zone_name, {link: tuple(week) for link, week in hours.items()})

    def probability(self, link: str, *, start: Micros, end: Micros) -> float:
        """Return the probability that the link is up at some moment from `start` until `end`.

        It is the probability of the best hour in between: hours of one habit rise and fall
        together, and to multiply them as if they were independent would promise more than the
        calendar says.
        """
        week = self.hours.get(link)
        if week is None or end <= start:
            return 0.0
        # A week shows every hour of the calendar; two changes of the clock may hide an hour.
        end = min(end, start + (HOURS + 2) * HOUR)
        return max(week[hour] for hour in hours_between(start, end, zone(self.zone)))


def hours_between(start: Micros, end: Micros, tz: tzinfo) -> Iterator[int]:
    """Return the local hours of the week that `[start, end)` touches, in order."""
    while start < end:
        here = local(start, tz)
        yield 24 * here.weekday() + here.hour
        start += HOUR - (here.minute * MINUTE + here.second * SECOND + here.microsecond)


def _check_probability(link: str, probability: float) -> None:
    if not (isfinite(probability) and 0 <= probability <= 1):
        raise InvalidRequest(
            "a probability must be between 0 and 1", link=link, probability=probability
        )
