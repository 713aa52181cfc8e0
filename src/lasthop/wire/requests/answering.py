"""The gateway's side of one connection over HTTP requests: which of them to answer now, with what.

A request that brings nothing may be held until there is something to say. What an answer carried is
kept until the device has said that it saw it, so that the same request may come again.
"""

from __future__ import annotations

from lasthop.clock import SECOND, Micros
from lasthop.errors import Conflict, InvalidRequest, QuotaExceeded
from lasthop.wire.requests.bodies import UnitsToSend

WINDOW = 16
"""How far a request's number may be ahead of the first whose answer the device has not seen. A
device has four requests open at a time; this bounds what is kept for those that get lost."""

MOST_HELD = 4
"""Requests of one connection that are held at once; a fifth frees the first."""

MOST_KEPT = 256 * 1024
"""Bytes of answers that the device has not said it saw; beyond that they carry nothing. Four
bodies, as many as a device has requests open."""

PER_SECOND = 200
BURST = 400
"""Requests of one connection. A device that polls ten times a second, or sends as fast as two
requests at a time allow over a local network, stays below that."""

SHORTEST_IDLE: Micros = 30 * SECOND
"""Without a request for so long the device is gone. Between two requests there is a round trip, and
a retry or two when they get lost."""


class Answering:
    """Requests in, answers out."""

    __slots__ = (
        "_again",
        "_allowance",
        "_counted_at",
        "_held",
        "_idle",
        "_kept",
        "_kept_bytes",
        "_last",
        "_left",
        "_newest",
        "_outgoing",
        "_seen",
        "ending",
    )

    def __init__(self, now: Micros, *, every: Micros = 0) -> None:
        """A device that polls says how often: `every`."""
        self._outgoing = UnitsToSend()
        self._held: dict[int, Micros] = {}
        """Requests that wait for an answer, and until when."""
        self._left: set[int] = set()
        """Requests whose units were taken, and for whose answers nobody waits just now."""
        self._kept: dict[int, bytes] = {}
        self._kept_bytes = 0
        self._again: list[int] = []
        self._seen = 0
        self._newest = -1
        self._idle = max(SHORTEST_IDLE, every * 5 // 2)
        self._last = now
        self._allowance = BURST * SECOND
        self._counted_at = now
        self.ending = False
        """Nothing more will be said: whoever waits is let go."""

    @property
    def unsent(self) -> int:
        """Bytes that no answer has taken yet."""
        return self._outgoing.size

    @property
    def held(self) -> int:
        """How many requests wait for an answer."""
        return len(self._held)

    def write(self, units: list[bytes]) -> None:
        """Say this when there is a request to answer."""
        self._outgoing.add(units)

    def ask(self, number: int, *, seen: int, wait: Micros, now: Micros) -> bool:
        """A request came, which may be held for `wait`. Returns whether it is new: if not, its
        units have been taken already. Raises what the request is to be refused with."""
        self._count(now)
        # Requests overtake one another, so an earlier one may say less than we know.
        seen = max(seen, self._seen)
        if number < seen:
            raise Conflict("the answer to this request was seen already", number=number, seen=seen)
        if number >= seen + WINDOW:
            raise InvalidRequest("too many requests are open", number=number, seen=seen)
        self._last = now
        self._see(seen)
        if number in self._kept:
            self._again.append(number)
            return False
        new = number not in self._held and number not in self._left
        self._left.discard(number)
        self._held[number] = now + wait
        self._newest = max(self._newest, number)
        return new

    def hung_up(self, number: int, now: Micros) -> None:
        """Nobody waits for this answer any more; the same request may come again."""
        if self._held.pop(number, None) is not None:
            self._left.add(number)
            self._last = now

    def answers(self, now: Micros) -> list[tuple[int, bytes]]:
        """The requests to answer now."""
        ready = [(number, self._kept[number]) for number in self._again if number in self._kept]
        self._again = []
        for number in sorted(self._held):
            full = self._kept_bytes >= MOST_KEPT
            body = b"" if full else self._outgoing.pack()
            if body or self._is_over(number, now):
                del self._held[number]
                self._kept[number] = body
                self._kept_bytes += len(body)
                ready.append((number, body))
        if ready:
            self._last = now
        return ready

    def next_timeout(self) -> Micros:
        """When `answers` or `gone` may change without a request."""
        return min(self._held.values()) if self._held else self._last + self._idle

    def gone(self, now: Micros) -> bool:
        """Whether the device has asked nothing for too long."""
        return not self._held and now >= self._last + self._idle

    def _is_over(self, number: int, now: Micros) -> bool:
        """Whether a held request is let go without anything to say. One that is held for long must
        not keep the device from asking more."""
        return (
            self.ending
            or self._held[number] <= now
            or len(self._held) > MOST_HELD
            or number <= self._newest - WINDOW // 2
        )

    def _see(self, seen: int) -> None:
        self._seen = seen
        for number in [number for number in self._kept if number < seen]:
            self._kept_bytes -= len(self._kept.pop(number))
        for number in [number for number in self._held if number < seen]:
            del self._held[number]
        self._left = {number for number in self._left if number >= seen}

    def _count(self, now: Micros) -> None:
        passed = max(0, now - self._counted_at)
        self._counted_at = now
        self._allowance = min(BURST * SECOND, self._allowance + passed * PER_SECOND)
        if self._allowance < SECOND:
            raise QuotaExceeded("too many requests", retry_after=1)
        self._allowance -= SECOND
