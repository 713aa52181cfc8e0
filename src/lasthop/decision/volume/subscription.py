"""A subscription to a ranked topic: how many events, how important, and when they are shown."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from math import inf, isnan

from lasthop.decision.constraints import QuietHours
from lasthop.decision.localtime import zone

MINUTES = 24 * 60


class Mode(StrEnum):
    """Whether events are shown when they arrive or when the user looks."""

    ON_LINE = "on-line"
    """Events are shown as soon as possible."""
    ON_DEMAND = "on-demand"
    """Events are shown when the user looks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscription:
    """What one device asks of one topic, and the limits that apply to it."""

    mode: Mode = Mode.ON_DEMAND
    max: int | None = None
    """The largest number of events in one read or one catch-up: the best are shown, and the others
    stay available until they expire. Nothing else is limited by it."""
    threshold: float = -inf
    """The lowest rank that counts: events below it are not shown."""
    interrupt: float | None = None
    """The rank from which on events are shown at once: also on an on-demand topic, and in quiet
    hours."""
    quiet: QuietHours | None = None
    """Hours in which an on-line topic waits like an on-demand one; a catch-up ends them. Only
    events at or above `interrupt` are shown in these hours."""
    times: tuple[int, ...] = ()
    """The minutes of the day at which an on-line topic is shown, the best first; empty: at any
    time."""
    max_per_day: int | None = None
    """The largest number of events on one calendar day, over all its `times`."""
    zone: str = "UTC"
    """The time zone of the user's clock (IANA name)."""
    retention: int | None = None
    """The largest number of events that are kept at the gateway; beyond it the worst are dropped
    for good."""
    storage: int | None = None
    """The largest number of unread events that fit on the device; beyond it the worst come back to
    the gateway."""

    def __post_init__(self) -> None:
        for name in ("max", "max_per_day", "retention", "storage"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"{name} must be at least 1")
        if isnan(self.threshold) or (self.interrupt is not None and isnan(self.interrupt)):
            raise ValueError("a rank must be a number")
        if self.mode is Mode.ON_DEMAND and (self.quiet or self.times):
            raise ValueError("quiet and times need an on-line topic: set mode to on-line")
        if self.quiet is not None and self.quiet.override is not None:
            raise ValueError("quiet hours of a topic cannot have an override: set interrupt")
        if not all(0 <= minute < MINUTES for minute in self.times):
            raise ValueError("times must be minutes of the day, 0 to 1439")
        zone(self.zone)
        if self.max_per_day is not None and not self.times:
            raise ValueError("max_per_day needs times of the day: set times")
