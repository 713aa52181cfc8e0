"""The preferences of a device about its links and times: one value, checked as a whole.

Section 3.5 of the McGill thesis lets the device say what its links cost, what they are at their
best, what each queue values, how long it may wait, what must not be exceeded, and when which link
is to be expected. The SDK and the REST interface decode exactly this value, and the log keeps it
for replay.
"""

from __future__ import annotations

import msgspec

from lasthop.clock import Micros
from lasthop.decision.budgets import MAX_LIMITS, Budgets, Limit
from lasthop.decision.choice import QueueTerms
from lasthop.decision.constraints import WEEKDAYS, Constraint, Digest, QuietHours
from lasthop.decision.link_calendar import LinkCalendar
from lasthop.decision.links import Link
from lasthop.decision.localtime import Period, zone
from lasthop.decision.schedule import Timed, constraints_of
from lasthop.errors import InvalidRequest, TooLarge

MAX_NAMED = 64
"""The largest number of links or queues of one device: dozens are plausible, hundreds are a mistake
or an attack, since every message looks at all links."""


MAX_CAPS = 4
"""The largest number of caps of one device: each is one more constraint of every message that it
covers."""

MAX_QUIET = 8
"""The largest number of quiet hours of one device: one for each weekday and one for holidays.
Together with a publisher's constraints they stay below what `schedule` accepts for one message."""


class Cap(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """At most `limit` messages per period, of these queues (none named: of all); while more are
    waiting than may come, those of higher rank come first."""

    limit: int
    period: Period
    queues: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.limit < 1:
            raise InvalidRequest("a cap must let at least one message through", limit=self.limit)

    def covers(self, queue: str | None) -> bool:
        return not self.queues or (queue or "") in self.queues


class DigestTimes(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Messages of these queues (none named: of all) are collected and delivered together at these
    times of day, in minutes."""

    times: tuple[int, ...]
    days: tuple[int, ...] = WEEKDAYS
    queues: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        Digest("UTC", 0, self.times, self.days)

    def covers(self, queue: str | None) -> bool:
        return not self.queues or (queue or "") in self.queues


class Preferences(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the owner of a device says about links, costs and quiet hours. The links are the
    device's technologies at their best."""

    zone: str = "UTC"
    links: tuple[Link, ...] = ()
    queues: tuple[QueueTerms, ...] = ()
    limits: tuple[Limit, ...] = ()
    calendar: LinkCalendar | None = None
    quiet: tuple[QuietHours, ...] = ()
    caps: tuple[Cap, ...] = ()
    digests: tuple[DigestTimes, ...] = ()

    def __post_init__(self) -> None:
        zone(self.zone)
        for name, count, most in (
            ("links", len(self.links), MAX_NAMED),
            ("queues", len(self.queues), MAX_NAMED),
            ("limits", len(self.limits), MAX_LIMITS),
            ("quiet hours", len(self.quiet), MAX_QUIET),
            ("caps", len(self.caps), MAX_CAPS),
            ("digests", len(self.digests), MAX_NAMED),
        ):
            if count > most:
                raise TooLarge(f"too many {name}", count=count, most=most)
        _check_distinct("link", [link.label for link in self.links])
        _check_distinct("queue", [queue.name for queue in self.queues])

    def queue(self, name: str | None) -> QueueTerms:
        """Return the terms of a queue; a queue without its own terms has those named ""."""
        known = {queue.name: queue for queue in self.queues}
        found = known.get(name or "") or known.get("")
        if found is None:
            return QueueTerms(name or "")
        return msgspec.structs.replace(found, name=name or "")

    def link(self, label: str) -> Link | None:
        """Return what the device says about the link with this label, or None."""
        return next((link for link in self.links if link.label == label), None)

    def constraints(self, message: Timed, *, since: Micros, now: Micros) -> list[Constraint]:
        """Return the constraints on a message: the publisher's, the device's quiet hours, and the
        first digest that covers the message's queue."""
        found = [*constraints_of(message, since=since, now=now), *self.quiet]
        digest = next((d for d in self.digests if d.covers(message.queue)), None)
        if digest is not None:
            found.append(Digest(self.zone, since, digest.times, digest.days))
        return found

    def budgets(self, *, shared: Budgets | None = None) -> Budgets:
        """Return unused budgets for this device's limits, in the device's own zone."""
        return Budgets(self.limits, zone_name=self.zone, shared=shared)


def _check_distinct(kind: str, names: list[str]) -> None:
    if len(set(names)) != len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InvalidRequest(f"a {kind} is described twice", name=twice)
