"""The door itself: an ASGI application that answers every PAP request in the terms of PAP.

Once a caller is known, the answer of HTTP is 202 and everything else is in the document: also that
the request could not be read (PAP's binding to HTTP; what initiators expect).
"""

from __future__ import annotations

from collections import Counter
from typing import Protocol

import structlog
from starlette.requests import ClientDisconnect
from starlette.types import Receive, Scope as Connection, Send

from lasthop.access.callers import Caller, Callers
from lasthop.access.desk import Desk
from lasthop.access.intake import Intake
from lasthop.access.pap.destinations import Destinations
from lasthop.access.pap.operations import Operations
from lasthop.access.pap.settings import PapSettings
from lasthop.core.credentials import Scope
from lasthop.errors import LasthopError, Limited, TooLarge, Unauthorized
from lasthop.wire import tracecontext
from lasthop.wire.pap.documents import BadMessageResponse, Document, PushMessage
from lasthop.wire.pap.refusals import refusal
from lasthop.wire.pap.submission import Submission, read_submission, write_submission
from lasthop.wire.pap.versions import SUPPORTED, answer_version
from lasthop.wire.tracecontext import Headers

PRODUCT = "lasthop"

log = structlog.get_logger()


class Charge(Protocol):
    """Takes a request out of its caller's quota, or raises `QuotaExceeded`."""

    def __call__(self, caller: Caller, *, messages: int, size: int) -> None: ...


class PapDoor:
    """Serves HTTP; `refused` counts refusals by the code of the error, for metrics."""

    def __init__(
        self,
        desk: Desk,
        settings: PapSettings,
        *,
        callers: Callers,
        intake: Intake,
        charge: Charge,
        destinations: Destinations,
    ) -> None:
        self._desk = desk
        self._settings = settings
        self._callers = callers
        self._intake = intake
        self._charge = charge
        self._operations = Operations(desk, settings, destinations)
        self.refused: Counter[str] = Counter()

    async def __call__(self, connection: Connection, receive: Receive, send: Send) -> None:
        """Answer one request."""
        try:
            if connection["method"] != "POST":
                await _respond(send, 405, b"PAP is spoken by POST\n", "text/plain", allow="POST")
                return
            caller = await self._callers.of(connection)
            caller.require(Scope.PUBLISH)
        except LasthopError as error:
            await self._turn_away(error, send)
            return
        try:
            status, kind, body, more = await self._serve(caller, connection, receive)
        except ClientDisconnect:
            return
        await _respond(send, status, body, kind, **more)

    async def _serve(
        self, caller: Caller, connection: Connection, receive: Receive
    ) -> tuple[int, str, bytes, dict[str, str]]:
        headers: dict[bytes, bytes] = dict(connection["headers"])
        body = b""
        document: Document | None = None
        try:
            body = await self._intake.read(headers, receive)
            try:
                given = self._read(headers, body)
                document = given.document
                context = tracecontext.of_request(headers) if self._settings.traced else ()
                return 202, *await self._answer(caller, given, len(body), context), {}
            finally:
                self._intake.release(len(body))
        except LasthopError as error:
            return self._refuse(error, document, body)
        except ClientDisconnect:
            raise
        except Exception:
            log.exception("request failed", path=connection["path"])
            return self._refuse(LasthopError("internal error"), document, body)

    def _read(self, headers: dict[bytes, bytes], body: bytes) -> Submission:
        content_type = headers.get(b"content-type", b"").decode("latin-1")
        outer = tuple((n.decode("latin-1"), v.decode("latin-1")) for n, v in headers.items())
        return read_submission(content_type, body, headers=outer, limit=self._settings.max_body)

    async def _answer(
        self, caller: Caller, given: Submission, size: int, context: Headers
    ) -> tuple[str, bytes]:
        asked = given.document
        count = len(asked.message.addresses) if isinstance(asked.message, PushMessage) else 1
        self._charge(caller, messages=count, size=size)
        message, entity = await self._operations.answer(
            caller, given, self._desk.now(), context=context
        )
        version = answer_version(asked.version, asked.supported)
        return write_submission(Submission(Document(message, version, SUPPORTED, PRODUCT), entity))

    def _refuse(
        self, error: LasthopError, document: Document | None, body: bytes
    ) -> tuple[int, str, bytes, dict[str, str]]:
        self.refused[error.code] += 1
        answer = refusal(
            error, request=document, received=body, now=self._desk.now(), product=PRODUCT
        )
        kind, written = write_submission(Submission(answer))
        more: dict[str, str] = {}
        if isinstance(error, Limited):
            more["retry-after"] = str(max(1, round(error.retry_after)))
        if isinstance(error, TooLarge) and not body:
            more["connection"] = "close"  # The rest of the request is not going to be read.
        return 202, kind, written, more

    async def _turn_away(self, error: LasthopError, send: Send) -> None:
        """Whoever may not come in at all hears it from HTTP."""
        self.refused[error.code] += 1
        answer = Document(BadMessageResponse(error.pap_code, error.detail), supported=SUPPORTED)
        kind, body = write_submission(Submission(answer))
        more = {}
        if isinstance(error, Unauthorized):
            more["www-authenticate"] = 'Basic realm="lasthop", Bearer realm="lasthop"'
        await _respond(send, error.http_status, body, kind, **more)


async def _respond(send: Send, status: int, body: bytes, kind: str, **more: str) -> None:
    headers = [
        (b"content-type", kind.encode("latin-1")),
        (b"content-length", b"%d" % len(body)),
        *((name.replace("_", "-").encode(), value.encode()) for name, value in more.items()),
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
