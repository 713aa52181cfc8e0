"""The listener for devices that connect by WebSocket: an ASGI application, so that they share the
HTTP port.

As ASGI requires, one task serves a connection; it brings messages to the link.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, TypeAlias

from lasthop.clock import Clock
from lasthop.delivery.channel import Switchboard
from lasthop.delivery.listener import MAX_CONNECTIONS, Listener
from lasthop.transport.locality import from_this_machine, joined, peer_of
from lasthop.transport.websocket import SUBPROTOCOL, WebSocketLink
from lasthop.wire.hop.mapping import Mapping

Scope: TypeAlias = MutableMapping[str, Any]
Event: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Event]]
Send: TypeAlias = Callable[[Event], Awaitable[None]]


class WebSocketListener(Listener):
    """An ASGI application that accepts devices which connect by WebSocket."""

    def __init__(
        self,
        switchboard: Switchboard,
        *,
        clock: Clock,
        max_connections: int = MAX_CONNECTIONS,
    ) -> None:
        super().__init__(
            switchboard, clock=clock, mapping=Mapping.DATAGRAM, max_connections=max_connections
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one WebSocket, from its handshake to its end."""
        await receive()
        chosen = SUBPROTOCOL if SUBPROTOCOL in scope.get("subprotocols", ()) else None
        await send({"type": "websocket.accept", "subprotocol": chosen})

        async def carry(unit: bytes) -> None:
            await send({"type": "websocket.send", "bytes": unit})

        async def hang_up() -> None:
            await send({"type": "websocket.close", "code": 1000})

        task = asyncio.current_task()
        assert task is not None
        link = WebSocketLink(
            self._ends,
            self.machine(),
            send=carry,
            hang_up=hang_up,
            cut=task.cancel,
            local=from_this_machine(joined(scope["headers"]), peer_of(scope)),
        )
        link.begin()
        reason = "the connection was cut off"
        try:
            while (event := await receive())["type"] == "websocket.receive":
                link.message(event.get("bytes") or event.get("text"))
            reason = event.get("reason") or "the peer hung up"
        except asyncio.CancelledError:
            if not link.over:
                raise
            task.uncancel()
        finally:
            link.ended(reason)

    async def stop(self) -> None:
        """Close all channels; the HTTP server itself stops accepting connections."""
        self.close_all()
