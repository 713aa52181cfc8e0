"""The one-line form and the API of ntfy: `curl -d 'text' http://HOST/TOPIC` and everything below
the path of a topic.

A request becomes a submission like any other: it is checked, charged, accepted and durable before
it is answered, with the message in ntfy's JSON and the gateway's own fields behind it.
"""

from __future__ import annotations

import hashlib

import msgspec
import structlog
from starlette.requests import ClientDisconnect
from starlette.types import Receive, Scope as Connection, Send

from lasthop.access.callers import Caller
from lasthop.access.direct import Response
from lasthop.access.ntfy.ntfy_errors import refusal_of
from lasthop.access.ntfy.ntfy_event import ATTACHMENT, NtfyEvent, event_of, to_json
from lasthop.access.ntfy.ntfy_parameters import NtfyParameters
from lasthop.access.ntfy.ntfy_publishing import (
    EXTENSION,
    NtfyPublication,
    asked_in_json,
    asked_of,
    submission_of,
)
from lasthop.access.ntfy.ntfy_values import authorized
from lasthop.access.receive.receive_door import CORS, ReceiveDoor
from lasthop.access.receive.receive_request import FORMS
from lasthop.access.rest.answers import AcceptedMany
from lasthop.access.rest.context import OperationContext
from lasthop.access.rest.misdirected import is_topic, misdirected
from lasthop.access.rest.problems import INTERNAL, MethodNotAllowed, headers_of
from lasthop.access.rest.reserved import RESERVED, refuse_reserved, where_pap_is_spoken
from lasthop.clock import SECOND
from lasthop.core.apps.credentials import Scope
from lasthop.core.names import check_topic
from lasthop.core.publishing.submission import Submission, message_of
from lasthop.errors import LasthopError, NotFound, Rejected, Unauthorized
from lasthop.message import parse_id
from lasthop.transport.locality import joined, peer_of
from lasthop.wire.pap.submission import is_submission

log = structlog.get_logger()

JSON = b"application/json"
PUBLISH_BY_GET = frozenset({"publish", "send", "trigger"})
CLEAR = frozenset({"clear", "read"})
FILE_TYPES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
"""Uploaded files that a browser may show; all others it is told to save."""


class NtfyDoor:
    """Serves the paths of topics: publishing, receiving and files."""

    def __init__(self, context: OperationContext, receiving: ReceiveDoor) -> None:
        self._context = context
        self.receiving = receiving

    def serves(self, path: str, method: str, taken: frozenset[str]) -> bool:
        """Return whether a path is one of a topic, and no other door's."""
        first, *rest = path[1:].split("/")
        if path == "/":
            return method in ("POST", "PUT", "OPTIONS")
        if first == "file" and rest:
            return len(rest) == 1
        if not first or first in taken:
            return False
        if first in RESERVED:  # Only to say so in the form of ntfy.
            return not rest and method in ("POST", "PUT")
        if not rest:
            return True
        last = rest[-1]
        if len(rest) == 1 and (last in FORMS or last == "auth" or last in PUBLISH_BY_GET):
            return True
        if method == "OPTIONS":
            return False
        if misdirected(path) is not None or not all(rest):
            return False
        if len(rest) == 1:
            return method in ("POST", "PUT", "DELETE")
        return len(rest) == 2 and last in CLEAR and method == "PUT"

    async def __call__(self, connection: Connection, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it in ntfy's form."""
        try:
            await self._serve(connection, receive, send)
        except ClientDisconnect:
            return
        except LasthopError as error:
            await self._refuse(error, send)
        except Exception:
            log.exception("request failed", method=connection["method"], path=connection["path"])
            await self._refuse(INTERNAL, send)

    async def _refuse(self, error: LasthopError, send: Send) -> None:
        self._context.refused[error.code] += 1
        body = refusal_of(error)
        headers = [(n.encode(), v.encode()) for n, v in headers_of(error).items()]
        await _send(send, error.http_status, body, JSON, *headers)

    async def _serve(self, connection: Connection, receive: Receive, send: Send) -> None:
        method, path = connection["method"], connection["path"]
        first, *rest = path[1:].split("/")
        if method == "OPTIONS":
            await _preflight(send)
        elif path == "/":
            await self._publish_json(connection, receive, send)
        elif first == "file" and rest:
            await self._file(connection, send, rest[0])
        elif not rest and first in RESERVED:
            raise refuse_reserved(first, self._context.settings.pap)
        elif not rest:
            await self._topic(connection, receive, send, first)
        elif rest[0] in FORMS or rest[0] == "auth":
            if method != "GET":
                raise MethodNotAllowed("the path does not support this method", allow="GET")
            await self.receiving.receive_http(connection, receive, send, first, rest[0])
        elif rest[0] in PUBLISH_BY_GET and method in ("GET", "POST", "PUT"):
            await self._publish(connection, receive, send, first)
        elif len(rest) == 2:
            await self._publish(
                connection, receive, send, first, sequence=rest[0], event="message_clear"
            )
        elif method == "DELETE":
            await self._publish(
                connection, receive, send, first, sequence=rest[0], event="message_delete"
            )
        else:
            await self._publish(connection, receive, send, first, sequence=rest[0])

    async def _topic(
        self, connection: Connection, receive: Receive, send: Send, topic: str
    ) -> None:
        method = connection["method"]
        if method in ("POST", "PUT"):
            await self._publish(connection, receive, send, topic)
        elif method not in ("GET", "HEAD"):
            raise MethodNotAllowed(
                "the path does not support this method", allow="GET, HEAD, POST, PUT"
            )
        elif NtfyParameters({}, connection.get("query_string", b"")).true("unifiedpush"):
            await _send(send, 200, b'{"unifiedpush":{"version":1}}\n', JSON)
        else:
            await _send(send, 200, hint(connection), b"text/plain; charset=utf-8")

    # Publishing.

    def _caller(self, connection: Connection, parameters: NtfyParameters) -> Caller:
        headers = joined(connection["headers"])
        extensions = connection.get("extensions") or {}
        certificate = (extensions.get("tls") or {}).get("client_cert_name")
        caller = self._context.callers.recognise(
            authorized(headers, parameters), peer_of(connection), certificate
        )
        caller.require(Scope.PUBLISH)
        return caller

    def _caller_of_topic(
        self, connection: Connection, parameters: NtfyParameters, topic: str
    ) -> Caller:
        """Return who publishes. If the path is another service's and not a topic that somebody has
        made, say so, rather than that a credential is missing."""
        foreign = misdirected(connection["path"])
        try:
            caller = self._caller(connection, parameters)
        except Unauthorized:
            if foreign is not None:
                raise foreign from None
            raise
        live = self._context.live
        if foreign is not None and not live.look(lambda gw: is_topic(gw, caller, topic)):
            raise foreign
        return caller

    async def _publish(
        self,
        connection: Connection,
        receive: Receive,
        send: Send,
        topic: str,
        *,
        sequence: str = "",
        event: str = "",
    ) -> None:
        headers: dict[bytes, bytes] = dict(connection["headers"])
        parameters = NtfyParameters(headers, connection.get("query_string", b""))
        caller = self._caller_of_topic(connection, parameters, topic)
        _check_topic(topic)
        asked = asked_of(topic, parameters, sequence=sequence)
        asked.event = event
        coded = {k: v for k, v in headers.items() if k != b"content-encoding"}
        body = await self._context.intake.read(coded if asked.unifiedpush else headers, receive)
        try:
            self._check_pap(headers, body)
            response = await self._accept(caller, asked, body, headers, _base(connection))
        finally:
            self._context.intake.release(len(body))
        await _send(send, response.status, response.body, response.content_type, CORS)

    async def _publish_json(self, connection: Connection, receive: Receive, send: Send) -> None:
        headers: dict[bytes, bytes] = dict(connection["headers"])
        parameters = NtfyParameters(headers, connection.get("query_string", b""))
        caller = self._caller(connection, parameters)
        body = await self._context.intake.read(headers, receive)
        try:
            self._check_pap(headers, body)
            asked = asked_in_json(body, parameters)
            _check_topic(asked.topic)
            if asked.topic in RESERVED:
                raise refuse_reserved(asked.topic, self._context.settings.pap)
            response = await self._accept(caller, asked, b"", headers, _base(connection))
        finally:
            self._context.intake.release(len(body))
        await _send(send, response.status, response.body, response.content_type, CORS)

    def _check_pap(self, headers: dict[bytes, bytes], body: bytes) -> None:
        if is_submission(headers.get(b"content-type", b"").decode("latin-1"), body):
            spoken = where_pap_is_spoken(self._context.settings.pap)
            raise NotFound(f"a PAP push cannot be published to a topic; {spoken}")

    async def _accept(
        self,
        caller: Caller,
        asked: NtfyPublication,
        body: bytes,
        headers: dict[bytes, bytes],
        base: str,
    ) -> Response:
        context = self._context
        context.charge(caller, messages=1, size=len(body))
        submission = self._submission(asked, body, headers, base)
        accepted = await context.accept(
            caller,
            [submission],
            key=headers.get(b"idempotency-key"),
            digest=lambda: _digest(asked, body),
        )
        return self._answer(caller, submission, accepted, headers, asked)

    def _submission(
        self, asked: NtfyPublication, body: bytes, headers: dict[bytes, bytes], base: str
    ) -> Submission:
        context = self._context
        return submission_of(asked, body, context.converter(headers), context.live.now(), base=base)

    def _answer(
        self,
        caller: Caller,
        submission: Submission,
        accepted: AcceptedMany,
        headers: dict[bytes, bytes],
        asked: NtfyPublication,
    ) -> Response:
        if headers.get(b"accept", b"").strip().lower().startswith(b"text/plain"):
            return Response(200, b"text/plain; charset=utf-8", accepted.ids[0].encode() + b"\n")
        return Response(200, JSON, to_json(self._told(caller, submission, accepted, asked)) + b"\n")

    def _told(
        self, caller: Caller, submission: Submission, accepted: AcceptedMany, asked: NtfyPublication
    ) -> NtfyEvent:
        """Return the message as its publisher is told of it."""
        now = self._context.live.now()
        key, salt = parse_id(accepted.ids[0])
        message = message_of(
            submission,
            key=key,
            salt=salt or 0,
            app=caller.app,
            source=caller.source,
            accepted_at=now,
        )
        outcome = accepted.topics[0] if accepted.topics else None
        kept = outcome is not None and outcome.kept
        age = 0
        if kept:
            histories = self._context.live.look(lambda gateway: gateway.topics.histories)
            age = histories.bounds(caller.app, asked.topic).age
        event = event_of(message, age=age)
        event.message_id = accepted.ids[0]
        event.repeated = accepted.repeated
        if outcome is not None:
            event.subscriptions, event.kept = outcome.subscriptions, outcome.kept
        event.ignored = asked.ignored
        return event

    # Files.

    async def _file(self, connection: Connection, send: Send, name: str) -> None:
        """Send the file that was uploaded with a message; whoever knows its name may have it."""
        if connection["method"] not in ("GET", "HEAD"):
            raise MethodNotAllowed("the path does not support this method", allow="GET, HEAD")
        missing = NotFound("there is no such file")
        if EXTENSION.fullmatch(name) is None:
            raise missing
        try:
            key, salt = parse_id(name[:32])
        except ValueError:
            raise missing from None
        found = await self._context.live.read(lambda reader: reader.messages([key]))
        message = found.get(key)
        if message is None or message.salt != salt or ATTACHMENT not in dict(message.headers):
            raise missing
        file = event_of(message).attachment
        if file is None or not file.size or file.expires * SECOND <= self._context.live.now():
            raise missing
        kind = file.type.partition(";")[0]
        shown = b"inline" if kind in FILE_TYPES else b"attachment"
        body = b"" if connection["method"] == "HEAD" else message.body
        await _send(
            send,
            200,
            body,
            (kind if shown == b"inline" else "application/octet-stream").encode(),
            CORS,
            (b"content-disposition", shown),
            size=len(message.body),
        )


def _check_topic(topic: str) -> str:
    try:
        return check_topic(topic)
    except Rejected as error:
        error.fields["field"] = "topic"
        raise


def _digest(asked: NtfyPublication, body: bytes) -> bytes:
    return hashlib.sha256(msgspec.json.encode((asked, body.hex()))).digest()


def _base(connection: Connection) -> str:
    host = dict(connection["headers"]).get(b"host", b"").decode("latin-1")
    return f"{connection.get('scheme', 'http')}://{host}" if host else ""


def hint(connection: Connection) -> bytes:
    """Return a text that says how to publish to the topic in the path, and how to receive it."""
    topic = _check_topic(connection["path"][1:])
    place = f"{_base(connection) or 'http://HOST'}/{topic}"
    return f"Publish here: curl -d 'text' {place}\nReceive: curl -sN {place}/json\n".encode()


async def _preflight(send: Send) -> None:
    await _send(
        send,
        200,
        b"",
        JSON,
        CORS,
        (b"access-control-allow-methods", b"GET, PUT, POST, PATCH, DELETE"),
        (b"access-control-allow-headers", b"*"),
    )


async def _send(
    send: Send,
    status: int,
    body: bytes,
    content_type: bytes,
    *headers: tuple[bytes, bytes],
    size: int | None = None,
) -> None:
    length = len(body) if size is None else size
    fields = [(b"content-type", content_type), (b"content-length", b"%d" % length), *headers]
    await send({"type": "http.response.start", "status": status, "headers": fields})
    await send({"type": "http.response.body", "body": body})
