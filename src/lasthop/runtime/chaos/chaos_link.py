"""The proxy between one device or publisher and the gateway, which cuts, delays, corrupts,
half-closes and black-holes connections."""

from __future__ import annotations

import asyncio
from random import Random

from lasthop.runtime.demo.emulator import EmulatedLink, LinkHalf
from lasthop.runtime.demo.pace import DirectionPace
from lasthop.runtime.demo.profiles import LinkProfile

CLEAR = LinkProfile(name="chaos", delay=0.0, jitter=0.0, rate=1 << 30, up=1.0, down=1.0)
"""A link that does nothing by itself: every fault comes from the schedule."""


class ChaosLink(EmulatedLink):
    """A link that passes everything on, except for the faults that are asked for."""

    def __init__(self, target: tuple[str, int], random: Random) -> None:
        super().__init__(CLEAR, target, random=random.random)
        self._chances = random
        self.late = 0.0
        """Seconds by which everything that enters now is late."""
        self._to_corrupt = 0
        self._occupied = asyncio.Event()

    def joined(self, half: LinkHalf) -> None:
        super().joined(half)
        if len(self._open) > 1:
            self._occupied.set()

    def left(self, half: LinkHalf) -> None:
        super().left(half)
        if len(self._open) < 2:
            self._occupied.clear()

    async def occupied(self) -> None:
        """Wait until there is a connection to do something to."""
        await self._occupied.wait()

    def pace(self) -> DirectionPace:
        return _LatePace(self)

    def corrupt(self, pieces: int) -> int:
        """Flip one bit in each of the next pieces that pass, in either direction; return how many
        pieces were left to damage before."""
        before, self._to_corrupt = self._to_corrupt, pieces
        return before

    def altered(self, data: bytes) -> bytes:
        """Return the bytes, with one bit flipped while the link is to corrupt."""
        if not self._to_corrupt:
            return data
        self._to_corrupt -= 1
        damaged = bytearray(data)
        damaged[self._chances.randrange(len(damaged))] ^= 1 << self._chances.randrange(8)
        return bytes(damaged)

    def hold(self) -> None:
        """Swallow everything in silence, new connections included, until `restore`."""
        self._silent = True

    def calm(self) -> None:
        """End every fault of this link that still lasts."""
        self.late, self._to_corrupt = 0.0, 0
        self.restore()


class _LatePace(DirectionPace):
    """Lets bytes leave as late as the link says, and never before those that entered earlier."""

    def __init__(self, link: ChaosLink) -> None:
        super().__init__(CLEAR, lambda: 0.0)
        self._link = link

    def leaves(self, size: int, now: float) -> float:
        self._last = max(self._last, now + self._link.late)
        return self._last
