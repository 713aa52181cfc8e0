"""Links that misbehave on purpose, from a seed: the bytes are real, the network is not.

A `RehearsedLink` joins the two ends of one dialled channel. On a stream, bytes keep their order but
arrive in other pieces than they were written in, late, or not at all after a reset; a reset can
come after any byte. On a datagram link every unit travels on its own: it may be lost, duplicated or
overtaken.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from functools import partial
from random import Random

from lasthop.clock import MILLISECOND, SECOND, Micros
from lasthop.simulation.kernel import Kernel


@dataclass(frozen=True, slots=True, kw_only=True)
class Weather:
    """How a link treats the bytes that it carries: delay, loss and breaks."""

    delay: Micros = 30 * MILLISECOND
    jitter: Micros = 20 * MILLISECOND
    loss: float = 0.0
    """The share of datagrams that are lost. A stream loses nothing until it breaks."""
    duplication: float = 0.0
    reorder: float = 0.0
    """The share of datagrams that take ten times as long as the others."""
    reset_after: int | None = None
    """Bytes, in both directions together, after which a stream breaks; None: never."""
    lives: Micros | None = None
    """Time after which the link breaks, in microseconds; None: never."""
    silent: Micros = 0
    """The longest time that a break goes unnoticed at either end while nothing passes."""
    rate: int | None = None
    """Bytes per second in each direction; None: unlimited. Bytes that are written faster wait."""
    tap: Callable[[int], Micros] | None = None
    """A function that is given the number of bytes written, and returns how much longer they take
    because the device's radio may be asleep."""


class LinkEnd(Enum):
    """One of the two ends of a link."""

    DEVICE = 0
    GATEWAY = 1

    @property
    def other(self) -> LinkEnd:
        return LinkEnd.GATEWAY if self is LinkEnd.DEVICE else LinkEnd.DEVICE


class RehearsedLink:
    """One connection between a device and the gateway.

    `arrived(end, data)` and `broken(end)` are called at the end where it happens; after `broken`
    nothing more arrives there.
    """

    def __init__(
        self,
        kernel: Kernel,
        random: Random,
        weather: Weather,
        *,
        stream: bool,
        arrived: Callable[[LinkEnd, bytes], None],
        broken: Callable[[LinkEnd], None],
    ) -> None:
        self._kernel = kernel
        self._random = random
        self._weather = weather
        self._stream = stream
        self._arrived = arrived
        self._broken = broken
        self.channel = 0
        """The gateway's number for the channel; 0: the gateway does not have it."""
        self._extra: Micros = 0
        self._passed = 0
        self._full = False
        self._cut = False
        self._ended = {LinkEnd.DEVICE: False, LinkEnd.GATEWAY: False}
        self._busy_until = {LinkEnd.DEVICE: kernel.now(), LinkEnd.GATEWAY: kernel.now()}
        self._earliest = {LinkEnd.DEVICE: kernel.now(), LinkEnd.GATEWAY: kernel.now()}
        if weather.lives is not None:
            kernel.after(weather.lives, self.cut)

    def write(self, end: LinkEnd, data: bytes) -> None:
        """Send from one end: a piece of a stream, or one datagram."""
        if self._cut or self._full or self._ended[end]:
            return
        if self._weather.tap is not None:
            self._extra = self._weather.tap(len(data))
        if self._weather.rate is not None:
            start = max(self._kernel.now(), self._busy_until[end])
            left = start + len(data) * SECOND // self._weather.rate
            self._busy_until[end] = left
            self._extra = left - self._kernel.now()
        if self._stream:
            self._write_stream(end, data)
        else:
            self._write_datagram(end, data)

    def drained_at(self, end: LinkEnd) -> Micros:
        """Return when everything that this end has written will have left it."""
        return max(self._kernel.now(), self._busy_until[end])

    def close(self, end: LinkEnd) -> None:
        """Hang up at one end: what it wrote still arrives, then the other end is told."""
        if self._ended[end]:
            return
        self._ended[end] = True
        if not self._cut:
            self._kernel.at(self._earliest[end.other] + 1, lambda: self._end(end.other))

    def cut(self) -> None:
        """Break the link: what is in flight is lost, and each end notices after a random time."""
        if self._cut:
            return
        self._cut = True
        for end in LinkEnd:
            noticed = self._random.randint(0, self._weather.silent)
            self._kernel.after(noticed, partial(self._end, end))

    def _end(self, end: LinkEnd) -> None:
        if not self._ended[end]:
            self._ended[end] = True
            self._broken(end)

    def _write_stream(self, end: LinkEnd, data: bytes) -> None:
        limit = self._weather.reset_after
        if limit is not None and self._passed + len(data) >= limit:
            data = data[: max(0, limit - self._passed)]
            self._passed = limit
            self._pieces(end, data)
            # Bytes before the break still arrive, so the break is at exactly this byte.
            self._full = True
            self._kernel.at(max(self._earliest.values()) + 1, self.cut)
            return
        self._passed += len(data)
        self._pieces(end, data)

    def _pieces(self, end: LinkEnd, data: bytes) -> None:
        while data:
            size = len(data) if self._random.random() < 0.7 else self._random.randint(1, len(data))
            piece, data = data[:size], data[size:]
            self._deliver(end.other, piece, max(self._earliest[end.other], self._due()))

    def _write_datagram(self, end: LinkEnd, data: bytes) -> None:
        weather = self._weather
        if self._random.random() < weather.loss:
            return
        copies = 2 if self._random.random() < weather.duplication else 1
        for _ in range(copies):
            due = self._due()
            if self._random.random() < weather.reorder:
                due += 10 * weather.delay
            self._deliver(end.other, data, due)

    def _due(self) -> Micros:
        weather = self._weather
        jitter = self._random.randint(0, weather.jitter)
        return self._kernel.now() + self._extra + weather.delay + jitter

    def _deliver(self, end: LinkEnd, data: bytes, due: Micros) -> None:
        self._earliest[end] = max(self._earliest[end], due)

        def arrive() -> None:
            if not (self._cut or self._ended[end]):
                self._arrived(end, data)

        self._kernel.at(due, arrive)
