"""HTTP without a task for every request, for the doors that can answer by a function call.

uvicorn parses requests, keeps connections and runs everything else as an ASGI application. A small
POST to a path that has a `take` is handed over as one value when its last byte has arrived, and
answered by one write. Unusual requests go through ASGI: those that arrive before the last one is
answered or while answers are not read, large ones, those without a length, those that expect a 100
Continue, and those with a repeated header.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, RequestResponseCycle

from lasthop.access.direct import Request, Response, Take
from lasthop.runtime.guard import BODY, IDLE, GuardedProtocol

MAX_BODY = 64 << 10
"""The largest body, in bytes, of a request that is handed over as a whole. uvicorn buffers as much
of any request before the application asks for it."""

_UNUSUAL = frozenset({b"transfer-encoding", b"expect", b"upgrade"})


class DirectProtocol(GuardedProtocol):
    """One HTTP connection, some of whose requests are answered without ASGI."""

    def __init__(self, *args: Any, direct: Mapping[bytes, Take], **more: Any) -> None:
        """`direct` are the functions that take the requests, by path."""
        super().__init__(*args, **more)
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
            *_default(protocol.server_state.default_headers),
            b"content-type: %b\r\ncontent-length: %d\r\n" % (content_type, len(body)),
        ]
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


def _default(headers: list[tuple[bytes, bytes]]) -> list[bytes]:
    return [b"%b: %b\r\n" % pair for pair in headers]
