"""The listener for devices that can only use HTTP: an ASGI application on the shared HTTP port.

A POST to the path opens a connection; its answer names the unique URL of that connection, to which
all further requests go. What a request means is in `wire.requests`; here requests are read, held
and answered.

    POST {path}?poll=SECONDS                        HELLO         201, Location, WELCOME
    POST {path}/{secret}/{number}?seen=N&wait=S     units         200, units
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, TypeAlias
from urllib.parse import parse_qs

from lasthop.clock import SECOND, Clock, Micros
from lasthop.delivery.channel import Switchboard
from lasthop.delivery.listener import MAX_CONNECTIONS, Listener
from lasthop.errors import (
    Conflict,
    DamagedWrite,
    HopError,
    InvalidRequest,
    LasthopError,
    Limited,
    NotFound,
    TooLarge,
)
from lasthop.transport.link import ChannelLink, Ends, Machine
from lasthop.transport.locality import from_this_machine, joined, peer_of
from lasthop.transport.stream import HIGH_WATER
from lasthop.wire.hop import layout
from lasthop.wire.hop.checksums import CHANGED
from lasthop.wire.hop.frames import DEFAULT_MAX_FRAME, MAX_HANDSHAKE
from lasthop.wire.hop.mapping import Mapping
from lasthop.wire.requests.answering import Answering
from lasthop.wire.requests.bodies import (
    BODY,
    CONTENT_TYPE,
    HEAD,
    answer_label,
    request_label,
    unpack,
    unpack_checked,
    with_checksum,
)

Scope: TypeAlias = MutableMapping[str, Any]
Event: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Event]]
Send: TypeAlias = Callable[[Event], Awaitable[None]]

LONGEST_HOLD: Micros = 50 * SECOND
"""The longest time that a request is held: below the minute after which many proxies answer in our
place."""

OPENING_HOLD: Micros = 20 * SECOND
"""How long the first answer waits for the WELCOME, which has to become durable."""

MOST_SECONDS = 86_400
"""The largest poll interval or wait that is accepted, in seconds; more is a mistake."""

SECRET = 16
"""The number of random bytes in a connection's URL: whoever knows the URL is taken for the
device."""


class RequestLink(ChannelLink):
    """A channel whose units are carried by HTTP requests and their answers."""

    __slots__ = ("_answering", "_full", "_waiting", "secret")

    ordered = False

    def __init__(
        self, ends: Ends, machine: Machine, *, secret: str, every: Micros, local: bool
    ) -> None:
        super().__init__(ends, machine, local=local)
        self.secret = secret
        self._answering = Answering(ends.clock.now(), every=every)
        self._waiting: dict[int, asyncio.Future[bytes]] = {}
        self._full = False

    def ask(
        self, number: int, units: list[bytes], *, seen: int, wait: Micros
    ) -> asyncio.Future[bytes]:
        """Handle a request and return the future of its answer; raise the error with which to
        refuse the request."""
        now = self._ends.clock.now()
        new = self._answering.ask(number, seen=seen, wait=wait, now=now)
        before = self._waiting.pop(number, None)
        if before is not None and not before.done():
            before.set_exception(Conflict("the same request came again", number=number))
        answer = self._waiting[number] = asyncio.get_running_loop().create_future()
        if new:
            for unit in units:
                self.arrived(unit, number)
        self._answer()
        self._ends.alarms.hasten(self)
        return answer

    def unpacked(self, body: bytes, number: int, seen: int) -> list[bytes]:
        """Return the units of a request's body; raise HopError, after which the link is over where
        the link changed what was written."""
        try:
            units, checked = unpack_checked(body, request_label(number, seen))
            # A device that has not seen the WELCOME yet says nothing, or CLOSE.
            spoken = any(unit[0] != layout.CLOSE for unit in units)
            if self.checked and spoken and not checked:
                raise DamagedWrite(CHANGED)
        except DamagedWrite as error:
            self.fail(error)
            raise
        return units

    def hung_up(self, number: int, answer: asyncio.Future[bytes]) -> None:
        """Note that the HTTP connection of a request broke before its answer."""
        if self._waiting.get(number) is answer:
            del self._waiting[number]
            self._answering.hung_up(number, self._ends.clock.now())

    # What a carrier of `ChannelLink` implements.

    def write(self, units: list[bytes]) -> None:
        self._answering.write(units)
        self._answer()

    def hang_up(self) -> None:
        self._answering.ending = True
        self._answer()

    def cut(self) -> None:
        self._answering.ending = True
        self.ended("the device did not fetch the last answer")
        self._answer()

    def next_timeout(self) -> Micros | None:
        due = super().next_timeout()
        ours = None if self.over else self._answering.next_timeout()
        return min((time for time in (due, ours) if time is not None), default=None)

    def timeout(self) -> None:
        now = self._ends.clock.now()
        if self._answering.gone(now):
            self.ended("no request came for too long")
            return
        due = super().next_timeout()
        if due is not None and due <= now:
            super().timeout()
        self._answer()

    @property
    def unsent(self) -> int:
        return self._answering.unsent

    def _answer(self) -> None:
        for number, body in self._answering.answers(self._ends.clock.now()):
            waiting = self._waiting.pop(number, None)
            if waiting is not None and not waiting.done():
                sent = with_checksum(body, answer_label(number)) if self.checked else body
                waiting.set_result(sent)
        unsent = self._answering.unsent
        full = unsent >= (HIGH_WATER // 4 if self._full else HIGH_WATER)
        if full is not self._full:
            self._full = full
            self.full(full)
        self.look_drained()
        if self._answering.ending and not unsent:
            self.ended("the connection is over")


class HttpListener(Listener):
    """An ASGI application that accepts devices which connect by HTTP requests."""

    def __init__(
        self,
        switchboard: Switchboard,
        *,
        clock: Clock,
        path: str = "/hop",
        hold: Micros = LONGEST_HOLD,
        max_frame: int = DEFAULT_MAX_FRAME,
        max_connections: int = MAX_CONNECTIONS,
    ) -> None:
        """Create the listener; `hold` is how long a request may wait for something to send."""
        super().__init__(
            switchboard, clock=clock, mapping=Mapping.UNORDERED, max_connections=max_connections
        )
        self._path = path
        self._hold = hold
        self._max_frame = max_frame
        self._by_secret: dict[str, RequestLink] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one HTTP request of a device."""
        try:
            if scope["method"] != "POST":
                await _answer(send, 405, b"POST is the only method here\n", allow=b"POST")
                return
            rest = scope["path"].removeprefix(self._path)
            if not rest:
                await self._open(scope, receive, send)
            else:
                await self._continue(rest, scope, receive, send)
        except LasthopError as error:
            if not isinstance(error, DamagedWrite):  # That one is counted with the link's end.
                self.errors[error.code] += 1
            status = 400 if isinstance(error, HopError) else error.http_status
            retry = error.retry_after if isinstance(error, Limited) else None
            await _answer(send, status, f"{error}\n".encode(), retry_after=retry)

    def lost(self, link: ChannelLink, reason: str) -> None:
        if isinstance(link, RequestLink):
            self._by_secret.pop(link.secret, None)
        super().lost(link, reason)

    async def stop(self) -> None:
        """Close all channels; the HTTP server itself stops accepting requests."""
        self.close_all()

    async def _open(self, scope: Scope, receive: Receive, send: Send) -> None:
        every = _seconds(_query(scope), "poll")
        body = await _body(scope, receive, most=MAX_HANDSHAKE + HEAD)
        units = unpack(body)
        secret = secrets.token_urlsafe(SECRET)
        local = from_this_machine(joined(scope["headers"]), peer_of(scope))
        link = RequestLink(self._ends, self.machine(), secret=secret, every=every, local=local)
        self._by_secret[secret] = link
        link.begin()
        answer = link.ask(0, units, seen=0, wait=OPENING_HOLD)
        place = f"{self._path}/{secret}".encode()
        await _held(receive, send, link, 0, answer, status=201, location=place)

    async def _continue(self, rest: str, scope: Scope, receive: Receive, send: Send) -> None:
        _, _, rest = rest.partition("/")
        secret, _, number = rest.partition("/")
        link = self._by_secret.get(secret)
        if link is None:
            raise NotFound("there is no such connection; open a new one")
        query = _query(scope)
        place = _number({"number": number}, "number")
        seen = _number(query, "seen")
        wait = min(_seconds(query, "wait"), self._hold)
        body = await _body(scope, receive, most=max(BODY, self._max_frame) + HEAD)
        units = link.unpacked(body, place, seen)
        answer = link.ask(place, units, seen=seen, wait=wait)
        await _held(receive, send, link, place, answer, status=200)


async def _held(
    receive: Receive,
    send: Send,
    link: RequestLink,
    number: int,
    answer: asyncio.Future[bytes],
    *,
    status: int,
    location: bytes | None = None,
) -> None:
    """Send the answer when it is there, unless the client closes its connection before."""
    if not answer.done():
        leaving = asyncio.ensure_future(receive())
        try:
            await asyncio.wait((answer, leaving), return_when=asyncio.FIRST_COMPLETED)
        finally:
            leaving.cancel()
            if not answer.done():
                link.hung_up(number, answer)
        if not answer.done():
            return
    body = answer.result()
    await _answer(send, status, body, kind=CONTENT_TYPE.encode(), location=location)


async def _body(scope: Scope, receive: Receive, *, most: int) -> bytes:
    declared = next((v for k, v in scope["headers"] if k == b"content-length"), b"0")
    if len(declared) > 18 or int(declared) > most:
        raise TooLarge("the body is too large", most=most)
    body = bytearray()
    while True:
        event = await receive()
        if event["type"] != "http.request":
            raise InvalidRequest("the body is not complete")
        body += event.get("body", b"")
        if len(body) > most:
            raise TooLarge("the body is too large", most=most)
        if not event.get("more_body"):
            return bytes(body)


def _query(scope: Scope) -> dict[str, str]:
    try:
        found = parse_qs(scope["query_string"].decode("ascii"), max_num_fields=8)
    except ValueError:
        raise InvalidRequest("the query is not understood") from None
    return {name: values[-1] for name, values in found.items()}


def _number(query: dict[str, str], name: str) -> int:
    text = query.get(name, "")
    if not (text.isascii() and text.isdigit() and len(text) <= 18):
        raise InvalidRequest(f"{name} must be a whole number", **{name: text})
    return int(text)


def _seconds(query: dict[str, str], name: str) -> Micros:
    if name not in query:
        return 0
    try:
        seconds = float(query[name])
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds <= MOST_SECONDS:
        raise InvalidRequest(
            f"{name} must be a number of seconds, at most a day", **{name: query[name]}
        )
    return round(seconds * SECOND)


async def _answer(
    send: Send,
    status: int,
    body: bytes,
    *,
    kind: bytes = b"text/plain; charset=utf-8",
    location: bytes | None = None,
    allow: bytes | None = None,
    retry_after: float | None = None,
) -> None:
    headers = [
        (b"content-type", kind),
        (b"content-length", b"%d" % len(body)),
        (b"cache-control", b"no-store"),
    ]
    if location is not None:
        headers.append((b"location", location))
    if allow is not None:
        headers.append((b"allow", allow))
    if retry_after is not None:
        headers.append((b"retry-after", b"%d" % max(1, round(retry_after))))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
