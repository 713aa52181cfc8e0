"""HTTP connections of strangers: how much of a request is taken in, how long it may take, and who
is served when there are too many.

uvicorn and its parser have no such limits. Here the bytes of a head are counted while they come,
one timer for a connection looks whether it gets on, and `Admission` says whether there is room.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias, cast

import httptools
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from lasthop.delivery.tcp import TLS_HANDSHAKE
from lasthop.errors import InvalidRequest, LasthopError, Limited, Overloaded
from lasthop.runtime.admission import Admission, ConnectionPlace
from lasthop.runtime.certificates import CertifiedProtocol
from lasthop.runtime.heads import (
    MAX_FIELDS,
    MAX_HEAD,
    check_host,
    check_size,
    too_large,
    too_many,
)
from lasthop.runtime.refusals import TooSlow, refusal
from lasthop.runtime.upgraded import UpgradedProtocol
from lasthop.transport.locality import joined

PIECE = 16 << 10
"""Bytes that the parser gets at a time. A head that came in one piece is not too large, and of one
that is too large no more than that is taken in."""

ROOM = MAX_HEAD + PIECE
"""Bytes of a request that are not its body: a head, of which the first piece may be something else,
and then what chunks have around them."""

BODY_WORTH = 16
"""Bytes around chunks that one byte of the body gives room for: a chunk of one byte has five."""

MAX_WAITING = 256
"""Requests on one connection that wait for the answers of earlier ones: each takes 4 KiB. The
socket is not read while any waits; this is for what came with the first."""

LAST_BYTES = 1 << 20
"""Bytes that are thrown away after the last word: to close while they come would take it away from
a peer that first sends and then reads."""

RETRY_AFTER = 10.0
"""Seconds after which somebody is likely to have left."""

UNGUARDED = frozenset({b"/health", b"/ready", b"/metrics"})
"""What is answered however many connections there are."""

IDLE, HEAD, BODY = range(3)
"""How far the request is that comes in."""

Administers: TypeAlias = Callable[[Mapping[bytes, bytes], str | None, str | None], bool]
"""Whether a request with these headers (see `joined`), from this address and with this certificate,
is of an administrator."""


@dataclass(frozen=True, slots=True)
class GuardPatience:
    """How long others may take, in seconds."""

    handshake: float = TLS_HANDSHAKE
    """Until TLS is there."""
    first: float = 30.0
    """Until a new connection says anything."""
    head: float = 30.0
    """From the first byte of a request to the end of its headers."""
    crowded: float = 5.0
    """The same two for a connection that is one too many."""
    body: float = 30.0
    """In this time the next part of a body has to come."""
    unread: float = 15.0
    """In this time some of an answer has to be read; it may take twice as long to be noticed."""
    last: float = 2.0
    """To hear the last word, while what else comes is thrown away."""
    slowest: int = 256
    """Bytes in a second of a body or an answer. GPRS brings ten times as much; what is slower is
    likely to be slow on purpose."""


@dataclass(frozen=True, slots=True)
class Guard:
    """What all connections of a server have in common."""

    admission: Admission
    administers: Administers = lambda headers, peer, certificate: False
    patience: GuardPatience = field(default_factory=GuardPatience)
    refused: Counter[str] = field(default_factory=Counter)
    """Requests that were refused here, by code."""


class GuardedProtocol(CertifiedProtocol):
    """One connection."""

    def __init__(
        self, *args: Any, guard: Guard, place: ConnectionPlace | None = None, **more: Any
    ) -> None:
        """`place` is what the connection has taken already, if it has."""
        super().__init__(*args, **more)
        self.url = b""
        self.headers = []
        self._guard = guard
        self._place = place
        self.crowded = False
        """Whether this is a connection too many, which ends with its first answer."""
        self._phase = IDLE
        self._room = ROOM
        """Bytes that may still come that are not of a body; negative when nobody listens any
        more."""
        self._host = b""
        """The last one that was found to be well formed."""
        self._heard_at = 0.0
        self._since = 0.0
        """When the present phase began, or the last answer ended."""
        self._body = 0
        """Bytes of the body since then."""
        self._unread: tuple[float, int] | None = None
        """When an answer was last seen to wait, and how much had been read by then."""
        self._last_word = b""
        """What is said after the last answer."""
        self._ended = False
        """Whether the last word has been said."""
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take a place, and give the peer a while to ask for something."""
        super().connection_made(transport)
        if self._place is None:
            peer = self.client[0] if self.client else None
            self._place = self._guard.admission.enter(peer, transport.abort)
        else:
            self._place.cut = transport.abort
        self.crowded = self._place.crowded
        self._since = self.loop.time()
        patience = self._guard.patience
        self._look_in(patience.crowded if self.crowded else patience.unread)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._room = -1
        if self._timer is not None:
            self._timer.cancel()
        if self._place is not None:
            self._place.leave()

    # How much comes in.

    def data_received(self, data: bytes) -> None:
        self._heard_at = self.loop.time()
        if len(data) <= PIECE:
            self._parse(data)
            return
        view = memoryview(data)
        for at in range(0, len(data), PIECE):
            self._parse(view[at : at + PIECE])

    def _parse(self, piece: bytes | memoryview) -> None:
        if self._room < 0:
            self._room -= len(piece)
            if self._room < -LAST_BYTES and not self.transport.is_closing():
                self.transport.close()
            return
        try:
            self.parser.feed_data(piece)
        except httptools.HttpParserUpgrade:
            if self._should_upgrade():
                self.handle_websocket_upgrade()
            return
        except httptools.HttpParserError as error:
            cause = error.__context__
            if not isinstance(cause, LasthopError):
                cause = InvalidRequest(f"this is no HTTP request: {error}")
            self._refuse(cause)
            return
        self._room -= len(piece)
        if self._room < 0:
            self._refuse(too_large(self.url))
        elif len(self.headers) > MAX_FIELDS:
            self._refuse(too_many())

    def on_message_begin(self) -> None:
        """A request begins; what ASGI wants to know of it may not be needed."""
        self.url = b""
        self.headers = []
        self._phase = HEAD
        self._room = ROOM
        self._since = self._heard_at

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers.append((name.lower(), value))

    def head(self) -> dict[bytes, bytes]:
        """The headers of a request whose head is there; refuses what must not be answered."""
        fields = self.headers
        headers = dict(fields)
        if len(fields) > MAX_FIELDS:
            raise too_many()
        if self._room != ROOM:  # It came in more than one piece.
            check_size(self.url, fields)
        host = headers.get(b"host")
        if host != self._host or not host or len(headers) != len(fields):
            times = sum(name == b"host" for name, _ in fields)
            check_host(host, times=times, version=self.parser.get_http_version())
            self._host = host or b""
        if self.crowded:
            self._check_guest()
        self._since = self._heard_at
        self._body = 0
        return headers

    def _check_guest(self) -> None:
        if self.url.partition(b"?")[0] in UNGUARDED:
            return
        peer = self.client[0] if self.client else None
        trusted = self._guard.administers(joined(self.headers), peer, self._subject)
        if self._place is not None:
            self._place.trusted = trusted
        # A device that stays is not what the room is kept for.
        if not trusted or self.parser.should_upgrade():
            raise Overloaded("there are too many connections", retry_after=RETRY_AFTER)

    def begin_asgi(self) -> None:
        """Let the application have the request whose head is there."""
        if len(self.pipeline) >= MAX_WAITING:
            raise Limited(
                "too many requests wait on this connection", retry_after=1.0, limit=MAX_WAITING
            )
        url, fields = self.url, self.headers
        super().on_message_begin()
        for name, value in fields:
            super().on_header(name, value)
        self.url = url
        super().on_headers_complete()
        self._phase = BODY
        if not self.parser.should_upgrade():
            self.headers = []  # What follows chunks is not for those who look at headers.
        if self.crowded:
            self.cycle.keep_alive = False

    def body_came(self, size: int) -> None:
        """Some bytes of the body are there."""
        self._body += size
        self._room = min(ROOM, self._room + BODY_WORTH * size)

    def on_body(self, body: bytes) -> None:
        self.body_came(len(body))
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._phase = IDLE
        super().on_message_complete()

    def handle_websocket_upgrade(self) -> None:
        """From here on the connection is another protocol's; its place goes with it."""
        self._room = -1
        if self._timer is not None:
            self._timer.cancel()
        super().handle_websocket_upgrade()
        upgraded = cast(UpgradedProtocol, self.transport.get_protocol())
        upgraded.linger = self._guard.patience.unread
        if self._place is not None:
            upgraded.leave = self._place.leave

    # How long it takes: one timer for a connection, not one for a request. When it rings, it looks.

    def on_response_complete(self) -> None:
        """A request has been answered: the next one begins, or the connection is idle."""
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            return
        self.flow.resume_reading()
        if self.pipeline:
            self._start_asgi_task(*self.pipeline.pop())
            return
        self._since = self.loop.time()
        if self._last_word:
            self._end(self._last_word)

    def _look_in(self, seconds: float) -> None:
        self._timer = self.loop.call_later(seconds, self._look)

    def _look(self) -> None:
        now = self.loop.time()
        if self._is_unread(now):
            self.transport.abort()
            return
        if self._ended and not self.transport.is_closing():
            self.transport.close()
        most = self._guard.patience.unread
        left = most if self.transport.is_closing() else self._left(now)
        if left <= 0:
            self._late()
            left = most
        self._look_in(min(left, most))

    def _left(self, now: float) -> float:
        """Seconds until the peer has to have done something."""
        patience = self._guard.patience
        if self._phase == BODY:
            return self._left_for_body(now)
        if self.answering():
            return patience.unread
        if self.crowded:
            limit = patience.crowded
        elif self._phase == HEAD:
            limit = patience.head
        else:
            limit = patience.first if self._latest is None else self.timeout_keep_alive
        return self._since + limit - now

    def _left_for_body(self, now: float) -> float:
        patience = self._guard.patience
        least = round(patience.slowest * patience.body)
        if self.flow.read_paused:  # It is we who are slow; that counts for the next look as well.
            self._since, self._body = now, least
        elif self._since + patience.body <= now and self._body >= least and self.answering():
            self._since, self._body = now, 0
        return self._since + patience.body - now

    def _is_unread(self, now: float) -> bool:
        """Whether an answer waits of which next to nothing was read for a while."""
        if not unsent(self.transport):
            self._unread = None
            return False
        read = bytes_read(self.transport)
        if self._unread is None:
            self._unread = now, read
            return False
        patience = self._guard.patience
        since, before = self._unread
        if now - since < patience.unread:
            return False
        self._unread = now, read
        return read - before < patience.slowest * patience.unread

    def _late(self) -> None:
        if self._phase == IDLE:
            self.transport.close()
        elif self._phase == HEAD:
            self._refuse(TooSlow("the headers took too long"))
        else:
            self._refuse(TooSlow("the body took too long"))

    def answering(self) -> bool:
        """Whether a request waits for its answer."""
        cycle = self._latest
        return cycle is not None and not cycle.response_complete

    @property
    def _latest(self) -> RequestResponseCycle | None:
        """The last request that is somebody's; uvicorn's type leaves out that there may be none."""
        return self.cycle

    # How somebody is sent away.

    def _refuse(self, error: LasthopError) -> None:
        """Listen no more; say why when it is the refused request's turn."""
        self._room = -1
        self._guard.refused[error.code] += 1
        answer = refusal(error, self.server_state.default_headers)
        cycle = self._latest
        if self._phase == BODY and cycle is not None:  # The request is somebody's already.
            if cycle.response_started or self.pipeline:
                answer = b""
            cycle.disconnected = True
            cycle.message_event.set()
        elif self.answering():
            self._last_word = answer
            return
        self._end(answer)

    def _end(self, answer: bytes) -> None:
        if self.transport.is_closing():
            return
        self._ended = True
        self.transport.write(answer)
        if self.transport.can_write_eof():
            self.transport.write_eof()
        if self._timer is not None:
            self._timer.cancel()
        self._look_in(self._guard.patience.last)


def bytes_read(transport: asyncio.Transport) -> int:
    """How much the other end has acknowledged, from any beginning: by Linux (tcpi_bytes_acked), or
    by what no longer waits."""
    connection = transport.get_extra_info("socket")
    try:
        facts = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 128)
        return int(struct.unpack_from("=Q", facts, 120)[0])
    except (AttributeError, OSError, struct.error):
        return -unsent(transport)


def unsent(transport: asyncio.Transport) -> int:
    """How much of what was written has not left."""
    try:
        return transport.get_write_buffer_size()
    except AttributeError:  # asyncio's TLS cannot say when it was closed twice; uvloop's can.
        return 0
