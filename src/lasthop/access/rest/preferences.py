"""Handlers for a device's preferences, and for how much of its budgets is used."""

from __future__ import annotations

from datetime import datetime

import msgspec
from starlette.responses import Response

from lasthop.access.rest.answers import json_response
from lasthop.access.rest.exchange import RestExchange
from lasthop.access.rest.times import datetime_of
from lasthop.clock import Micros
from lasthop.core.gateway import Gateway
from lasthop.core.preferences.feature import preferences_of
from lasthop.decision.budgets import Budgets, Limit
from lasthop.decision.preferences import Preferences


class Usage(msgspec.Struct):
    """A budget limit and what was used of it in the current period."""

    limit: Limit
    used: int
    reserved: int
    """The amount reserved for messages that are about to be sent."""
    until: datetime
    shared: bool = False
    """Whether the limit is shared by all devices of the gateway."""


class BudgetInfo(msgspec.Struct):
    """A device's budgets: what is used of each limit, and how many deliveries wait."""

    device: str
    limits: list[Usage]
    held: int
    """The number of deliveries that wait for a link, a budget or a better time."""


async def show(exchange: RestExchange) -> Response:
    """Show a device's preferences: links, limits, queues, calendar and quiet hours."""
    app, name = exchange.caller.app, exchange.path("name")

    def look(gateway: Gateway) -> Preferences:
        return gateway.registry.named(app, name).record.preferences or Preferences()

    return json_response(exchange.context.live.look(look))


async def change(exchange: RestExchange) -> Response:
    """Replace a device's preferences. If a limit is in both the old and the new preferences, the
    amount used of it is kept."""
    app, name = exchange.caller.app, exchange.path("name")
    preferences = await exchange.body(Preferences)

    def act(gateway: Gateway, now: Micros) -> Preferences:
        gateway.preferences.prefer(app, name, preferences, now)
        return preferences

    return json_response(await exchange.context.live.call(act))


async def budgets(exchange: RestExchange) -> Response:
    """Show what is used of every limit that applies to a device."""
    app, name = exchange.caller.app, exchange.path("name")
    now = exchange.context.live.now()

    def look(gateway: Gateway) -> BudgetInfo:
        session = gateway.deliveries.named(app, name)
        device_preferences = preferences_of(session)
        if device_preferences is None:
            return BudgetInfo(name, [], 0)
        own, shared = device_preferences.budgets, device_preferences.budgets.shared
        limits = _usage(own, now) + (_usage(shared, now, shared=True) if shared else [])
        held = sum(len(lane.queue) for lane in device_preferences.held.values())
        return BudgetInfo(name, limits, held)

    return json_response(exchange.context.live.look(look))


def _usage(budgets: Budgets, now: Micros, *, shared: bool = False) -> list[Usage]:
    return [
        Usage(meter.limit, meter.used, meter.held, datetime_of(meter.ends), shared)
        for meter in budgets.usage(now)
    ]
