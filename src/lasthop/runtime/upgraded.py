"""WebSocket connections at the level of the socket: their place among all connections, and their
end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from lasthop.access.receive.receive_door import TRANSPORT
from lasthop.errors import InvalidRequest
from lasthop.runtime.refusals import refusal


class UpgradedProtocol(WebSocketsSansIOProtocol):
    """One WebSocket connection, after its handshake."""

    leave: Callable[[], None] | None = None
    """Called when the connection has ended, to free its place."""
    linger = 15.0
    """Seconds that the peer has to read the last data that was sent to it, before the connection is
    aborted."""
    _cutting: asyncio.TimerHandle | None = None

    def believe(self, client: tuple[str, int] | None, *, secure: bool) -> None:
        """Take the caller for whom a trusted proxy has named; called right after the handshake,
        before anything is asked of the application."""
        if self.handshake_complete or not self.handshake_initiated:
            return  # The handshake was refused, and nothing follows.
        self.scope["client"] = client
        self.scope["scheme"] = "wss" if secure else "ws"

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        if self._cutting is not None:
            self._cutting.cancel()
        if self.leave is not None:
            self.leave()

    def handle_parser_exception(self) -> None:
        """End the connection of a peer that has sent what is no WebSocket frame."""
        if self.conn.close_sent is not None:
            super().handle_parser_exception()
        else:
            self.queue.put_nowait({"type": "websocket.disconnect", "code": 1002})
            self.refuse_handshake()

    def refuse_handshake(self) -> None:
        """Answer a handshake that cannot be read, and end the connection: uvicorn would leave it
        open."""
        error = InvalidRequest("this is not a WebSocket handshake, or too much came with it")
        self.transport.write(refusal(error, self.default_headers))
        self.transport.close()
        self.disconnected = True  # The application may be about to accept.

    async def run_asgi(self) -> None:
        """Run the ASGI conversation, and abort the connection if the peer does not read the end of
        it."""
        self.scope[TRANSPORT] = self.transport  # type: ignore[literal-required]
        await super().run_asgi()
        if not self.disconnected:
            self._cutting = self.loop.call_later(self.linger, self.transport.abort)
