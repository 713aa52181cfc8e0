"""Answers small HTTP requests by a function call instead of an ASGI task, for doors that offer
that.

uvicorn parses the requests and manages the connections. A small POST request to a path whose door
has a `take` function is passed to that function when its last byte has arrived, and the response is
sent by one write. All other requests go through ASGI, and so do unusual POST requests: large ones,
those without a length, those that expect a 100 Continue, those with a repeated header, and those
that arrive before the last request is answered or while the client does not read its answers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, RequestResponseCycle

from lasthop.access.direct import Request, Response, Take
from lasthop.runtime.guard import BODY, IDLE, GuardedProtocol
from lasthop.runtime.safe_headers import HSTS, SAFE, is_name

MAX_BODY = 64 << 10
"""The largest body, in bytes, of a request that is answered without ASGI. uvicorn buffers the same
amount of every request before the application asks for it."""

_UNUSUAL = frozenset({b"transfer-encoding", b"expect", b"upgrade"})


class DirectProtocol(GuardedProtocol):
    """One HTTP connection, some of whose requests are answered without ASGI."""

    def __init__(
        self, *args: Any, direct: Mapping[bytes, Take], hsts: bytes | None = None, **more: Any
    ) -> None:
        """`direct` are the functions that take the requests, by path; `hsts` is the value of
        Strict-Transport-Security, if it is sent."""
        super().__init__(*args, **more)
        self.hsts = hsts
        self._direct = direct
        self._exchange: _DirectExchange | None = None
        """The request that is arriving, if it will be handed over as a whole."""

    def on_headers_complete(self) -> None:
        headers = self.head()
        take = self._direct.get(self.url)
        if take is not None and self._is_plain(headers):
            self._exchange = _DirectExchange(self, take, headers)
            self.cycle = cast(RequestResponseCycle, self._exchange)
            self._phase = BODY
        else:
            self._exchange = None
            self.begin_asgi()

    def _is_plain(self, headers: dict[bytes, bytes]) -> bool:
        """Whether the arriving request can be handed over as a whole."""
        length = headers.get(b"content-length", b"")
        return (
            # The dictionary has lost a value of a repeated header; ASGI requests keep them all
            # (`joined`).
            len(headers) == len(self.headers)
            and not self.answering()
            and not self.flow.write_paused
            and length.isdigit()
            and len(length) < 8
            and int(length) <= MAX_BODY
            and _UNUSUAL.isdisjoint(headers)
            and self.parser.get_method() == b"POST"
            and self.parser.get_http_version() == "1.1"
        )

    def on_body(self, body: bytes) -> None:
        if self._exchange is None:
            super().on_body(body)
        else:
            self.body_came(len(body))
            self._exchange.body += body

    def on_message_complete(self) -> None:
        exchange = self._exchange
        if exchange is None:
            super().on_message_complete()
            return
        self._phase = IDLE
        self._exchange = None
        exchange.keep_alive = exchange.keep_alive and self.parser.should_keep_alive()
        peer = self.client[0] if self.client else None
        exchange.take(
            Request(exchange.headers, exchange.body, peer, self._subject), exchange.respond
        )


class _DirectExchange:
    """One request and its answer, with the attributes that uvicorn reads of the request in
    progress."""

    __slots__ = (
        "_protocol",
        "body",
        "disconnected",
        "headers",
        "keep_alive",
        "response_complete",
        "take",
    )

    def __init__(self, protocol: DirectProtocol, take: Take, headers: dict[bytes, bytes]) -> None:
        self._protocol = protocol
        self.take = take
        self.headers = headers
        self.body = b""
        self.keep_alive = not protocol.crowded
        self.disconnected = False
        self.response_complete = False

    @property
    def message_event(self) -> _DirectExchange:
        """Stands in for the event that uvicorn sets when the client has disconnected; nothing waits
        for it here."""
        return self

    @property
    def response_started(self) -> bool:
        """Whether the answer was written; an answer is started and completed by one write."""
        return self.response_complete

    def set(self) -> None:
        """Do nothing; see `message_event`."""

    def respond(self, response: Response) -> None:
        """Write the answer, unless the client has disconnected."""
        protocol = self._protocol
        transport = protocol.transport
        if self.disconnected or transport.is_closing():
            return
        status, content_type, body, headers = response
        out = [
            STATUS_LINE[status],
            _lines.of(protocol.server_state.default_headers),
            b"content-type: %b\r\ncontent-length: %d\r\n" % (content_type, len(body)),
        ]
        if protocol.hsts and protocol.scheme == "https" and is_name(self.headers[b"host"]):
            out.append(b"%b: %b\r\n" % (HSTS, protocol.hsts))
        for name, value in headers:
            out.append(b"%b: %b\r\n" % (name, value))
            if name == b"connection":
                self.keep_alive = False
        if not self.keep_alive and not any(name == b"connection" for name, _ in headers):
            out.append(b"connection: close\r\n")
        out += [b"\r\n", body]
        transport.write(b"".join(out))
        self.response_complete = True
        if not self.keep_alive:
            transport.close()
        protocol.on_response_complete()


class _DefaultLines:
    """The lines of the default headers and of those for browsers, which change once a second, with
    the date."""

    def __init__(self) -> None:
        self._default: list[tuple[bytes, bytes]] = []
        self._lines = b""

    def of(self, default: list[tuple[bytes, bytes]]) -> bytes:
        if self._default is not default:
            self._default = default
            self._lines = b"".join([b"%b: %b\r\n" % pair for pair in (*default, *SAFE)])
        return self._lines


_lines = _DefaultLines()
