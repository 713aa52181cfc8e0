"""Runs uvicorn step by step on the gateway's own loop: the gateway decides when it starts and ends,
and which connections it accepts."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Mapping
from functools import partial

import uvicorn

from lasthop.access.direct import Take
from lasthop.runtime.admission import Admission, descriptors_for_connections
from lasthop.runtime.direct import DirectProtocol
from lasthop.runtime.front import App
from lasthop.runtime.guard import Guard
from lasthop.runtime.handshake import Handshakes
from lasthop.runtime.listening import BACKLOG
from lasthop.runtime.safe_headers import SafeHeaders, hsts_value
from lasthop.runtime.settings import Settings
from lasthop.runtime.tls import Certificates
from lasthop.runtime.upgraded import UpgradedProtocol
from lasthop.wire.hop.checksums import SIZE as CHECKSUM_SIZE

KEEP_ALIVE = 75
"""Seconds that an idle connection stays open: longer than the 60 seconds that proxies usually wait,
so that the proxy closes the connection first, and no request is sent over a connection that the
gateway is closing."""


class WebServer:
    """Serves one ASGI application on one socket; small POST requests that publish bypass
    the application."""

    def __init__(
        self,
        app: App,
        listener: socket.socket,
        settings: Settings,
        *,
        direct: Mapping[str, Take] | None = None,
        guard: Guard | None = None,
        certificates: Certificates | None = None,
    ) -> None:
        """Without `certificates` the settings' own are read, if they name any."""
        by_url = {path.encode(): take for path, take in (direct or {}).items()}
        hsts = hsts_value(settings.http.hsts)
        config = uvicorn.Config(
            SafeHeaders(app, hsts=hsts),
            http="httptools",
            ws=UpgradedProtocol,
            ws_max_size=settings.limits.core(settings.ota).max_frame + CHECKSUM_SIZE,
            ws_ping_interval=None,  # The hop protocol has a heartbeat of its own.
            ws_per_message_deflate=False,
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,  # Else a header could make anyone appear to be on this machine.
            timeout_keep_alive=KEEP_ALIVE,
            timeout_graceful_shutdown=max(1, round(settings.http.drain.seconds)),
        )
        config.load()
        self._listener = listener
        self._server = uvicorn.Server(config)
        self._server.lifespan = config.lifespan_class(config)
        self._guard = guard or Guard(Admission(most=descriptors_for_connections))
        self._protocol = partial(
            DirectProtocol,
            config=config,
            server_state=self._server.server_state,
            app_state={},
            direct=by_url,
            hsts=hsts,
            guard=self._guard,
        )
        self._handshakes: Handshakes | None = None
        certificates = certificates or Certificates.of(settings.tls)
        if certificates is not None:
            self._handshakes = Handshakes(self._protocol, certificates, guard=self._guard)
        self._ticking: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Start to accept requests on the socket."""
        # This leaves uvicorn as its own start would, which has no limits for TLS.
        self._server.servers = []
        self._server.started = True
        if self._handshakes is not None:
            self._handshakes.start(self._listener)
        else:
            loop = asyncio.get_running_loop()
            server = await loop.create_server(self._protocol, sock=self._listener, backlog=BACKLOG)
            self._server.servers.append(server)
        self._ticking = asyncio.create_task(self._server.main_loop())

    async def stop(self) -> None:
        """Accept no more requests, and wait until those in progress are answered, up to the drain
        time."""
        if self._ticking is None:
            self._listener.close()
            return
        self._server.should_exit = True
        if self._handshakes is not None:
            self._handshakes.stop()
        await self._ticking
        await self._server.shutdown(sockets=[self._listener])
