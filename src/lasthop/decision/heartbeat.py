"""How long a connection may be idle: the longest interval between heartbeats that a network allows.

An address translator forgets a connection that was silent for too long, and tells nobody. Its
patience is found by trying: a connection that is open for nothing else stays idle for some time,
then pings. The working connection only ever uses intervals that have been seen to work. Intervals
are tried in the order that needs the fewest trials when every failure is expensive: eight trials of
which three fail distinguish 92 steps of 6.6 %, between ten seconds and an hour.

What is known about a network is kept longer than the connection and the process: `NetworkPatience`
is plain values.
"""

from __future__ import annotations

from math import comb, exp, floor, log
from typing import Final

import msgspec

from lasthop.clock import DAY, HOUR, SECOND, Micros

FLOOR: Final[Micros] = 10 * SECOND
"""The shortest interval between heartbeats: networks that forget a connection sooner are not worth
the energy."""

CEILING: Final[Micros] = HOUR
"""The longest interval between heartbeats: it needs 24 pings a day, so few that a longer interval
would save nothing."""

TRIALS: Final = 8
FAILURES: Final = 3
"""The largest numbers of trials and of failures in one search. A failure costs a connection, and
the time until the loss is noticed."""

NEARLY: Final = 4
"""The number of trials that go step by step from the interval that other devices have found, before
a search starts from nothing."""

SAFE: Final[Micros] = 25 * SECOND
"""The interval that is used until something is known: below the half minute of the most impatient
translators."""

AGAIN: Final[Micros] = DAY
AGAIN_AT_MOST: Final[Micros] = 16 * DAY
"""How soon the next longer interval is tried again, since networks may also become more patient.
The time doubles with every failure."""

NETWORKS: Final = 64
"""The largest number of networks that are remembered; the network that was not visited for longest
is forgotten first."""


def reach(trials: int, failures: int) -> int:
    """Return how many steps can be distinguished with this many trials and failures left."""
    return sum(comb(trials, failed) for failed in range(1, failures + 1))


STEPS: Final = reach(TRIALS, FAILURES)
RATIO: Final = log(CEILING / FLOOR) / STEPS


def interval_of(step: int) -> Micros:
    """Return the interval of a step: step 0 is `FLOOR`, the last one is `CEILING`."""
    return round(FLOOR * exp(RATIO * step))


def step_of(interval: Micros) -> int:
    """Return the highest step that is not longer than this interval."""
    if interval <= FLOOR:
        return 0
    return min(STEPS, floor(log(interval / FLOOR) / RATIO + 1e-6))


def _below(step: int) -> Micros:
    """Return a little less than the interval of a step, because packets are late at times."""
    return interval_of(step) * 49 // 50


class NetworkPatience(msgspec.Struct, array_like=True):
    """What is known about the patience of one network. New fields go to the end, with a default."""

    alive: int = -1
    """The longest step that a connection has survived; -1: none has been tried."""
    dead: int = STEPS + 1
    """The shortest step that a connection has not survived."""
    trials: int = 0
    failures: int = 0
    """The numbers of trials and of failures in the present search."""
    guess: int = -1
    """A step to be tried first because other devices found it, or one just above; -1: none."""
    doubted: int = -1
    """A step that the working connection did not survive and that is to be tried once more; -1:
    none."""
    settled: bool = False
    again_at: Micros = 0
    """When to find out whether the network has become more patient."""
    again: Micros = AGAIN

    def interval(self) -> Micros:
        """Return the interval between heartbeats of the working connection, in microseconds."""
        if self.doubted >= 0 or self.alive < 0:
            return min(SAFE, _below(max(0, self.dead - 1)))
        return _below(self.alive)

    def told(self, interval: Micros) -> None:
        """Note the interval that other devices have found; it is ignored once this device has found
        one itself."""
        if self.alive < 0 and self.trials == 0:
            self.guess = step_of(interval)

    def next_trial(self, now: Micros) -> Micros | None:
        """Return how long a connection should stay idle to learn more; None if enough is known for
        now."""
        step = self._next_step(now)
        return None if step is None else interval_of(step)

    def wait(self, now: Micros) -> Micros | None:
        """Return the time at which `next_trial` may return a trial again, if it returns None
        now."""
        return self.again_at if self._next_step(now) is None and self.dead <= STEPS else None

    def _next_step(self, now: Micros) -> int | None:
        if self.doubted >= 0:
            return self.doubted
        if self.settled:
            return self.dead if self.dead <= STEPS and now >= self.again_at else None
        if self.guess >= 0:
            return self.guess
        lowest = max(self.alive, 0)
        if lowest + 1 >= self.dead:
            # Nothing lies between; the lowest step of all may still be untried.
            return 0 if self.alive < 0 else None
        left = max(1, TRIALS - self.trials)
        if self.failures >= FAILURES - 1 or left == 1:
            return lowest + 1  # Only one more failure is allowed.
        ahead = 1 + reach(left - 1, FAILURES - 1 - self.failures)
        return min(lowest + ahead, self.dead - 1)

    def tried(self, interval: Micros, *, survived: bool, now: Micros) -> None:
        """Note that a connection was idle for this interval, and whether it survived."""
        step = step_of(interval)
        self.trials += 1
        self.failures += not survived
        if survived:
            self._alive_at(step)
        else:
            self._dead_at(step)
        self._settle(now)

    def _alive_at(self, step: int) -> None:
        self.alive = max(self.alive, step)
        if step == self.doubted:
            self.doubted = -1  # The failure was an accident.
        if step >= self.dead:
            # The network is more patient than before; another search finds out how much.
            self.dead = STEPS + 1
            self._restart()
        if self.guess >= 0:
            # Others were right, or nearly: then one of the next few steps fails.
            self.guess = step + 1 if self.trials < NEARLY and step < STEPS else -1
            if self.guess < 0:
                self._restart()

    def _dead_at(self, step: int) -> None:
        if step == self.doubted or self.alive >= step:
            self.alive, self.doubted = -1, -1
            self._restart()
        if self.guess >= 0:
            self.guess = -1
            self._restart()
        if self.settled:
            self.again = min(2 * self.again, AGAIN_AT_MOST)
        self.dead = min(self.dead, step)

    def missed(self, interval: Micros) -> None:
        """Note that the working connection did not survive this idle interval, though the network
        is up. That may have been an accident: one more trial tells."""
        if self.alive >= 0:
            self.doubted = self.alive
        else:
            self.dead = max(1, min(self.dead, step_of(interval) + 1))

    def _restart(self) -> None:
        self.trials = self.failures = 0
        self.settled = False

    def _settle(self, now: Micros) -> None:
        if self.doubted >= 0:
            return
        # Below the lowest step there is nothing to find.
        known = self.dead == 0 or (self.alive >= 0 and self.alive + 1 >= min(self.dead, STEPS + 1))
        if known or (self.alive >= 0 and self.trials >= TRIALS):
            if not self.settled or now >= self.again_at:
                self.again_at = now + self.again
            self.settled = True


class Networks:
    """What a device has learned about every network that it visits."""

    def __init__(self, known: dict[str, NetworkPatience] | None = None) -> None:
        self._known: dict[str, NetworkPatience] = dict(known or {})

    def on(self, network: str, *, others: Micros | None = None) -> NetworkPatience:
        """Return what is known about this network; `others` is the interval that other devices
        found there."""
        patience = self._known.pop(network, None)
        if patience is None:
            patience = NetworkPatience(guess=-1 if others is None else step_of(others))
        self._known[network] = patience
        while len(self._known) > NETWORKS:
            del self._known[next(iter(self._known))]
        return patience

    def dump(self) -> bytes:
        """Encode what was learned about all networks, for the store."""
        return msgspec.json.encode(self._known)

    @classmethod
    def load(cls, data: bytes | None) -> Networks:
        """Decode what was stored; if it cannot be decoded, start with nothing known."""
        if not data:
            return cls()
        try:
            return cls(msgspec.json.decode(data, type=dict[str, NetworkPatience]))
        except msgspec.DecodeError:
            return cls()
