"""The hot route: `POST /v1/messages`, bare ASGI, one commit for a whole batch."""

from __future__ import annotations

from starlette.types import Receive, Scope as Connection, Send

from lasthop.access.rest.answers import encode
from lasthop.access.rest.clerk import Clerk, one_of
from lasthop.access.rest.requests import Publication, decode, digest
from lasthop.core.acceptance import Submission
from lasthop.core.credentials import Scope
from lasthop.errors import InvalidRequest, TooLarge


async def publish(clerk: Clerk, connection: Connection, receive: Receive, send: Send) -> None:
    """Accept one message, or many together."""
    headers: dict[bytes, bytes] = dict(connection["headers"])
    caller = await clerk.callers.of(connection)
    caller.require(Scope.PUBLISH)
    body = await clerk.intake.read(headers, receive)
    try:
        given = decode(headers.get(b"content-type", b""), body)
        many = given if isinstance(given, list) else [given]
        clerk.charge(caller, messages=len(many), size=len(body))
        accepted = await clerk.accept(
            caller,
            convert(clerk, given, headers),
            key=headers.get(b"idempotency-key"),
            digest=lambda: digest(many),
        )
    finally:
        clerk.intake.release(len(body))
    answer = accepted if isinstance(given, list) else one_of(accepted)
    await respond(send, 200 if accepted.repeated else 202, encode(answer))


def convert(
    clerk: Clerk, given: Publication | list[Publication], headers: dict[bytes, bytes]
) -> list[Submission]:
    """Submissions for what was given in a request; errors of a batch name the message at fault."""
    converter = clerk.converter(headers)
    if isinstance(given, Publication):
        return [converter.one(given)]
    if not given:
        raise InvalidRequest("there is no message in the request")
    limit = clerk.settings.max_messages
    if len(given) > limit:
        raise TooLarge("too many messages in one request", count=len(given), limit=limit)
    return converter.all(given)


async def respond(
    send: Send, status: int, body: bytes, content_type: bytes = b"application/json"
) -> None:
    """Answer at once."""
    headers = [(b"content-type", content_type), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
