"""What a subscriber asks of a topic: how many, how important, shown when."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from math import inf, isnan

from lasthop.decision.constraints import QuietHours
from lasthop.decision.localtime import zone

MINUTES = 24 * 60


class Mode(StrEnum):
    """Who begins: the notification, or the user."""

    ON_LINE = "on-line"
    """Shown as soon as it can be."""
    ON_DEMAND = "on-demand"
    """Shown when the user looks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscription:
    """One device's wishes about one topic, and the limits that it lives with."""

    mode: Mode = Mode.ON_DEMAND
    max: int | None = None
    """At most so many, the best, in one read or one catch-up. It bounds no more than that: the
    others stay available until they expire."""
    threshold: float = -inf
    """Events ranked below it do not count."""
    interrupt: float | None = None
    """Events ranked so high are shown at once: on an on-demand topic, and when it is quiet."""
    quiet: QuietHours | None = None
    """Hours in which an on-line topic waits like an on-demand one; a catch-up ends them. What is
    shown in spite of them is for `interrupt` to say."""
    times: tuple[int, ...] = ()
    """Show an on-line topic at these minutes of the day only, the best first."""
    max_per_day: int | None = None
    """At most so many on one calendar day, over all its `times`."""
    zone: str = "UTC"
    """Where the user's clock is (IANA name)."""
    retention: int | None = None
    """So many events are kept at the gateway; beyond it the worst go for good."""
    storage: int | None = None
    """So many unread events fit on the device; beyond it the worst come back to the gateway."""

    def __post_init__(self) -> None:
        for name in ("max", "max_per_day", "retention", "storage"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"{name} is at least 1")
        if isnan(self.threshold) or (self.interrupt is not None and isnan(self.interrupt)):
            raise ValueError("a rank is a number")
        if self.mode is Mode.ON_DEMAND and (self.quiet or self.times):
            raise ValueError("an on-demand topic is quiet already: quiet and times are on-line's")
        if self.quiet is not None and self.quiet.override is not None:
            raise ValueError("a topic has one rank that interrupts: set interrupt, not override")
        if not all(0 <= minute < MINUTES for minute in self.times):
            raise ValueError("times are minutes of the day, 0 to 1439")
        zone(self.zone)
        if self.max_per_day is not None and not self.times:
            raise ValueError("max_per_day chooses the best for given times of the day: set times")
