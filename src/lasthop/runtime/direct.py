"""HTTP without a task for every request, for the doors that can do without one.

uvicorn parses, keeps connections and runs everything else as an ASGI application. A small POST to a
path that has a `take` is handed over as one value when its last byte is there, and answered by one
write. Whatever is out of the ordinary goes the usual way: requests that come before the last one is
answered or while answers are not read, large ones, those without a length, those that want to be
told to continue, those with a header twice.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, RequestResponseCycle

from lasthop.access.direct import Request, Response, Take
from lasthop.runtime.guard import BODY, IDLE, GuardedProtocol

MAX_BODY = 64 << 10
"""Bytes of a request that is handed over as a whole. uvicorn holds as many of any request before
somebody asks for them."""

_UNUSUAL = frozenset({b"transfer-encoding", b"expect", b"upgrade"})


class DirectProtocol(GuardedProtocol):
    """One connection."""

    def __init__(self, *args: Any, direct: Mapping[bytes, Take], **more: Any) -> None:
        """`direct` says who takes the requests to which path."""
        super().__init__(*args, **more)
        self._direct = direct
        self._exchange: _DirectExchange | None = None
        """The request that is coming in, if it is one of ours."""

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
        """Whether a request can be taken as one value, now."""
        length = headers.get(b"content-length", b"")
        return (
            # One that is repeated has lost a value here: `joined` has them all.
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
    """One request and its answer, with what uvicorn wants to know of the one that is under way."""

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
        """uvicorn sets an event when the other end has gone: nobody waits for it here."""
        return self

    @property
    def response_started(self) -> bool:
        """An answer is started and completed by one write."""
        return self.response_complete

    def set(self) -> None:
        """See `message_event`."""

    def respond(self, response: Response) -> None:
        """Write the answer, unless nobody is there to hear it."""
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
