"""The PAP door, which answers every PAP request in the terms of PAP.

Once a caller is authenticated, the HTTP status is always 202, and the result is in the document,
even if the request could not be read: PAP's binding to HTTP says so, and initiators expect it.

There are two ways in. As an ASGI application the door takes any request; `take` is for requests
whose whole body has arrived, and needs no task for a push.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Protocol

import structlog
from starlette.requests import ClientDisconnect
from starlette.types import Receive, Scope as Connection, Send

from lasthop.access.callers import Caller, Callers
from lasthop.access.direct import Request, Respond, Response
from lasthop.access.intake import Intake
from lasthop.access.live_gateway import LiveGateway
from lasthop.access.pap.destinations import Destinations
from lasthop.access.pap.operations import PRODUCT, Operations
from lasthop.access.pap.settings import PapSettings
from lasthop.clock import Micros
from lasthop.core.apps.credentials import Scope
from lasthop.errors import LasthopError, Limited, OutcomeOpen, TooLarge, Unauthorized
from lasthop.wire import tracecontext
from lasthop.wire.pap.documents import BadMessageResponse, Document, PushMessage
from lasthop.wire.pap.refusals import refusal
from lasthop.wire.pap.submission import (
    APPLICATION_ID,
    PapSubmission,
    read_submission,
    write_submission,
)
from lasthop.wire.pap.versions import SUPPORTED, answer_version

_APPLICATION = APPLICATION_ID.encode()

log = structlog.get_logger()


class ChargeQuota(Protocol):
    """Charges a request to its caller's quota, or raises `QuotaExceeded`."""

    def __call__(self, caller: Caller, *, messages: int, size: int) -> None: ...


class PapDoor:
    """The PAP door: serves HTTP, and counts refusals by error code in `refused` for the metrics."""

    def __init__(
        self,
        live: LiveGateway,
        settings: PapSettings,
        *,
        callers: Callers,
        intake: Intake,
        charge: ChargeQuota,
        destinations: Destinations,
    ) -> None:
        self._live = live
        self._settings = settings
        self._callers = callers
        self._intake = intake
        self._charge = charge
        self._operations = Operations(live, settings, destinations)
        self._tasks: set[asyncio.Task[None]] = set()
        self.refused: Counter[str] = Counter()

    async def __call__(self, connection: Connection, receive: Receive, send: Send) -> None:
        """Answer one ASGI request."""
        if connection["method"] != "POST":
            text = b"PAP requests must use POST\n"
            await _send(send, Response(405, b"text/plain", text, ((b"allow", b"POST"),)))
            return
        try:
            caller = await self._callers.of(connection)
            caller.require(Scope.PUBLISH)
        except LasthopError as error:
            await _send(send, self._turned_away(error))
            return
        headers: dict[bytes, bytes] = dict(connection["headers"])
        try:
            body = await self._intake.read(headers, receive)
        except ClientDisconnect:
            return
        except LasthopError as error:
            await _send(send, self._refused(error, None, b""))
            return
        answer: asyncio.Future[Response] = asyncio.get_running_loop().create_future()
        try:
            self._carry_out(
                caller, headers, body, lambda r: None if answer.done() else answer.set_result(r)
            )
            await _send(send, await answer)
        finally:
            self._intake.release(len(body))

    def take(self, request: Request, respond: Respond) -> None:
        """Answer a POST request that has arrived whole; `respond` is called once, now or later."""
        headers, body = request.headers, request.body
        try:
            caller = self._callers.recognise(headers, request.peer, request.certificate)
            caller.require(Scope.PUBLISH)
        except LasthopError as error:
            respond(self._turned_away(error))
            return
        try:
            self._intake.hold(headers, body)
        except LasthopError as error:
            respond(self._refused(error, None, b""))
            return

        def answered(response: Response) -> None:
            self._intake.release(len(body))
            respond(response)

        self._carry_out(caller, headers, body, answered)

    def _carry_out(
        self,
        caller: Caller,
        headers: dict[bytes, bytes],
        body: bytes,
        answered: Callable[[Response], None],
    ) -> None:
        """Read a request and do what it asks for; `answered` gets the response when the result is
        durable."""
        document: Document | None = None
        try:
            given = self._read(headers, body)
            document = given.document
            push = document.message
            if not isinstance(push, PushMessage):
                self._charge(caller, messages=1, size=len(body))
                self._begin(caller, document, body, answered)
                return
            self._charge(caller, messages=len(push.addresses), size=len(body))
            now = self._live.now()

            def done(error: Exception | None) -> None:
                answered(self._pushed(given.document, now, error, body))

            context = tracecontext.of_request(headers) if self._settings.traced else ()
            self._operations.push(caller, push, given, now, context=context, done=done)
        except Exception as error:
            answered(self._refused(error, document, body))

    def _read(self, headers: dict[bytes, bytes], body: bytes) -> PapSubmission:
        content_type = headers.get(b"content-type", b"").decode("latin-1")
        application = headers.get(_APPLICATION)
        outer = () if application is None else ((APPLICATION_ID, application.decode("latin-1")),)
        return read_submission(content_type, body, headers=outer, limit=self._settings.max_body)

    def _pushed(
        self, document: Document, received_at: Micros, error: Exception | None, body: bytes
    ) -> Response:
        try:
            if error is not None:
                raise error
            assert isinstance(document.message, PushMessage)
            body = self._operations.receipt(document.message, document.version, received_at)
            return Response(202, b"application/xml", body)
        except Exception as reason:
            return self._refused(reason, document, body)

    def _begin(
        self,
        caller: Caller,
        document: Document,
        body: bytes,
        answered: Callable[[Response], None],
    ) -> None:
        """Start a task for a request other than a push, since it may ask the store more than
        once."""

        async def work() -> None:
            try:
                message, entity = await self._operations.answer(caller, document.message)
                version = answer_version(document.version, document.supported)
                answer = Document(message, version, SUPPORTED, PRODUCT)
                response = _response(PapSubmission(answer, entity))
            except Exception as error:
                response = self._refused(error, document, body)
            answered(response)

        task = asyncio.get_running_loop().create_task(work())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _refused(self, error: Exception, document: Document | None, body: bytes) -> Response:
        if not isinstance(error, LasthopError):
            log.error("request failed", exc_info=error)
            error = LasthopError("internal error")
        self.refused[error.code] += 1
        answer = refusal(
            error, request=document, received=body, now=self._live.now(), product=PRODUCT
        )
        more: list[tuple[bytes, bytes]] = []
        if isinstance(error, Limited | OutcomeOpen):
            more.append((b"retry-after", b"%d" % max(1, round(error.retry_after))))
        if isinstance(error, TooLarge) and not body:
            more.append((b"connection", b"close"))  # The rest of the request will not be read.
        return _response(PapSubmission(answer), headers=tuple(more))

    def _turned_away(self, error: LasthopError) -> Response:
        """Return the response to a client that is not authenticated or not allowed: an HTTP error
        status."""
        self.refused[error.code] += 1
        answer = Document(BadMessageResponse(error.pap_code, error.detail), supported=SUPPORTED)
        more: tuple[tuple[bytes, bytes], ...] = ()
        if isinstance(error, Unauthorized):
            more = ((b"www-authenticate", b'Basic realm="lasthop", Bearer realm="lasthop"'),)
        return _response(PapSubmission(answer), error.http_status, more)


def _response(
    answer: PapSubmission, status: int = 202, headers: tuple[tuple[bytes, bytes], ...] = ()
) -> Response:
    kind, body = write_submission(answer)
    return Response(status, kind.encode("latin-1"), body, headers)


async def _send(send: Send, response: Response) -> None:
    headers = [
        (b"content-type", response.content_type),
        (b"content-length", b"%d" % len(response.body)),
        *response.headers,
    ]
    await send({"type": "http.response.start", "status": response.status, "headers": headers})
    await send({"type": "http.response.body", "body": response.body})
