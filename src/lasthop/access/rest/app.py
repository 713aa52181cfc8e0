"""The REST door as an ASGI application: it routes requests and turns every error into a problem
response."""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Callable, Sequence
from importlib.resources import files
from itertools import groupby
from operator import attrgetter

import structlog
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route, Router
from starlette.types import Receive, Scope as Connection, Send

import lasthop
from lasthop.access.live_gateway import LiveGateway
from lasthop.access.ntfy.ntfy_door import NtfyDoor
from lasthop.access.receive.hub import Hub, ReceiveSettings
from lasthop.access.receive.receive_door import ReceiveDoor
from lasthop.access.rest.answers import encode
from lasthop.access.rest.context import Erase, Explain, OperationContext
from lasthop.access.rest.exchange import RestExchange
from lasthop.access.rest.misdirected import misdirected
from lasthop.access.rest.openapi import document
from lasthop.access.rest.operation_rights import check_right
from lasthop.access.rest.operations import EXPLAIN, OPERATIONS, Operation
from lasthop.access.rest.policy_manager import PolicyManager
from lasthop.access.rest.problems import INTERNAL, headers_of, of_routing, problem_of
from lasthop.access.rest.publish import Publishing, publish
from lasthop.access.rest.reserved import RESERVED
from lasthop.access.rest.settings import RestSettings
from lasthop.access.rest.surrogate_manager import SurrogateManager
from lasthop.core.apps.credentials import FIRST
from lasthop.errors import LasthopError

MESSAGES = "/v1/messages"

_DOCS_POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)

log = structlog.get_logger()


def make_token() -> str:
    """Make a token that cannot be guessed: 256 random bits."""
    return secrets.token_urlsafe(32)


def make_app(
    live: LiveGateway,
    settings: RestSettings | None = None,
    *,
    make_token: Callable[[], str] = make_token,
    explain: Explain | None = None,
    erase: Erase | None = None,
    surrogate_manager: SurrogateManager | None = None,
    policy_manager: PolicyManager | None = None,
    routes: Sequence[BaseRoute] = (),
    receiving: ReceiveSettings | None = None,
) -> Door:
    """Make the REST door of a gateway, to be served or mounted at the root.

    `routes` are served before the door's own routes; their first segments cannot be used as topics
    in the one-line form.
    """
    context = OperationContext(
        live,
        settings or RestSettings(),
        make_token=make_token,
        explain=explain,
        erase=erase,
        surrogate_manager=surrogate_manager,
        policy_manager=policy_manager,
    )
    return Door(context, routes, receiving or ReceiveSettings())


class Door:
    """The REST door: an ASGI application that also counts refusals by error code, for the
    metrics."""

    def __init__(
        self,
        context: OperationContext,
        routes: Sequence[BaseRoute],
        receiving: ReceiveSettings,
    ) -> None:
        operations = OPERATIONS if context.explain is None else (*OPERATIONS, EXPLAIN)
        self.context = context
        self.take = Publishing(context).take
        """Answers small POST requests to `MESSAGES` whose whole body has arrived."""
        self.hub = Hub(context.live, receiving)
        """The listeners of topics; whoever runs the gateway tells it what appears."""
        self._receiving = ReceiveDoor(context.live, context.callers, self.hub)
        self._ntfy = NtfyDoor(context, self._receiving)
        self._taken = frozenset(_first_segment(route) for route in routes)
        self._router = Router(
            [*routes, *_operations(context, operations), *_pages(operations)],
            redirect_slashes=False,
        )

    @property
    def refused(self) -> Counter[str]:
        """The number of refused requests, by the code of the error."""
        return self.context.refused

    @property
    def waiting(self) -> int:
        """The number of requests that wait for a delivery or a stream to change."""
        return self.context.waiting

    async def __call__(self, connection: Connection, receive: Receive, send: Send) -> None:
        if connection["type"] == "websocket":
            await self._listen(connection, receive, send)
            return
        try:
            await self._serve(connection, receive, send)
        except ClientDisconnect:
            return
        except HTTPException as error:
            refusal = misdirected(connection["path"]) or of_routing(error)
            await self._refuse(refusal, connection, receive, send)
        except LasthopError as error:
            await self._refuse(error, connection, receive, send)
        except Exception:
            log.exception("request failed", method=connection["method"], path=connection["path"])
            await self._refuse(INTERNAL, connection, receive, send)

    async def _serve(self, connection: Connection, receive: Receive, send: Send) -> None:
        path, method = connection["path"], connection["method"]
        if path == MESSAGES and method == "POST":
            await publish(self.context, connection, receive, send)
            return
        if self._ntfy.serves(path, method, self._taken):
            await self._ntfy(connection, receive, send)
        else:
            await self._route(connection, receive, send)

    async def _listen(self, connection: Connection, receive: Receive, send: Send) -> None:
        """Serve a WebSocket of a listener; there is no other at this door."""
        topics, _, kind = connection["path"][1:].partition("/")
        if kind == "ws" and topics not in RESERVED:
            await self._receiving.receive_websocket(connection, receive, send, topics)
        else:
            await receive()
            await send({"type": "websocket.close", "code": 1008, "reason": "no such path"})

    async def _route(self, connection: Connection, receive: Receive, send: Send) -> None:
        # Makes Starlette's router raise its refusals instead of sending them.
        connection["app"] = self
        await self._router(connection, receive, send)

    async def _refuse(
        self, error: LasthopError, connection: Connection, receive: Receive, send: Send
    ) -> None:
        self.context.refused[error.code] += 1
        response = Response(
            encode(problem_of(error)),
            error.http_status,
            headers_of(error),
            media_type="application/json",
        )
        await response(connection, receive, send)


def _first_segment(route: BaseRoute) -> str:
    return str(getattr(route, "path", "")).strip("/").partition("/")[0]


def _operations(context: OperationContext, operations: Sequence[Operation]) -> list[Route]:
    """Make one route for every path, for all methods of the path."""
    by_path = groupby(sorted(operations, key=attrgetter("path")), key=attrgetter("path"))
    return [_resource(context, path, list(found)) for path, found in by_path]


def _resource(context: OperationContext, path: str, operations: list[Operation]) -> Route:
    by_method = {operation.method: operation.resolved() for operation in operations}

    async def endpoint(request: Request) -> Response:
        # Starlette also routes HEAD to a GET route, and then sends only the headers.
        operation = by_method["GET" if request.method == "HEAD" else request.method]
        headers: dict[bytes, bytes] = dict(request.scope["headers"])
        caller = await context.callers.of(request.scope)
        if caller.name != FIRST or operation.id != "post_credentials":
            caller.require(operation.scope)
        check_right(context.live, caller, operation, request.path_params)
        assert operation.handler is not None
        return await operation.handler(RestExchange(context, request, caller, headers))

    return Route(path, endpoint, methods=list(by_method))


def _pages(operations: Sequence[Operation]) -> list[Route]:
    described = encode(document(operations, lasthop.__version__))
    page = files("lasthop.access.rest").joinpath("docs.html").read_bytes()
    return [
        _page("/openapi.json", lambda: Response(described, media_type="application/json")),
        _page(
            "/docs",
            lambda: Response(
                page, headers={"content-security-policy": _DOCS_POLICY}, media_type="text/html"
            ),
        ),
        _page("/", lambda: RedirectResponse("/docs")),
        # What clients of ntfy ask for.
        _page("/v1/health", lambda: Response(b'{"healthy":true}\n', media_type="application/json")),
    ]


def _page(path: str, make: Callable[[], Response]) -> Route:
    async def endpoint(request: Request) -> Response:
        return make()

    return Route(path, endpoint, methods=["GET"])
