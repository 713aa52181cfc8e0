"""Measures what a device received: how many messages, in which order, how late.

Payloads are only collected during a run and parsed when it is over, so that the check costs the
device no time that would count against a broker.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

from bench.hop.payload import now, number_of, time_of


@dataclass(frozen=True, slots=True)
class Seen:
    """The measurements of one run at a device."""

    received: int
    missing: int
    duplicates: int
    disordered: int
    """Messages that came after a later one of the same lane."""
    last: float
    """When the last message came, on the shared clock."""
    delays: list[float] = field(default_factory=list)
    """Seconds from due to received, in order of arrival."""


class Meter:
    """Collects the payloads of one run after another."""

    def __init__(self) -> None:
        self._first = 0
        self._expected = 0
        self._payloads: list[bytes] = []
        self._arrivals: list[tuple[float, int]] = []
        self._done: asyncio.Future[None] | None = None

    def start(self, first: int, count: int) -> asyncio.Future[None]:
        """Expect `count` payloads from number `first` on; the returned future is done when all have
        arrived."""
        self._first, self._expected = first, count
        self._payloads, self._arrivals = [], []
        self._done = asyncio.get_running_loop().create_future()
        return self._done

    def take(self, payloads: Sequence[bytes]) -> None:
        """Collect payloads that arrived together."""
        self._payloads.extend(payloads)
        self._arrivals.append((now(), len(payloads)))
        if len(self._payloads) >= self._expected and self._done is not None:
            # A handler may run in a thread of its inbox.
            self._done.get_loop().call_soon_threadsafe(_finish, self._done)
            self._done = None

    def seen(self, *, batch: int = 1, lanes: int = 1, delays: bool = False) -> Seen:
        """Return the measurements so far. Order is promised within a lane; batches go to the lanes
        in turn."""
        numbers = [number_of(payload) for payload in self._payloads]
        distinct = set(numbers)
        wanted = range(self._first, self._first + self._expected)
        highest: dict[int, int] = {}
        disordered = 0
        for number in numbers:
            lane = (number - self._first) // batch % lanes
            if number < highest.get(lane, -1):
                disordered += 1
            else:
                highest[lane] = number
        return Seen(
            received=len(numbers),
            missing=sum(number not in distinct for number in wanted),
            duplicates=len(numbers) - len(distinct),
            disordered=disordered,
            last=self._arrivals[-1][0] if self._arrivals else 0.0,
            delays=self._delays() if delays else [],
        )

    def _delays(self) -> list[float]:
        delays: list[float] = []
        for at, count in self._arrivals:
            start = len(delays)
            delays.extend(at - time_of(p) for p in self._payloads[start : start + count])
        return delays


def _finish(done: asyncio.Future[None]) -> None:
    if not done.done():
        done.set_result(None)
