"""Handlers for the services that devices offer: listing them, and asking one."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta
from starlette.responses import Response

from lasthop.access.rest.answers import json_response
from lasthop.access.rest.exchange import RestExchange
from lasthop.access.rest.problems import ServiceDeclined
from lasthop.access.rest.replies import content_of, first_reply
from lasthop.access.rest.requests import Publication, digest
from lasthop.access.rest.resources import FindQuery
from lasthop.errors import InvalidRequest, NotFound
from lasthop.message import Message, TargetKind
from lasthop.wire.hop.services import DECLINED_TYPE, OPERATION_HEADER, Offer, Question

BINARY = b"application/octet-stream"


class AskQuery(msgspec.Struct, forbid_unknown_fields=True):
    """The query of a request to a service: how long to wait for the answer."""

    timeout: Annotated[float, Meta(gt=0, description="Seconds to wait for the answer")] = 30.0


class ServiceList(msgspec.Struct):
    """The services that the app's devices offer, ordered by name and version."""

    services: list[Offer]
    more: bool = False


async def list_services(exchange: RestExchange) -> Response:
    """List the services that the app's devices offer."""
    question = Question(operation=exchange.query(FindQuery).operation)
    return json_response(_find(exchange, question))


async def show(exchange: RestExchange) -> Response:
    """Show every version of one service that devices offer."""
    name = exchange.path("name")
    found = _find(exchange, Question(name))
    if not found.services:
        raise NotFound("nobody offers this service", service=name)
    return json_response(found)


def _find(exchange: RestExchange, question: Question) -> ServiceList:
    app = exchange.caller.app
    found = exchange.context.live.look(lambda g: g.services.book.find(app, question))
    return ServiceList(list(found.offers), found.more)


async def ask(exchange: RestExchange) -> Response:
    """Send the body to a device that offers the service, and respond with the device's answer."""
    context, caller = exchange.context, exchange.caller
    timeout = exchange.query(AskQuery).timeout
    if timeout > context.settings.max_wait:
        most = context.settings.max_wait
        raise InvalidRequest(f"timeout: must be between 0 and {most} seconds", field="timeout")
    body = await exchange.content()
    context.charge(caller, messages=1, size=len(body))
    request = Publication(
        to=f"{TargetKind.SERVICE}:{exchange.path('name')}",
        content_type=exchange.headers.get(b"content-type", BINARY).decode("latin-1"),
        ttl=timeout,
        reply_within=timeout,
        headers={OPERATION_HEADER: exchange.path("operation")},
    )
    submission = context.converter(exchange.headers).one(request, content=body)
    accepted = await context.accept(caller, [submission], digest=lambda: digest([request]))
    message = await context.find(caller, accepted.ids[0])
    answer = await first_reply(exchange, message, None, timeout)
    if answer.content_type == DECLINED_TYPE:
        raise _declined(answer)
    return content_of(answer)


def _declined(answer: Message) -> ServiceDeclined:
    try:
        told = msgspec.json.decode(answer.body, type=dict[str, str])
    except (msgspec.DecodeError, UnicodeDecodeError):
        told = {}
    reason = told.get("reason", "unknown")
    return ServiceDeclined(told.get("detail") or reason, reason=reason)
