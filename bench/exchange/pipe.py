"""One direction of a network: packets leave one by one at its rate, and arrive in order."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from bench.exchange.networks import Network
from lasthop.clock import SECOND, Micros
from lasthop.simulation.kernel import Kernel


class Pipe:
    """One direction of a network, with a queue, a rate, a delay and a loss.

    Half of the least round trip is the least delay; the rest is drawn from an exponential
    distribution that gives the average, cut off at the most.
    """

    def __init__(self, kernel: Kernel, random: Random, network: Network, *, up: bool) -> None:
        self._kernel = kernel
        self._random = random
        self._rate = network.up if up else network.down
        self._loss = network.loss
        least, average, most = network.round_trip
        self._least = least // 2
        self._more = (average - least) / 2
        self._most_more = (most - least) / 2
        self._free: Micros = kernel.now()
        self._last: Micros = kernel.now()
        self.packets = 0
        self.octets = 0

    def carry(self, size: int, arrive: Callable[[], None]) -> Micros:
        """Send a packet of `size` octets, headers included; return when it arrives unless it is
        lost."""
        self.packets += 1
        self.octets += size
        leaves = max(self._free, self._kernel.now()) + size * 8 * SECOND // self._rate
        self._free = leaves
        extra = min(self._random.expovariate(1.0), self._most_more / self._more) * self._more
        due = max(self._last, leaves + self._least + int(extra))
        if self._random.random() >= self._loss:
            self._last = due
            self._kernel.at(due, arrive)
        return due
