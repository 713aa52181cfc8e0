"""The gateway's side of one connection over HTTP requests: which requests to answer now, and with
what.

A request without units may be held until there is something to send. The body of an answer is kept
until the device has said that it saw the answer, so that the same request may come again. The rules
are in docs/hop-protocol.md, "HTTP requests".
"""

from __future__ import annotations

from lasthop.clock import SECOND, Micros
from lasthop.errors import Conflict, InvalidRequest, QuotaExceeded
from lasthop.wire.requests.bodies import UnitsToSend

WINDOW = 16
"""How far a request's number may be ahead of the first whose answer the device has not seen. A
device has four requests open at a time; this limit bounds what is kept for lost requests."""

MOST_HELD = 4
"""The largest number of requests of one connection that are held at once; when one more comes, the
first is answered."""

MOST_KEPT = 256 * 1024
"""The largest number of bytes of answers that the device has not yet said it saw; beyond that
answers are empty. Four bodies: a device has as many requests open."""

PER_SECOND = 200
BURST = 400
"""The rate and the burst of requests that one connection is allowed. A device that polls ten times
a second, or sends as fast as two requests at a time allow over a local network, stays below
both."""

SHORTEST_IDLE: Micros = 30 * SECOND
"""The shortest time without a request after which the device counts as gone. Between two requests
there is a round trip, and a retry or two when requests get lost."""


class Answering:
    """The state of one connection at the gateway: requests that are held, and answers kept for
    repeats."""

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
        """Start at `now`; `every` is the interval of a device that polls."""
        self._outgoing = UnitsToSend()
        self._held: dict[int, Micros] = {}
        """The requests that wait for an answer, each with the time until which it may be held."""
        self._left: set[int] = set()
        """Requests whose units were taken and whose HTTP connection broke before the answer."""
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
        """Whether no units will follow: held requests are then answered at once."""

    @property
    def unsent(self) -> int:
        """Bytes of units that no answer carries yet."""
        return self._outgoing.size

    @property
    def held(self) -> int:
        """The number of requests that wait for an answer."""
        return len(self._held)

    def write(self, units: list[bytes]) -> None:
        """Queue units for the next answer."""
        self._outgoing.add(units)

    def ask(self, number: int, *, seen: int, wait: Micros, now: Micros) -> bool:
        """Register a request, which may be held for `wait`. Return False if its units were taken
        before, because the request is a repeat. Raise the error with which to refuse it."""
        self._count(now)
        # Requests overtake one another, so an earlier one may report a lower `seen` than we know.
        seen = max(seen, self._seen)
        if number < seen:
            raise Conflict("the answer to this request was seen already", number=number, seen=seen)
        # docs/hop-protocol.md, "HTTP requests": a request is at most 15 ahead of `seen`.
        if number >= seen + WINDOW:
            raise InvalidRequest("too many requests are open", number=number, seen=seen)
        self._last = now
        self._see(seen)
        # A repeated request gets the answer that it got before; its units are not taken again.
        if number in self._kept:
            self._again.append(number)
            return False
        new = number not in self._held and number not in self._left
        self._left.discard(number)
        self._held[number] = now + wait
        self._newest = max(self._newest, number)
        return new

    def hung_up(self, number: int, now: Micros) -> None:
        """Note that a held request's HTTP connection broke; the same request may come again."""
        if self._held.pop(number, None) is not None:
            self._left.add(number)
            self._last = now

    def answers(self, now: Micros) -> list[tuple[int, bytes]]:
        """Return the requests to answer now, each with the body of its answer."""
        ready = [(number, self._kept[number]) for number in self._again if number in self._kept]
        self._again = []
        for number in sorted(self._held):
            # A device that never reports what it saw must not make us keep ever more answers.
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
        """Return when `answers` or `gone` may change without a new request."""
        return min(self._held.values()) if self._held else self._last + self._idle

    def gone(self, now: Micros) -> bool:
        """Whether the device has made no request for too long, so that the connection is over."""
        return not self._held and now >= self._last + self._idle

    def _is_over(self, number: int, now: Micros) -> bool:
        """Whether to answer a held request although there is nothing to send: its time is up, or it
        keeps the device from making more requests."""
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
