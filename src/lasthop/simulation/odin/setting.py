"""What every service goes through: the submissions, the breaks of the link, and the
measurements."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median

from lasthop.clock import HOUR, MILLISECOND, SECOND, Micros

MINUTE: Micros = 60 * SECOND

PAYLOAD = 256
EVERY: Micros = 20 * SECOND
"""Time between two submissions: three of them a minute."""

BREAKS = ((15 * MINUTE, 10 * MINUTE), (40 * MINUTE, 30 * MINUTE), (95 * MINUTE, 15 * MINUTE))
"""When the link is taken away, and for how long: up to half an hour, within two hours."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One experiment: its length, its submissions and the breaks of the link."""

    length: Micros = 2 * HOUR
    breaks: tuple[tuple[Micros, Micros], ...] = ()
    every: Micros = EVERY
    """Time from one submission to the next, in microseconds."""

    @property
    def submissions(self) -> int:
        """The number of messages that are submitted."""
        return self.length // self.every

    def moment(self, number: int) -> Micros:
        """Return when a message is submitted, counted from the beginning."""
        return (number + 1) * self.every - self.every // 2

    def back_at(self, now: Micros) -> Micros | None:
        """Return when the link is back; `None` if it is up."""
        for start, lasts in self.breaks:
            if start <= now < start + lasts:
                return start + lasts
        return None

    def next_break(self, now: Micros) -> Micros | None:
        """Return when the link is taken away next; None: never again."""
        return next((start for start, _ in self.breaks if start >= now), None)


@dataclass(frozen=True, slots=True)
class ServiceNotes:
    """The measurements of one service in one experiment."""

    service: str
    bearer: str
    broken: bool
    submitted: int
    delivered: int
    lost: int
    misordered: int
    duplicated: int
    latency_ms: float
    """Median latency of the messages that were submitted while the link was up, in milliseconds."""
    bytes_per_message: float | None
    """Protocol bytes in both directions, before TCP/IP and TLS, with heartbeats and reconnects;
    `None` if the protocol is not public."""
    joules: float
    """Energy that the radio took, in joules."""


def note(
    service: str,
    bearer: str,
    setting: Setting,
    shown: list[tuple[int, Micros]],
    *,
    carried: int | None,
    joules: float,
) -> ServiceNotes:
    """Count what arrived. `shown` has the number of each message and when it was shown, in that
    order."""
    numbers = [number for number, _ in shown]
    seen: set[int] = set()
    duplicated = misordered = 0
    highest = -1
    for number in numbers:
        if number in seen:
            duplicated += 1
            continue
        seen.add(number)
        misordered += number < highest
        highest = max(highest, number)
    waits = [
        when - setting.moment(number)
        for number, when in shown
        if setting.back_at(setting.moment(number)) is None
    ]
    return ServiceNotes(
        service=service,
        bearer=bearer,
        broken=bool(setting.breaks),
        submitted=setting.submissions,
        delivered=len(seen),
        lost=setting.submissions - len(seen),
        misordered=misordered,
        duplicated=duplicated,
        latency_ms=median(waits) / MILLISECOND if waits else 0.0,
        bytes_per_message=carried / len(seen) if carried is not None and seen else None,
        joules=joules,
    )
