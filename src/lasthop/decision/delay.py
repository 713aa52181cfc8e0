"""Delay adaptation, D = P * Dmax: how long a message waits for a better link (McGill thesis,
3.5.3).

P is the probability that a better link appears before the queue's Dmax is over; of several better
links the likeliest counts. P is taken over what is left of Dmax, so it can only fall while a
message waits: a wait ends early when the better link has become unlikely, and never lasts longer
than Dmax.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from lasthop.clock import DAY, Micros
from lasthop.decision.link_calendar import LinkCalendar
from lasthop.errors import InvalidRequest

MAX_DELAY: Micros = 31 * DAY
"""The longest Dmax. The calendar repeats weekly, so it says nothing more about later weeks, and
more than a month is not what anyone calls a delay."""


class Wait(msgspec.Struct, frozen=True):
    """A link worth waiting for, its probability, and how long to wait, counted from the message's
    arrival."""

    link: str
    probability: float
    delay: Micros


def check_delay(delay: Micros) -> None:
    """Refuse a Dmax that is negative or longer than `MAX_DELAY`."""
    if not 0 <= delay <= MAX_DELAY:
        raise InvalidRequest("a delay must be between 0 and 31 days", delay=delay)


def adapt(
    better: Iterable[str],
    calendar: LinkCalendar | None,
    *,
    max_delay: Micros,
    since: Micros,
    now: Micros,
) -> Wait | None:
    """Return how long a message that arrived at `since` waits for one of the better links; `None`
    if none of them is expected to appear."""
    check_delay(max_delay)
    if calendar is None:
        return None
    likeliest: Wait | None = None
    for link in better:
        chance = calendar.probability(link, start=now, end=since + max_delay)
        if chance > 0 and (likeliest is None or chance > likeliest.probability):
            likeliest = Wait(link, chance, round(chance * max_delay))
    return likeliest
