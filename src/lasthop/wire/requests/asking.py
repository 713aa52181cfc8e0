"""The device's side of one connection over HTTP requests: what to request next, and when to retry.

`HeldRequests` keeps a few requests waiting at the gateway, so that the gateway can send at any
time, and sends units in other requests beside them. `Polling` makes one short request at a time:
often while messages flow, then at growing intervals.
"""

from __future__ import annotations

from typing import NamedTuple

from lasthop.clock import MILLISECOND, SECOND, Micros
from lasthop.wire.requests.answering import WINDOW
from lasthop.wire.requests.bodies import UnitsToSend

TOKENS = 2
"""Requests that wait at the gateway: while the answer to one is on its way, the other waits."""

LANES = 2
"""The largest number of requests at a time that carry units of the device."""

WAIT: Micros = 50 * SECOND
"""How long the gateway may hold a request: below the minute after which many proxies give up."""

ATTEMPTS = 5
"""The largest number of attempts of one request; with the pauses below they take four seconds. Then
the device dials again."""

FIRST_PAUSE: Micros = 250 * MILLISECOND

QUICK: Micros = 200 * MILLISECOND
"""The time until the next poll after one that carried units in either direction: more may
follow."""


class RequestToMake(NamedTuple):
    """An HTTP request that the caller is to make."""

    number: int
    seen: int
    """The answers to all requests below this number were seen."""
    wait: Micros
    body: bytes


class _OpenRequest:
    """A request that is not answered yet."""

    __slots__ = ("again_at", "attempts", "body", "wait")

    def __init__(self, wait: Micros, body: bytes) -> None:
        self.wait = wait
        self.body = body
        self.attempts = 1
        self.again_at: Micros | None = None
        """When to repeat the request after a failure; None while it is under way."""


class RequestClient:
    """What held requests and polling share: numbers, retries and the end of the connection."""

    __slots__ = ("_ending", "_next", "_open", "_outgoing")

    def __init__(self) -> None:
        self._outgoing = UnitsToSend()
        self._open: dict[int, _OpenRequest] = {}
        # The request that opened the connection was number 0.
        self._next = 1
        self._ending = False

    @property
    def unsent(self) -> int:
        """Bytes of units that no request carries yet."""
        return self._outgoing.size

    @property
    def over(self) -> bool:
        """Whether all units were sent and answered, after `finish`."""
        return self._ending and not self._outgoing and not self._talking

    @property
    def _talking(self) -> int:
        """The number of open requests that carry units."""
        return sum(1 for request in self._open.values() if request.body)

    def write(self, units: list[bytes]) -> None:
        """Queue units for the next request."""
        self._outgoing.add(units)

    def finish(self) -> None:
        """Make no more requests once the queued units are sent; later answers are not needed."""
        self._ending = True

    def requests(self, now: Micros) -> list[RequestToMake]:
        """Return the requests to make now; failed requests come first, under their old numbers."""
        seen = min(self._open, default=self._next)
        asks = []
        for number, request in self._open.items():
            if request.again_at is not None and request.again_at <= now:
                request.again_at = None
                request.attempts += 1
                asks.append(RequestToMake(number, seen, request.wait, request.body))
        while new := self._new(now):
            for wait in new:
                body = b"" if wait else self._outgoing.pack()
                number, self._next = self._next, self._next + 1
                self._open[number] = _OpenRequest(wait, body)
                asks.append(RequestToMake(number, min(seen, number), wait, body))
        return asks

    def answered(self, number: int, now: Micros, *, brought: bool) -> bool:
        """Note the answer to a request, and whether it `brought` units; return False for a repeated
        answer."""
        request = self._open.pop(number, None)
        if request is None:
            return False
        self._settled(now, useful=brought or bool(request.body))
        return True

    def failed(self, number: int, now: Micros, *, pause: Micros = 0) -> bool:
        """Note that no answer came, or one that asks for a pause, and repeat the request later.
        Return False if it has failed too often."""
        request = self._open.get(number)
        if request is None:
            return True
        if request.attempts >= ATTEMPTS:
            return False
        # The first failure may only be an old connection, which says nothing about the network.
        backoff = FIRST_PAUSE << (request.attempts - 2) if request.attempts > 1 else 0
        request.again_at = now + max(pause, backoff)
        return True

    def next_timeout(self) -> Micros | None:
        """Return when `requests` may have more to make; None if only an answer can change that."""
        times = [r.again_at for r in self._open.values() if r.again_at is not None]
        return min(times, default=None)

    def _new(self, now: Micros) -> list[Micros]:
        """Return the new requests to make now: for each, how long the gateway may hold it."""
        raise NotImplementedError

    def _settled(self, now: Micros, *, useful: bool) -> None:
        """Note that a request was answered, and whether units went in either direction."""


class HeldRequests(RequestClient):
    """The device's side with held requests: some wait at the gateway for its units, others carry
    the device's units."""

    __slots__ = ("greeted",)

    def __init__(self) -> None:
        super().__init__()
        self.greeted = True
        """Whether the WELCOME has arrived. Before, only one request waits: nothing may overtake the
        WELCOME."""

    def _new(self, now: Micros) -> list[Micros]:
        oldest = min(self._open, default=self._next)
        room = oldest + WINDOW - self._next
        talking = self._talking
        new: list[Micros] = []
        # One at a time: only packing shows whether units are left for another lane.
        if self._outgoing and talking < LANES and room > 0:
            new.append(0)
            room -= 1
        tokens = len(self._open) - talking
        if not self._ending:
            most = TOKENS if self.greeted else 1
            new += [WAIT] * min(most - tokens, max(0, room))
        return new


class Polling(RequestClient):
    """The device's side with polling: one short request at a time, which carries units in both
    directions."""

    __slots__ = ("_due", "_every", "_pause")

    def __init__(self, now: Micros, *, every: Micros) -> None:
        super().__init__()
        self._every = every
        self._pause = min(QUICK, every)
        self._due = now + self._pause

    def next_timeout(self) -> Micros | None:
        due = super().next_timeout()
        return due if self._open or self._ending else self._due

    def _new(self, now: Micros) -> list[Micros]:
        asks = not self._open and (self._outgoing or (now >= self._due and not self._ending))
        return [0] if asks else []

    def _settled(self, now: Micros, *, useful: bool) -> None:
        self._pause = min(self._every, QUICK if useful else 2 * self._pause)
        self._due = now + self._pause
