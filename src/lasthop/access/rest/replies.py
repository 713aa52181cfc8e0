"""Handlers for answers: the answers of devices to a message, and a publisher's answer to a
device."""

from __future__ import annotations

from base64 import b64encode
from typing import Annotated

import msgspec
from msgspec import Meta
from starlette.responses import Response

from lasthop.access.rest.answers import json_response
from lasthop.access.rest.context import one_of
from lasthop.access.rest.exchange import RestExchange
from lasthop.access.rest.messages import device_number, is_ready, names_of, rows_of
from lasthop.access.rest.problems import NoReply
from lasthop.access.rest.requests import Publication, digest
from lasthop.clock import SECOND
from lasthop.core.lifecycle import State
from lasthop.errors import InvalidRequest
from lasthop.message import Message, Target, TargetKind, key_time
from lasthop.store.commit import DeliveryRow

MOST_BYTES = 4 << 20
"""The largest number of bytes of answers in one response; further answers are listed by id only,
and can be fetched one by one."""


class ReplyQuery(msgspec.Struct, forbid_unknown_fields=True):
    """The query for one answer: which device's, and how long to wait for it."""

    timeout: Annotated[float, Meta(ge=0, description="Seconds to wait at most")] = 0.0
    device: Annotated[
        str | None, Meta(description="The device that answers; default: the first")
    ] = None


class GatherQuery(msgspec.Struct, forbid_unknown_fields=True):
    """The query for all answers: how long to wait, and how many are enough."""

    timeout: Annotated[float, Meta(ge=0, description="Seconds to wait at most")] = 0.0
    most: Annotated[
        Annotated[int, Meta(ge=1)] | None, Meta(description="Answer when so many answers have come")
    ] = None


class Reply(msgspec.Struct, omit_defaults=True):
    """The answer of one device to a message."""

    device: str | None
    """The device's name; null if the device has been removed since."""
    id: str
    content_type: str
    body: str | None = None
    """The answer's body, if it is text."""
    body_base64: str | None = None
    """The answer's body in base64, if it is not text."""


class Replies(msgspec.Struct):
    """The answers of devices to a message, one for each device, in the order in which they
    arrived."""

    id: str
    replies: list[Reply]
    missing: list[str]
    """The devices that have not answered, including devices that can no longer answer."""
    complete: bool
    """Whether every device that can answer has answered, or as many answers as were asked for have
    arrived."""
    more: bool
    """Whether there are more answers or devices than are listed."""


async def reply(exchange: RestExchange) -> Response:
    """Answer a message that a device sent to publishers."""
    context, caller = exchange.context, exchange.caller
    message = await context.find(caller, exchange.path("id"), received=True)
    target = _sender(message)
    publication = await exchange.body(Publication)
    context.charge(caller, messages=1, size=0)
    accepted = await context.accept(
        caller,
        [context.converter(exchange.headers).one(publication, target=target, answers=message)],
        key=exchange.headers.get(b"idempotency-key"),
        digest=lambda: digest([publication], message.key),
    )
    return json_response(one_of(accepted), 200 if accepted.repeated else 202)


def _sender(message: Message) -> Target:
    kind, _, name = message.source.partition(":")
    if kind != TargetKind.DEVICE:
        raise InvalidRequest("only a message that a device sent can be answered", id=message.id)
    return Target(TargetKind.DEVICE, name)


async def get_reply(exchange: RestExchange) -> Response:
    """Return a device's answer to a message, as the device sent it."""
    query = exchange.query(ReplyQuery)
    message = await exchange.context.find(exchange.caller, exchange.path("id"))
    wanted = None if query.device is None else device_number(exchange, query.device)
    return content_of(await first_reply(exchange, message, wanted, query.timeout))


async def first_reply(
    exchange: RestExchange, message: Message, device: int | None, patience: float
) -> Message:
    """Wait for the first answer to a message, from one device or from any, but not beyond the
    message's deadline for answers; raise `NoReply` if no answer came."""
    context = exchange.context

    def ready(rows: list[DeliveryRow]) -> bool:
        return is_ready("reply", rows_of(device, rows))

    seconds = _patience(exchange, message, patience)
    rows = await context.wait(exchange.request.receive, message.key, ready, seconds)
    keys = sorted(row.reply for row in rows_of(device, rows) if in_time(message, row.reply))
    found = await context.live.read(lambda reader: reader.messages(keys[:1]))
    if not found:
        raise NoReply("no device has answered this message", id=message.id)
    return found[keys[0]]


async def get_replies(exchange: RestExchange) -> Response:
    """Return the answers to a message as soon as every device that can answer has answered, `most`
    devices have answered, or the time is up."""
    query = exchange.query(GatherQuery)
    context = exchange.context
    message = await context.find(exchange.caller, exchange.path("id"))

    def complete(rows: list[DeliveryRow]) -> bool:
        count = sum(in_time(message, row.reply) for row in rows)
        if query.most is not None and count >= query.most:
            return True
        return not _spreading(exchange, message) and all(_heard(message, row) for row in rows)

    seconds = _patience(exchange, message, query.timeout)
    rows = await context.wait(exchange.request.receive, message.key, complete, seconds)
    return json_response(await _replies(exchange, message, rows, complete(rows)))


async def _replies(
    exchange: RestExchange, message: Message, rows: list[DeliveryRow], complete: bool
) -> Replies:
    limit = exchange.context.settings.max_listed
    answered = sorted(
        (row for row in rows if in_time(message, row.reply)), key=lambda row: row.reply
    )
    silent = [row for row in rows if not in_time(message, row.reply)]
    names = names_of(exchange, [row.device for row in (*answered[:limit], *silent[:limit])])
    keys = [row.reply for row in answered[:limit]]
    found = await exchange.context.live.read(lambda reader: reader.messages(keys)) if keys else {}
    room = MOST_BYTES
    replies = []
    for row in answered[:limit]:
        body = found.get(row.reply)
        if body is not None:
            room -= len(body.body)
            replies.append(_reply(names.get(row.device), body, shown=room >= 0))
    return Replies(
        id=message.id,
        replies=replies,
        missing=[names[row.device] for row in silent[:limit] if row.device in names],
        complete=complete,
        more=len(answered) > limit or len(silent) > limit,
    )


def _reply(device: str | None, message: Message, *, shown: bool) -> Reply:
    reply = Reply(device, message.id, message.content_type)
    if shown:
        try:
            reply.body = message.body.decode()
        except UnicodeDecodeError:
            reply.body_base64 = b64encode(message.body).decode()
    return reply


def in_time(message: Message, reply: int) -> bool:
    """Whether a delivery has an answer, and the answer came before the message's deadline for
    answers if there is a deadline."""
    return reply != 0 and (message.reply_before is None or key_time(reply) < message.reply_before)


def _heard(message: Message, row: DeliveryRow) -> bool:
    """Whether a device has answered, or cannot because it never got the message."""
    return in_time(message, row.reply) or not (row.open or row.state == State.DELIVERED)


def _spreading(exchange: RestExchange, message: Message) -> bool:
    """Whether the fan-out of a message still has deliveries to make."""
    item = exchange.context.live.look(lambda gateway: gateway.deliveries.items.get(message.key))
    return item is not None and item.spreading


def _patience(exchange: RestExchange, message: Message, timeout: float) -> float:
    """Return the seconds to wait for answers: the timeout, but not beyond the message's deadline
    for answers."""
    if message.reply_before is None or timeout > exchange.context.settings.max_wait:
        return timeout  # A timeout above the limit is refused later, whatever the deadline.
    left = (message.reply_before - exchange.context.live.now()) / SECOND
    return min(timeout, max(0.0, left))


def content_of(message: Message) -> Response:
    """Return a message's body as a response. Others wrote the body, so browsers are told not to
    show it as a page of the gateway."""
    content_type = message.content_type
    if not (content_type.isascii() and content_type.isprintable()):
        content_type = "application/octet-stream"
    headers = {
        "content-type": content_type,
        "content-disposition": "attachment",
        "content-security-policy": "sandbox; default-src 'none'; frame-ancestors 'none'",
        "x-content-type-options": "nosniff",
        "x-message-id": message.id,
        "cache-control": "no-store",
    }
    return Response(message.body, 200, headers)
