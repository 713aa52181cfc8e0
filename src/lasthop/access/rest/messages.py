"""Handlers for accepted messages: their status, their cancellation and replacement, and the history
of their deliveries."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Annotated, Literal, TypeAlias

import msgspec
from msgspec import Meta
from starlette.responses import Response

from lasthop.access.rest.answers import (
    Cancelled,
    MessageStatus,
    Replaced,
    delivery_of,
    json_response,
    summary_of,
)
from lasthop.access.rest.context import OperationContext
from lasthop.access.rest.exchange import RestExchange
from lasthop.access.rest.problems import TooLate
from lasthop.access.rest.requests import Publication
from lasthop.access.rest.times import datetime_of
from lasthop.core.groups.decider import Standing
from lasthop.core.lifecycle import State
from lasthop.errors import NotFound
from lasthop.message import Message, TargetKind
from lasthop.store.commit import DeliveryRow
from lasthop.store.groups import GroupMessageRow

Ready: TypeAlias = Callable[[list[DeliveryRow]], bool]


class StatusQuery(msgspec.Struct, forbid_unknown_fields=True):
    """The query of a message's status: what to wait for, and which deliveries to list."""

    wait: Annotated[
        Literal["received", "delivered", "final", "reply", "settled"] | None,
        Meta(description="Answer when some device has reached this, or none can any more"),
    ] = None
    timeout: Annotated[float, Meta(ge=0, description="Seconds to wait at most")] = 30.0
    limit: Annotated[int, Meta(ge=1, le=1000, description="Deliveries to list")] = 100
    device: Annotated[str | None, Meta(description="List only this device's delivery")] = None


class ExplainQuery(msgspec.Struct, forbid_unknown_fields=True):
    """The query for a delivery's history: the device of the delivery."""

    device: str


_HAD = {State.DELIVERED, State.SENT}


def _over(rows: list[DeliveryRow]) -> bool:
    return not any(row.open for row in rows)


REACHED: dict[str, Ready] = {
    "received": lambda rows: any(row.state in {State.RECEIVED, *_HAD} for row in rows),
    "delivered": lambda rows: any(row.state in _HAD for row in rows),
    "final": _over,
    "reply": lambda rows: any(row.reply for row in rows),
}
"""The condition for each goal of `wait`: some device has reached the state; `final` requires that
all deliveries have ended."""


def is_ready(goal: str, rows: list[DeliveryRow]) -> bool:
    """Whether a goal of `wait` is reached or can no longer be reached.

    An answer may come long after the delivery; only a device that never got the message cannot
    answer.
    """
    if REACHED[goal](rows):
        return True
    return _over(rows) and not (goal == "reply" and REACHED["delivered"](rows))


async def status(exchange: RestExchange) -> Response:
    """Show the status of a message; with `wait`, as soon as the goal is reached or can no longer be
    reached."""
    query = exchange.query(StatusQuery)
    context = exchange.context
    message = await context.find(exchange.caller, exchange.path("id"), received=True)
    if query.wait is None:
        rows = await context.deliveries(message.key)
        return json_response(await _status(exchange, message, rows, query))
    ready = partial(_is_ready_here, context, message.key, query.wait)
    rows = await context.wait(exchange.request.receive, message.key, ready, query.timeout)
    answer = await _status(exchange, message, rows, query)
    if query.wait == "settled":
        answer.satisfied = answer.outcome not in (None, "held", "claimable")
    else:
        answer.satisfied = REACHED[query.wait](rows) and ready(rows)
    return json_response(answer)


def _is_ready_here(context: OperationContext, key: int, goal: str, rows: list[DeliveryRow]) -> bool:
    """Whether a goal of `wait` is reached or cannot be, also while the fan-out still makes
    deliveries or a group decides on the message as a whole."""
    if goal == "settled":
        return not context.live.look(lambda gateway: gateway.groups.is_undecided(key))
    if not is_ready(goal, rows):
        return False
    return not (_over(rows) and context.live.look(lambda gateway: key in gateway.deliveries.items))


async def _status(
    exchange: RestExchange, message: Message, rows: list[DeliveryRow], query: StatusQuery
) -> MessageStatus:
    context = exchange.context
    wanted = None if query.device is None else device_number(exchange, query.device)
    shown = rows_of(wanted, rows)
    listed = shown[: min(query.limit, context.settings.max_listed)]
    names = names_of(exchange, [row.device for row in listed])
    keys = [row.reply for row in listed if row.reply]
    replies = await context.live.read(lambda reader: reader.messages(keys)) if keys else {}
    outcome, winner = await _outcome(exchange, message)
    return MessageStatus(
        id=message.id,
        to=str(message.target),
        source=message.source,
        accepted_at=datetime_of(message.accepted_at),
        summary=summary_of(rows),
        deliveries=[delivery_of(row, names, replies) for row in listed],
        more=len(listed) < len(shown),
        outcome=outcome,
        claimed_by=winner,
    )


_UNSAID = {Standing.SPREADING, Standing.SPREAD}


async def _outcome(exchange: RestExchange, message: Message) -> tuple[str | None, str | None]:
    """Return the outcome of a message for a group or queue as a whole, and the device that has
    claimed it; None for each that does not apply."""
    if message.target.kind not in (TargetKind.GROUP, TargetKind.QUEUE):
        return None, None
    found = await exchange.context.live.read(
        lambda reader: reader.find(GroupMessageRow, [message.key])
    )
    row = found.get(message.key)
    if row is None or row.state in _UNSAID:
        return None, None
    winner = names_of(exchange, [row.device] if row.device else []).get(row.device)
    return Standing(row.state).name.lower(), winner


def names_of(exchange: RestExchange, numbers: list[int]) -> dict[int, str]:
    """Return the names of devices by number, without devices that were removed."""
    if not numbers:
        return {}
    found = exchange.context.live.look(
        lambda gateway: [gateway.registry.numbered(number) for number in numbers]
    )
    return {device.number: device.name for device in found if device is not None}


def device_number(exchange: RestExchange, name: str) -> int:
    """Return the number of a device of the caller's app; raise `NotFound` if there is none."""
    app = exchange.caller.app
    return exchange.context.live.look(lambda gateway: gateway.registry.named(app, name).number)


def rows_of(device: int | None, rows: list[DeliveryRow]) -> list[DeliveryRow]:
    """Return the deliveries to one device, or all of them if `device` is None."""
    return rows if device is None else [row for row in rows if row.device == device]


async def cancel(exchange: RestExchange) -> Response:
    """Cancel the deliveries of a message that have not been sent."""
    context = exchange.context
    message = await context.find(exchange.caller, exchange.path("id"))
    app, key = message.app, message.key
    withdrawal = await context.live.call(lambda gateway, now: gateway.cancel(app, key, now))
    rows = await context.deliveries(key)
    # Deliveries that a fan-out had not begun never get rows; they are counted in the withdrawal.
    # Those of an earlier cancellation are in the rows, so that a repeated request gets the same
    # answer.
    in_rows = sum(row.state == State.CANCELLED for row in rows)
    answer = Cancelled(
        cancelled=max(in_rows, 0 if withdrawal is None else withdrawal.taken_back),
        too_late=len(rows) - in_rows,
    )
    if (await _outcome(exchange, message))[0] == "cancelled":
        # The group cancelled the message as a whole: even a device that received it will not show
        # it or act on it any more.
        answer = Cancelled(max(1, len(rows)), 0)
    if not answer.cancelled:
        raise TooLate(
            "no delivery of this message can be cancelled any more", too_late=answer.too_late
        )
    return json_response(answer)


async def replace(exchange: RestExchange) -> Response:
    """Replace a message for the devices to which it has not been sent."""
    context, caller = exchange.context, exchange.caller
    message = await context.find(caller, exchange.path("id"))
    publication = await exchange.body(Publication)
    context.charge(caller, messages=1, size=0)
    submission = context.converter(exchange.headers).one(publication, target=message.target)
    withdrawal, new = await context.change(
        lambda gateway, now: gateway.replace(
            message.app, message.key, caller.source, submission, now
        ),
        lambda done: () if done[1] is None else (done[1],),
    )
    if withdrawal is None or new is None:
        raise TooLate("no delivery of this message can be replaced any more")
    return json_response(Replaced(new, withdrawal.taken_back, withdrawal.too_late))


async def explain(exchange: RestExchange) -> Response:
    """Show the stored history of one delivery: every decision with its reason."""
    query = exchange.query(ExplainQuery)
    message = await exchange.context.find(exchange.caller, exchange.path("id"))
    number = device_number(exchange, query.device)
    if exchange.context.explain is None:
        raise NotFound("this gateway keeps no event log, so it cannot explain deliveries")
    return json_response(await exchange.context.explain(message.key, number))
