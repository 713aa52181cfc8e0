"""The route that every message takes: `POST /v1/messages`, with one commit for a whole batch.

There are two ways in. A request of any size comes by ASGI; a small request is handled as a whole,
without a task of its own: small requests that arrive in the same turn of the event loop are
published together.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import NamedTuple

import structlog
from starlette.types import Receive, Scope as Connection, Send

from lasthop.access.callers import Caller
from lasthop.access.direct import Request, Respond, Response
from lasthop.access.rest.answers import AcceptedMany, encode
from lasthop.access.rest.context import OperationContext, accepted_of, one_of
from lasthop.access.rest.problems import INTERNAL, headers_of, problem_of
from lasthop.access.rest.requests import Publication, decode, digest
from lasthop.clock import Micros
from lasthop.core.apps.credentials import Scope
from lasthop.core.gateway import Gateway
from lasthop.core.publishing.submission import Submission
from lasthop.errors import InvalidRequest, LasthopError, OutcomeOpen, TooLarge

JSON = b"application/json"

log = structlog.get_logger()


class _Order(NamedTuple):
    """A request to publish that is decoded, checked and charged to the caller's quota."""

    caller: Caller
    given: Publication | list[Publication]
    submissions: list[Submission]
    key: bytes | None


async def publish(
    context: OperationContext, connection: Connection, receive: Receive, send: Send
) -> None:
    """Accept one message, or a batch together."""
    headers: dict[bytes, bytes] = dict(connection["headers"])
    caller = await context.callers.of(connection)
    caller.require(Scope.PUBLISH)
    body = await context.intake.read(headers, receive)
    try:
        response = await _accept(context, _understood(context, caller, headers, body))
    finally:
        context.intake.release(len(body))
    await respond(send, response.status, response.body)


class Publishing:
    """Publishes small requests whose body has already arrived, several in one commit."""

    def __init__(self, context: OperationContext) -> None:
        self._context = context
        self._gathering: list[tuple[_Order, Respond]] = []
        self._tasks: set[asyncio.Task[None]] = set()

    def take(self, request: Request, respond: Respond) -> None:
        """Accept one message, or a batch together; `respond` is called once, when the messages are
        durable or refused."""
        context = self._context
        headers, body = request.headers, request.body
        try:
            caller = context.callers.recognise(headers, request.peer, request.certificate)
            caller.require(Scope.PUBLISH)
            context.intake.hold(headers, body)
        except Exception as error:
            respond(self._refusal(error))
            return

        def answered(response: Response) -> None:
            context.intake.release(len(body))
            respond(response)

        try:
            order = _understood(context, caller, headers, body)
        except Exception as error:
            answered(self._refusal(error))
            return
        if order.key is not None:
            self._begin(self._once(order, answered))
        else:
            self._gathering.append((order, answered))
            if len(self._gathering) == 1:
                self._begin(self._publish())

    def _begin(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _once(self, order: _Order, answered: Respond) -> None:
        try:
            answered(await _accept(self._context, order))
        except Exception as error:
            answered(self._refusal(error))

    async def _publish(self) -> None:
        """Publish the gathered requests in one commit. An invalid request does not affect the
        others."""
        gathered, self._gathering = self._gathering, []
        outcomes: list[AcceptedMany | Exception] = []

        def act(gateway: Gateway, now: Micros) -> None:
            for order, _ in gathered:
                caller = order.caller
                try:
                    receipt = gateway.publish(caller.app, caller.source, order.submissions, now)
                except Exception as error:
                    outcomes.append(error)
                else:
                    outcomes.append(accepted_of(receipt))

        try:
            await self._context.live.call(act)
        except OutcomeOpen as error:
            outcomes = [o if isinstance(o, Exception) else error.of(o.ids) for o in outcomes]
        except Exception as error:
            outcomes = [error] * len(gathered)
        for (order, answered), outcome in zip(gathered, outcomes, strict=True):
            if isinstance(outcome, Exception):
                answered(self._refusal(outcome))
            else:
                answered(_answer(order.given, outcome))

    def _refusal(self, error: Exception) -> Response:
        if not isinstance(error, LasthopError):
            log.error("request failed", method="POST", path="/v1/messages", exc_info=error)
            error = INTERNAL
        self._context.refused[error.code] += 1
        more = tuple((n.encode(), v.encode()) for n, v in headers_of(error).items())
        return Response(error.http_status, JSON, encode(problem_of(error)), more)


def _understood(
    context: OperationContext, caller: Caller, headers: dict[bytes, bytes], body: bytes
) -> _Order:
    given = decode(headers.get(b"content-type", b""), body)
    count = len(given) if isinstance(given, list) else 1
    context.charge(caller, messages=count, size=len(body))
    key = headers.get(b"idempotency-key")
    return _Order(caller, given, convert(context, given, headers), key)


async def _accept(context: OperationContext, order: _Order) -> Response:
    many = order.given if isinstance(order.given, list) else [order.given]
    accepted = await context.accept(
        order.caller, order.submissions, key=order.key, digest=lambda: digest(many)
    )
    return _answer(order.given, accepted)


def _answer(given: Publication | list[Publication], accepted: AcceptedMany) -> Response:
    answer = accepted if isinstance(given, list) else one_of(accepted)
    return Response(200 if accepted.repeated else 202, JSON, encode(answer))


def convert(
    context: OperationContext, given: Publication | list[Publication], headers: dict[bytes, bytes]
) -> list[Submission]:
    """Return the submissions for a request's publications; the error for a batch names the message
    at fault."""
    converter = context.converter(headers)
    if isinstance(given, Publication):
        return [converter.one(given)]
    if not given:
        raise InvalidRequest("there is no message in the request")
    limit = context.settings.max_messages
    if len(given) > limit:
        raise TooLarge("too many messages in one request", count=len(given), limit=limit)
    return converter.all(given)


async def respond(send: Send, status: int, body: bytes, content_type: bytes = JSON) -> None:
    """Send a response whose body is complete."""
    headers = [(b"content-type", content_type), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
