"""Publishing with one shell line: `curl -d 'text' http://HOST/TOPIC`, with options as headers."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from starlette.types import Receive, Scope as Connection, Send

from lasthop.access.callers import Caller
from lasthop.access.rest.answers import AcceptedMany, encode
from lasthop.access.rest.context import OperationContext, one_of
from lasthop.access.rest.misdirected import is_topic, misdirected
from lasthop.access.rest.problems import MethodNotAllowed, malformed
from lasthop.access.rest.publish import respond
from lasthop.access.rest.requests import Publication, digest
from lasthop.core.apps.credentials import Scope
from lasthop.core.names import check_topic
from lasthop.errors import InvalidRequest, NotFound, Rejected, Unauthorized
from lasthop.wire.pap.submission import is_submission

RESERVED = frozenset(
    {
        "v1",
        "v2",
        "v3",
        "api",
        "pap",
        "hop",
        "ws",
        "wsp",
        "ota",
        "push",
        "ppg",
        "wappush",
        "sms",
        "health",
        "healthz",
        "live",
        "ready",
        "readyz",
        "metrics",
        "docs",
        "openapi.json",
        "admin",
        "dashboard",
        "static",
        "assets",
        "events",
        "explain",
        "status",
        "login",
        "logout",
        "favicon.ico",
        "robots.txt",
        ".well-known",
    }
)
"""First path segments that the gateway uses or may use later, so that they cannot be topics in the
one-line form. `POST /v1/messages` publishes to topics of any name."""

PUSH_PATHS = frozenset({"pap", "ppg", "wappush"})
"""Usual paths of PAP: an initiator that is configured for another gateway, or for an earlier
`pap.path`, must learn that none of its pushes were accepted."""

FIELDS = {
    b"title": "title",
    b"rank": "rank",
    b"priority": "priority",
    b"ttl": "ttl",
    b"delay": "delay",
    b"delay-tolerance": "delay_tolerance",
    b"replace-key": "replace_key",
    b"reliability": "reliability",
    b"handling": "handling",
    b"queue": "queue",
    b"immediate": "immediate",
}
"""The header for each field of a publication; `X-` before the header's name is allowed."""

RELATIVE = 1_000_000_000
"""An `Expires` number below this one means seconds from now; any other number means seconds since
1970. As seconds since 1970, this number is a time in 2001."""

_FORM = b"application/x-www-form-urlencoded"


def topic_in(path: str) -> str | None:
    """Return the topic that a path names in the one-line form, or None for other paths."""
    segment = path[1:]
    return segment if segment and "/" not in segment else None


async def publish_line(
    context: OperationContext, connection: Connection, receive: Receive, send: Send
) -> None:
    """Publish the request's body to the topic in the path."""
    headers: dict[bytes, bytes] = dict(connection["headers"])
    caller = await _caller(context, connection)
    caller.require(Scope.PUBLISH)
    publication = publication_of(connection["path"][1:], headers)
    body = await context.intake.read(headers, receive)
    try:
        if is_submission(headers.get(b"content-type", b"").decode("latin-1"), body):
            spoken = _where_spoken(context.settings.pap)
            raise NotFound(f"a PAP push cannot be published to a topic; {spoken}")
        context.charge(caller, messages=1, size=len(body))
        accepted = await context.accept(
            caller,
            [context.converter(headers).one(publication, content=body)],
            key=headers.get(b"idempotency-key"),
            digest=lambda: digest([publication], body),
        )
    finally:
        context.intake.release(len(body))
    await respond(send, 200 if accepted.repeated else 202, *answer_to(headers, accepted))


async def _caller(context: OperationContext, connection: Connection) -> Caller:
    """Return who publishes. If the path is another service's and not a topic that somebody has
    made, say so, rather than that a credential is missing."""
    foreign = misdirected(connection["path"])
    try:
        caller = await context.callers.of(connection)
    except Unauthorized:
        if foreign is not None:
            raise foreign from None
        raise
    topic = connection["path"][1:]
    if foreign is not None and not context.live.look(lambda live: is_topic(live, caller, topic)):
        raise foreign
    return caller


def answer_to(headers: Mapping[bytes, bytes], accepted: AcceptedMany) -> tuple[bytes, bytes]:
    """Return the answer and its content type: JSON, or text if the client prefers that."""
    if headers.get(b"accept", b"").strip().lower().startswith(b"text/plain"):
        return accepted.ids[0].encode() + b"\n", b"text/plain; charset=utf-8"
    return encode(one_of(accepted)), b"application/json"


async def answer_line(
    context: OperationContext, connection: Connection, receive: Receive, send: Send
) -> None:
    """Publish to the topic in the path by POST or PUT, or answer a GET with how to publish to
    it."""
    method = connection["method"]
    if method in {"POST", "PUT"}:
        await publish_line(context, connection, receive, send)
    elif method in {"GET", "HEAD"}:
        await respond(send, 200, hint(connection), b"text/plain; charset=utf-8")
    else:
        raise MethodNotAllowed(
            "the path does not support this method", allow="GET, HEAD, POST, PUT"
        )


def hint(connection: Connection) -> bytes:
    """Return a text that says how to publish to the topic in the path."""
    topic = _checked(connection["path"][1:])
    host = dict(connection["headers"]).get(b"host", b"HOST").decode("latin-1")
    scheme = connection.get("scheme", "http")
    return f"Publish here: curl -d 'text' {scheme}://{host}/{topic}\n".encode()


def refuse_reserved(segment: str, pap: str) -> InvalidRequest:
    """Return the error for publishing to a reserved path; `pap` is the path of the PAP door, if
    there is one."""
    words = (
        f"{segment!r} is a path of the gateway, not a topic in the one-line form;"
        " POST /v1/messages publishes to any topic"
    )
    if segment in PUSH_PATHS:
        words += f"; {_where_spoken(pap)}"
    return InvalidRequest(words, field="topic")


def _where_spoken(pap: str) -> str:
    return f"PAP requests go to POST {pap}" if pap else "this gateway does not accept PAP"


def publication_of(topic: str, headers: Mapping[bytes, bytes]) -> Publication:
    """Return the publication that a path and headers describe; raise `InvalidRequest` for wrong
    values."""
    fields: dict[str, object] = {"topic": _checked(topic)}
    for header, field in FIELDS.items():
        value = _value(headers, header)
        if value is not None:
            fields[field] = value
    expires = _value(headers, b"expires")
    if expires is not None:
        fields[_kind_of_expiry(expires)] = expires
    content_type = headers.get(b"x-content-type", headers.get(b"content-type", _FORM))
    if not content_type.startswith(_FORM):  # curl sends this type by default, so it says nothing.
        fields["content_type"] = content_type.decode("latin-1")
    try:
        return msgspec.convert(fields, Publication, strict=False)
    except msgspec.ValidationError as error:
        raise malformed(error) from None


def _checked(topic: str) -> str:
    try:
        return check_topic(topic)
    except Rejected as error:
        error.fields["field"] = "topic"
        raise


def _value(headers: Mapping[bytes, bytes], name: bytes) -> str | None:
    value = headers.get(b"x-" + name, headers.get(name))
    if value is None:
        return None
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.decode("latin-1")


def _kind_of_expiry(text: str) -> str:
    """Return the field that an `Expires` value stands for, judged by its form: a duration (`ttl`)
    or a time (`deliver_before`)."""
    try:
        return "ttl" if float(text) < RELATIVE else "deliver_before"
    except ValueError:
        return "deliver_before" if text[4:5] == "-" else "ttl"
