"""The gateway's one HTTP port: health and readiness, metrics, devices by WebSocket, pages for
people, and the REST door for everything else."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Protocol, TypeAlias

from lasthop.runtime import metrics
from lasthop.runtime.metrics import Metrics

Scope: TypeAlias = MutableMapping[str, Any]
Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
App: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]


class PagesApp(Protocol):
    """The ASGI application for pages that people open in a browser, at paths of their own."""

    def shows(self, method: str, path: str) -> bool:
        """Whether this application, and not another door, serves the request."""
        ...

    def __call__(self, scope: Scope, receive: Receive, send: Send, /) -> Awaitable[None]: ...


class Front:
    """An ASGI application that passes each request to the door that it is for.

    /health answers whenever the gateway runs; /ready only while it accepts work: not while it shuts
    down or the disk is full.
    """

    def __init__(
        self,
        rest: App,
        *,
        pages: PagesApp | None = None,
        websocket: tuple[str, App],
        requests: tuple[str, App],
        pap: tuple[str, App],
        metrics: Metrics,
        ready: Callable[[], bool],
    ) -> None:
        """`websocket` is the path for devices that use WebSocket (empty for none) and the
        application that serves them; `requests` is the same for devices that use only HTTP
        requests, with everything below the path; `pap` is the same for push initiators."""
        self._rest = rest
        self._pages = pages
        self._websocket = websocket
        self._requests, self._by_requests = requests
        self._below = f"{self._requests}/" if self._requests else None
        self._pap = pap
        self._metrics = metrics
        self._ready = ready

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await self._device(scope, receive, send)
        elif scope["path"] == "/health":
            await _answer(send, 200, "application/json", b'{"status":"ok"}\n')
        elif scope["path"] == "/ready":
            ready = self._ready()
            body = b'{"status":"ok"}\n' if ready else b'{"status":"not ready"}\n'
            await _answer(send, 200 if ready else 503, "application/json", body)
        elif scope["path"] == "/metrics":
            await _answer(send, 200, metrics.CONTENT_TYPE, self._metrics.render())
        elif scope["path"] == self._pap[0]:
            await self._pap[1](scope, receive, send)
        elif self._below is not None and (
            scope["path"] == self._requests or scope["path"].startswith(self._below)
        ):
            await self._by_requests(scope, receive, send)
        elif self._pages is not None and self._pages.shows(scope["method"], scope["path"]):
            await self._pages(scope, receive, send)
        else:
            await self._rest(scope, receive, send)

    async def _device(self, scope: Scope, receive: Receive, send: Send) -> None:
        path, devices = self._websocket
        if scope["path"] == path:
            await devices(scope, receive, send)
        else:
            await self._rest(scope, receive, send)


async def _answer(send: Send, status: int, content_type: str, body: bytes) -> None:
    headers = [
        (b"content-type", content_type.encode()),
        (b"content-length", b"%d" % len(body)),
        (b"cache-control", b"no-store"),
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
