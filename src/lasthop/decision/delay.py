"""Delay adaptation, D = P * Dmax: how long a message waits for a better link (section 3.5.3).

P is the probability that a better link appears before the queue's Dmax is over; of several better
links the likeliest counts. It is taken over what is left of Dmax, so it can only fall while a
message waits: a wait ends early when its hope has passed, and never lasts longer than Dmax.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from lasthop.clock import DAY, Micros
from lasthop.decision.link_calendar import LinkCalendar
from lasthop.errors import InvalidRequest

MAX_DELAY: Micros = 31 * DAY
"""The calendar repeats weekly, so it says nothing more about later weeks; a month is beyond what
anyone calls a delay."""


class Wait(msgspec.Struct, frozen=True):
    """A link worth waiting for, how likely it comes, and how long to wait from the beginning."""

    link: str
    probability: float
    delay: Micros


def check_delay(delay: Micros) -> None:
    """Refuse a Dmax that is none."""
    if not 0 <= delay <= MAX_DELAY:
        raise InvalidRequest("a delay lies between 0 and 31 days", delay=delay)


def adapt(
    better: Iterable[str],
    calendar: LinkCalendar | None,
    *,
    max_delay: Micros,
    since: Micros,
    now: Micros,
) -> Wait | None:
    """How long a message that came at `since` waits for one of the better links; `None` if there
    is no chance of any."""
    check_delay(max_delay)
    if calendar is None:
        return None
    likeliest: Wait | None = None
    for link in better:
        chance = calendar.probability(link, start=now, end=since + max_delay)
        if chance > 0 and (likeliest is None or chance > likeliest.probability):
            likeliest = Wait(link, chance, round(chance * max_delay))
    return likeliest
