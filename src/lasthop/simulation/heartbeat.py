"""The heartbeat rehearsed: an idle device behind an address translator with little patience.

The translator forgets a connection that was silent for its timeout, and from then on nothing
passes. The device's side is the real one: `Pinging` of the hop protocol on the working connection,
`NetworkPatience` beside it, and one connection at a time that only serves for trials. A fixed
interval is rehearsed in the same way, without learning.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf

from lasthop.clock import DAY, SECOND, Micros
from lasthop.decision.heartbeat import NetworkPatience, step_of
from lasthop.wire.hop.heartbeat import Beat, Pinging

TIMEOUTS = (30, 60, 120, 300, 900, 1800)
"""Timeouts of usual translators in seconds, from an impatient one to a patient one."""

ROUND_TRIP: Micros = SECOND // 5
RECONNECT: Micros = SECOND
"""Time from noticing that a connection is lost to the next connection."""

PAUSE: Micros = SECOND
"""Time between two trials, in microseconds."""


@dataclass(frozen=True, slots=True)
class Translator:
    """An address translator that forgets silent connections. Each entry of `timeouts` is a time and
    the timeout that applies from then on."""

    timeouts: tuple[tuple[Micros, Micros], ...]

    @classmethod
    def of(cls, seconds: float) -> Translator:
        """Return a translator whose timeout never changes."""
        return cls(((0, round(seconds * SECOND)),))

    def timeout(self, now: Micros) -> Micros:
        """Return the timeout that holds at `now`, in microseconds."""
        return next(timeout for since, timeout in reversed(self.timeouts) if since <= now)

    def forgets(self, since: Micros, until: Micros) -> bool:
        """Return whether the translator forgets a connection that is silent for this time."""
        moments = [at for at, _ in self.timeouts if since < at < until] + [until]
        return any(at - since >= self.timeout(at) for at in moments)


@dataclass(slots=True)
class HeartbeatRehearsal:
    """What happened in one rehearsal of an idle device, day by day."""

    days: int
    pings: list[int] = field(default_factory=list)
    """Pings per day, on the working connection and in trials."""
    lost: list[int] = field(default_factory=list)
    """Connections per day that had worked and that a ping found dead."""
    trials: int = 0
    failures: int = 0
    first_settled_at: Micros | None = None
    """When the first search for an interval was over; None if it never was."""
    trials_to_settle: int = 0
    failures_to_settle: int = 0
    """The number of trials that failed in the first search for an interval."""
    interval: Micros = 0
    """The interval of the working connection at the end, in microseconds."""


def rehearse(
    translator: Translator,
    *,
    days: int,
    fixed: Micros | None = None,
    others: Micros | None = None,
) -> HeartbeatRehearsal:
    """Rehearse an idle device for some days: with a fixed interval, or learning; `others` is the
    interval that other devices have found."""
    patience = (
        None if fixed is not None else NetworkPatience(guess=step_of(others) if others else -1)
    )
    return _Device(translator, days, fixed, patience).run()


class _Device:
    def __init__(
        self,
        translator: Translator,
        days: int,
        fixed: Micros | None,
        patience: NetworkPatience | None,
    ) -> None:
        self._translator = translator
        self._fixed = fixed
        self._patience = patience
        self._end = days * DAY
        self._seen = HeartbeatRehearsal(days, [0] * (days + 1), [0] * (days + 1))
        self._trial: tuple[Micros, Micros] | None = None
        """The beginning and the length of the present trial."""

    def run(self) -> HeartbeatRehearsal:
        working = Pinging(0, interval=self._interval())
        last_packet: Micros = 0
        now: Micros = 0
        while True:
            beat_at, trial_at = working.next_due(), self._next_trial(now)
            if min(beat_at, trial_at) >= self._end:
                break
            now = int(min(beat_at, trial_at))
            if trial_at <= beat_at:
                self._turn_trial(now)
                working.interval = self._interval()
                continue
            beat = working.check(now)
            if beat is Beat.PING:
                self._count(self._seen.pings, now)
                if not self._translator.forgets(last_packet, now):
                    working.on_received(now + ROUND_TRIP)
                    last_packet = now + ROUND_TRIP
            elif beat is Beat.DEAD:
                self._count(self._seen.lost, now)
                if self._patience is not None:
                    self._patience.missed(working.interval)
                last_packet = now + RECONNECT
                working = Pinging(last_packet, interval=self._interval())
        self._seen.interval = self._interval()
        del self._seen.pings[-1], self._seen.lost[-1]
        return self._seen

    def _interval(self) -> Micros:
        if self._patience is not None:
            return self._patience.interval()
        assert self._fixed is not None
        return self._fixed

    def _next_trial(self, now: Micros) -> float:
        if self._patience is None:
            return inf
        if self._trial is not None:
            return self._trial[0] + self._trial[1]
        if self._patience.next_trial(now) is not None:
            return now + PAUSE
        wait = self._patience.wait(now)
        return inf if wait is None else max(wait, now)

    def _turn_trial(self, now: Micros) -> None:
        """Begin a trial, or end the present one."""
        assert self._patience is not None
        if self._trial is None:
            interval = self._patience.next_trial(now)
            if interval is not None:
                self._trial = (now, interval)
            return
        (began, interval), self._trial = self._trial, None
        survived = not self._translator.forgets(began, now)
        self._count(self._seen.pings, now)
        self._seen.trials += 1
        self._seen.failures += not survived
        settled = self._patience.settled
        self._patience.tried(interval, survived=survived, now=now)
        if self._patience.settled and not settled and self._seen.first_settled_at is None:
            self._seen.first_settled_at = now
            self._seen.trials_to_settle = self._seen.trials
            self._seen.failures_to_settle = self._seen.failures

    def _count(self, days: list[int], now: Micros) -> None:
        days[now // DAY] += 1


def ideal(timeout: Micros) -> float:
    """Return the pings per day if each came at the last possible moment."""
    return DAY / timeout


FIXED = (45 * SECOND, 300 * SECOND)
"""Fixed intervals that other products use: one that is short enough for nearly every network, and
one that saves the battery."""


@dataclass(frozen=True, slots=True)
class HeartbeatRow:
    """The measurements of one network: how its timeout was learned, and how many pings that
    saves."""

    network: str
    timeout: float
    """The timeout at the end, in seconds."""
    interval: float
    trials: int
    failures: int
    hours: float
    """Hours until the first search was over."""
    share: float
    """The interval at the end as a share of the timeout."""
    lost: int
    """Working connections that were lost, over all days."""
    pings: int
    """Pings on the last day, on both connections."""
    ideal: float
    fixed: tuple[tuple[int, int], ...]
    """Pings and lost connections on the last day, for every fixed interval."""


def networks(steps: Sequence[tuple[int, int]]) -> list[tuple[str, Translator]]:
    """Return the usual timeouts, and those that change from one to another after two days."""
    usual = [(f"{seconds} s", Translator.of(seconds)) for seconds in TIMEOUTS]
    changing = [
        (f"{a} s, then {b} s", Translator(((0, a * SECOND), (2 * DAY, b * SECOND))))
        for a, b in steps
    ]
    return usual + changing


def measure(
    name: str, translator: Translator, *, days: int, others: float | None = None
) -> HeartbeatRow:
    """Measure one network, with the learned interval and with fixed ones."""
    prior = None if others is None else round(others * SECOND)
    seen = rehearse(translator, days=days, others=prior)
    fixed = [rehearse(translator, days=days, fixed=interval) for interval in FIXED]
    timeout = translator.timeout(days * DAY)
    return HeartbeatRow(
        network=name,
        timeout=timeout / SECOND,
        interval=seen.interval / SECOND,
        trials=seen.trials_to_settle,
        failures=seen.failures_to_settle,
        hours=(seen.first_settled_at or 0) / (3600 * SECOND),
        share=seen.interval / timeout,
        lost=sum(seen.lost),
        pings=seen.pings[-1],
        ideal=ideal(timeout),
        fixed=tuple((each.pings[-1], each.lost[-1]) for each in fixed),
    )
