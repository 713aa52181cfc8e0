"""Protects the HTTP server from untrusted connections: limits the size of a request's head, the
time that a request may take, and the number of connections.

uvicorn and its parser have no such limits. Here the bytes of a head are counted as they arrive, one
timer for each connection checks that it makes progress, and `Admission` says whether there is room.
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
from uvicorn.protocols.utils import is_ssl

from lasthop.access.receive.receive_door import TRANSPORT
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
from lasthop.runtime.proxies import TrustedProxies
from lasthop.runtime.refusals import TooSlow, refusal
from lasthop.runtime.upgraded import UpgradedProtocol
from lasthop.transport.locality import joined

PIECE = 16 << 10
"""The largest number of bytes that the parser gets at a time. A head that fits into one piece is
not too large, and of a larger head no more than this is parsed."""

ROOM = MAX_HEAD + PIECE
"""The largest number of bytes of a request that do not belong to its body: the head, whose first
piece may begin with the end of an earlier request, and later the bytes around chunks."""

BODY_WORTH = 16
"""The number of bytes around chunks that are allowed for each byte of the body: a chunk of one byte
has five bytes around it."""

MAX_WAITING = 256
"""The largest number of requests on one connection that wait until earlier ones are answered; each
takes 4 KiB. While a request waits, nothing is read from the socket, so this limits the requests
that arrive together."""

LAST_BYTES = 1 << 20
"""The largest number of bytes that are read and discarded after the last answer on a connection: if
the connection were closed while they arrive, a client that sends everything before it reads would
lose the answer."""

RETRY_AFTER = 10.0
"""Seconds after which a connection has probably become free."""

UNGUARDED = frozenset({b"/health", b"/ready", b"/metrics"})
"""The paths that are answered however many connections there are."""

IDLE, HEAD, BODY = range(3)
"""The phases of the arriving request."""

Administers: TypeAlias = Callable[[Mapping[bytes, bytes], str | None, str | None], bool]
"""A function that returns whether a request with these headers (see `joined`), from this address
and with this certificate, comes from an administrator."""


@dataclass(frozen=True, slots=True)
class GuardPatience:
    """How long clients may take for each step, in seconds."""

    handshake: float = TLS_HANDSHAKE
    """The time until the TLS handshake is complete."""
    first: float = 30.0
    """The time until a new connection sends its first byte."""
    head: float = 30.0
    """The time from the first byte of a request to the end of its headers."""
    crowded: float = 5.0
    """The time for the first byte, and for the headers, on a connection beyond the limit of
    connections."""
    body: float = 30.0
    """The time within which the next part of a body must arrive."""
    unread: float = 15.0
    """The time within which the client must read some part of an answer; a violation may be noticed
    only after twice that time."""
    last: float = 2.0
    """The time that the client has to read the last answer before the connection is closed; what
    the client still sends is discarded."""
    slowest: int = 256
    """The lowest rate of a body or an answer, in bytes per second. GPRS is ten times as fast; a
    slower client is probably slow on purpose."""


@dataclass(frozen=True, slots=True)
class Guard:
    """What all connections of a server share: their admission, the time limits and the count of
    refusals."""

    admission: Admission
    administers: Administers = lambda headers, peer, certificate: False
    patience: GuardPatience = field(default_factory=GuardPatience)
    refused: Counter[str] = field(default_factory=Counter)
    """The number of requests that were refused here, by error code."""
    proxies: TrustedProxies = field(default_factory=TrustedProxies)
    """The peers that are believed about the callers whose requests they forward."""


class GuardedProtocol(CertifiedProtocol):
    """One HTTP connection with limits on size and time."""

    def __init__(
        self, *args: Any, guard: Guard, place: ConnectionPlace | None = None, **more: Any
    ) -> None:
        """`place` is the connection's place if it has one already, as after a TLS handshake."""
        super().__init__(*args, **more)
        self.url = b""
        self.headers = []
        self._guard = guard
        self._place = place
        self.crowded = False
        """Whether this connection is beyond the limit of connections, so that it is closed after
        its first answer."""
        self._phase = IDLE
        self._room = ROOM
        """The number of bytes outside a body that may still arrive; negative when input is
        discarded."""
        self._host = b""
        """The last Host header that was checked and found well formed."""
        self._heard_at = 0.0
        self._since = 0.0
        """The time at which the present phase began, or the last answer ended."""
        self._body = 0
        """The number of bytes of the body that arrived in the present phase."""
        self._unread: tuple[float, int] | None = None
        """The time at which an answer was last seen unread, and how much the client had read by
        then."""
        self._unparsed = 0
        """The number of bytes of a body that the parser does not read, because the request offers
        another protocol."""
        self._last_word = b""
        """The refusal that is sent after the answer in progress."""
        self._ended = False
        """Whether the final answer has been written."""
        self._timer: asyncio.TimerHandle | None = None
        self._proxy: str | None = None
        """The address of the trusted proxy at the other end, if it is one."""
        self._proxy_subject: str | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take a place among the connections, and start the timer for the first request."""
        super().connection_made(transport)
        peer = self.client[0] if self.client else None
        if peer is not None and peer in self._guard.proxies:
            self._proxy = peer
            self._proxy_subject = self._subject
        if self._place is None:
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

    # Limits on how much arrives.

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
        if self._unparsed:
            piece = self._take_unparsed(piece)
        try:
            self.parser.feed_data(piece)
        except httptools.HttpParserUpgrade as upgrade:
            if self._should_upgrade():
                self.handle_websocket_upgrade()
            else:
                # The offer is not taken (RFC 9110, section 7.8): what follows is HTTP as before.
                at = upgrade.args[0]
                self._room -= at
                self._parse(piece[at:])
            return
        except httptools.HttpParserError as error:
            cause = error.__context__
            if not isinstance(cause, LasthopError):
                cause = InvalidRequest(f"this is not an HTTP request: {error}")
            self._refuse(cause)
            return
        self._room -= len(piece)
        if self._room < 0:
            self._refuse(too_large(self.url))
        elif len(self.headers) > MAX_FIELDS:
            self._refuse(too_many())

    def _take_unparsed(self, piece: bytes | memoryview) -> bytes | memoryview:
        """Take from a piece what belongs to the body that the parser does not read, and return the
        rest."""
        body = bytes(piece[: self._unparsed])
        self._unparsed -= len(body)
        self.on_body(body)
        if not self._unparsed:
            self.on_message_complete()
        return piece[len(body) :]

    def on_message_begin(self) -> None:
        """Begin a request; the ASGI scope is made only if ASGI is needed."""
        self.url = b""
        self.headers = []
        self._phase = HEAD
        self._room = ROOM
        self._since = self._heard_at

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers.append((name.lower(), value))

    def head(self) -> dict[bytes, bytes]:
        """Return the headers of a request whose head is complete; raise an error for a head that is
        refused."""
        if len(self.headers) > MAX_FIELDS:
            raise too_many()
        if self._room != ROOM:  # The head came in more than one piece.
            check_size(self.url, self.headers)
        if self._proxy is not None:
            self._believe(self._proxy)
        fields = self.headers
        headers = dict(fields)
        host = headers.get(b"host")
        if host != self._host or not host or len(headers) != len(fields):
            times = sum(name == b"host" for name, _ in fields)
            check_host(host, times=times, version=self.parser.get_http_version())
            self._host = host or b""
        if self.crowded:
            self._check_guest()
        if self.parser.should_upgrade():
            # The parser takes what follows the head for the other protocol, and a body for the next
            # request.
            if b"transfer-encoding" in headers:
                raise InvalidRequest(
                    "a request that asks for another protocol needs a Content-Length for its body",
                    field="Transfer-Encoding",
                )
            self._unparsed = int(headers.get(b"content-length", 0))
            if self._unparsed and self._should_upgrade():
                raise InvalidRequest("a WebSocket handshake has no body", field="Content-Length")
        self._since = self._heard_at
        self._body = 0
        return headers

    def _believe(self, proxy: str) -> None:
        """Take the caller of this request, which a trusted proxy sends, for whom the proxy says."""
        self.client = proxy, 0
        self.scheme = "https" if is_ssl(self.transport) else "http"
        self._subject = self._proxy_subject
        forwarded = self._guard.proxies.read(self.headers, proxy)
        if forwarded is not None:
            self._subject = None  # The certificate is the proxy's, not the caller's.
            self.headers = forwarded.fields
            self.client = (forwarded.address, 0) if forwarded.address is not None else None
            self.scheme = forwarded.scheme or self.scheme

    def _check_guest(self) -> None:
        if self.url.partition(b"?")[0] in UNGUARDED:
            return
        peer = self.client[0] if self.client else None
        trusted = self._guard.administers(joined(self.headers), peer, self._subject)
        if self._place is not None:
            self._place.trusted = trusted
        # A WebSocket stays open, but the reserve is for short requests.
        if not trusted or self.parser.should_upgrade():
            raise Overloaded("there are too many connections", retry_after=RETRY_AFTER)

    def begin_asgi(self) -> None:
        """Pass the request whose head is complete to the ASGI application."""
        if len(self.pipeline) >= MAX_WAITING:
            raise Limited(
                "too many requests wait on this connection", retry_after=1.0, limit=MAX_WAITING
            )
        url, fields = self.url, self.headers
        super().on_message_begin()
        for name, value in fields:
            super().on_header(name, value)
        self.url = url
        self.scope[TRANSPORT] = self.transport  # type: ignore[literal-required]
        super().on_headers_complete()
        self._phase = BODY
        if not self.parser.should_upgrade():
            self.headers = []  # Trailers after chunks are not headers.
        if self.crowded:
            self.cycle.keep_alive = False

    def body_came(self, size: int) -> None:
        """Count bytes of the body that have arrived."""
        self._body += size
        self._room = min(ROOM, self._room + BODY_WORTH * size)

    def on_body(self, body: bytes) -> None:
        self.body_came(len(body))
        super().on_body(body)

    def on_message_complete(self) -> None:
        if self._unparsed:
            return
        self._phase = IDLE
        super().on_message_complete()

    def handle_websocket_upgrade(self) -> None:
        """Hand the connection and its place over to the WebSocket protocol."""
        self._room = -1
        if self._timer is not None:
            self._timer.cancel()
        super().handle_websocket_upgrade()
        upgraded = cast(UpgradedProtocol, self.transport.get_protocol())
        upgraded.linger = self._guard.patience.unread
        if not upgraded.handshake_initiated:
            upgraded.refuse_handshake()
        if self._proxy is not None:
            upgraded.believe(self.client, secure=self.scheme == "https")
        if self._place is not None:
            upgraded.leave = self._place.leave

    # Limits on time: one timer for a connection, not for each request. When it fires, it checks.

    def on_response_complete(self) -> None:
        """Start the next waiting request after an answer; if there is none, wait for a new
        request."""
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
        """Return the seconds that the client has left for its next step."""
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
        if self.flow.read_paused:  # The gateway is slow, not the client; for the next check too.
            self._since, self._body = now, least
        elif self._since + patience.body <= now and self._body >= least and self.answering():
            self._since, self._body = now, 0
        return self._since + patience.body - now

    def _is_unread(self, now: float) -> bool:
        """Whether the client has read almost nothing of a waiting answer for too long."""
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
        """Whether a request on this connection is still unanswered."""
        cycle = self._latest
        return cycle is not None and not cycle.response_complete

    @property
    def _latest(self) -> RequestResponseCycle | None:
        """The latest request that was passed on, or None; uvicorn's type does not say that it may
        be None."""
        return self.cycle

    # Refusals.

    def _refuse(self, error: LasthopError) -> None:
        """Stop reading, and send the refusal when it is the refused request's turn."""
        self._room = -1
        self._guard.refused[error.code] += 1
        answer = refusal(error, self.server_state.default_headers)
        cycle = self._latest
        if self._phase == BODY and cycle is not None:  # The request was passed on already.
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
    """Return how many bytes the client has acknowledged, counted from an arbitrary start: by
    Linux's count (tcpi_bytes_acked), or else by the bytes that no longer wait to be sent."""
    connection = transport.get_extra_info("socket")
    try:
        facts = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 128)
        return int(struct.unpack_from("=Q", facts, 120)[0])
    except (AttributeError, OSError, struct.error):
        return -unsent(transport)


def unsent(transport: asyncio.Transport) -> int:
    """Return how many of the written bytes wait to be sent."""
    try:
        return transport.get_write_buffer_size()
    except AttributeError:
        # asyncio's TLS transport raises this after a second close; uvloop's does not.
        return 0
