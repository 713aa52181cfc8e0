"""Two ends and a network between them that loses, doubles and reorders, on a clock of its own."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Protocol

from lasthop.clock import MILLISECOND, SECOND, Micros
from lasthop.wire.wtp.transaction import Peer


@dataclass(frozen=True, slots=True)
class Weather:
    """What becomes of datagrams. `clears_at` is when it becomes fair."""

    loss: float = 0.0
    doubling: float = 0.0
    delay: Micros = 50 * MILLISECOND
    spread: Micros = 0
    clears_at: Micros | None = None


class End(Protocol):
    """Whoever is at one end: an endpoint, a server or a client."""

    def datagrams(self) -> Sequence[tuple[bytes, Peer]]: ...
    def next_timeout(self) -> Micros | None: ...


@dataclass
class Air:
    """The network, with a time of its own."""

    seed: int
    weather: Weather = field(default_factory=Weather)
    now: Micros = 0
    sent: int = 0
    captured: list[tuple[Peer, Peer, bytes]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._random = Random(self.seed)
        self._count = 0
        self._flying: list[tuple[Micros, int, Peer, Peer, bytes]] = []
        self._ends: dict[
            Peer, tuple[End, Callable[[bytes, Peer, Micros], None], Callable[[Micros], None]]
        ] = {}

    def add(
        self,
        name: Peer,
        end: End,
        receive: Callable[[bytes, Peer, Micros], None],
        timeout: Callable[[Micros], None],
    ) -> None:
        """Put somebody on the network, in place of whoever had the name."""
        self._ends[name] = end, receive, timeout

    def flush(self) -> None:
        """Let everybody's datagrams fly."""
        for name, (end, _, _) in self._ends.items():
            for data, peer in end.datagrams():
                self._send(name, peer, data)

    def _send(self, source: Peer, to: Peer, data: bytes) -> None:
        weather = self.weather
        fair = weather.clears_at is not None and self.now >= weather.clears_at
        self.sent += 1
        self.captured.append((source, to, data))
        copies = 1
        if not fair:
            copies = int(self._random.random() >= weather.loss)
            while copies and copies < 4 and self._random.random() < weather.doubling:
                copies += 1
        for _ in range(copies):
            self._count += 1
            arrives = self.now + weather.delay + self._random.randint(0, weather.spread)
            heapq.heappush(self._flying, (arrives, self._count, to, source, data))

    def step(self, limit: Micros) -> bool:
        """Go on to whatever happens next; false when nothing does before `limit`."""
        self.flush()
        dues = [due for end, _, _ in self._ends.values() if (due := end.next_timeout()) is not None]
        if self._flying:
            dues.append(self._flying[0][0])
        if not dues or min(dues) > limit:
            return False
        self.now = max(self.now, min(dues))
        while self._flying and self._flying[0][0] <= self.now:
            _, _, to, source, data = heapq.heappop(self._flying)
            if to in self._ends:
                self._ends[to][1](data, source, self.now)
        for end, _, timeout in self._ends.values():
            due = end.next_timeout()
            if due is not None and due <= self.now:
                timeout(self.now)
        self.flush()
        return True

    def run(self, until: Callable[[], bool] = lambda: False, limit: Micros = 600 * SECOND) -> None:
        """Until something is so, or nothing happens any more, or so much time has passed."""
        end = self.now + limit
        while not until() and self.step(end):
            pass
