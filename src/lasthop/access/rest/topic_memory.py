"""Handlers that show how much topics remember, and change it."""

from __future__ import annotations

import msgspec
from starlette.responses import Response

from lasthop.access.rest.answers import json_response
from lasthop.access.rest.exchange import RestExchange
from lasthop.access.rest.resources import HistoryTerms
from lasthop.clock import SECOND, Micros
from lasthop.core.gateway import Gateway
from lasthop.core.limits import HistoryBounds
from lasthop.core.names import check_topic
from lasthop.errors import NotFound


class TopicMemory(msgspec.Struct):
    """How much a topic remembers, at most and at present."""

    age: float
    """Seconds for which a message is remembered."""
    messages: int
    bytes: int
    remembered: int = 0
    """The number of messages that the topic remembers now; for an app, 0."""
    remembered_bytes: int = 0
    scheduled: int = 0
    """The number of messages that appear later."""


def _told(gateway: Gateway, app: str, topic: str) -> TopicMemory:
    histories = gateway.topics.histories
    bounds = histories.bounds(app, topic)
    told = TopicMemory(bounds.age / SECOND, bounds.messages, bounds.bytes)
    history = histories.find(app, topic) if topic else None
    if history is not None:
        told.remembered, told.remembered_bytes = history.count, history.bytes
        told.scheduled = len(history.scheduled)
    return told


def _asked(exchange: RestExchange) -> tuple[str, str]:
    """Return the app and the topic that a request is about; no topic for the whole app."""
    app = exchange.caller.app
    if "app" in exchange.request.path_params:
        if exchange.path("app") != app:
            raise NotFound("no such app", app=exchange.path("app"))
        return app, ""
    return app, check_topic(exchange.path("topic"))


async def show(exchange: RestExchange) -> Response:
    """Show how much a topic remembers, or any topic of the app."""
    app, topic = _asked(exchange)
    return json_response(exchange.context.live.look(lambda gateway: _told(gateway, app, topic)))


async def change(exchange: RestExchange) -> Response:
    """Set how much a topic remembers from now on, or any topic of the app without terms of its
    own."""
    terms = await exchange.body(HistoryTerms)
    bounds = HistoryBounds(
        age=round(terms.age * SECOND), messages=terms.messages, bytes=terms.bytes
    )
    return await _set(exchange, bounds)


async def forget(exchange: RestExchange) -> Response:
    """Remove what was set: a topic remembers as its app says, and an app as the configuration
    says."""
    return await _set(exchange, None)


async def _set(exchange: RestExchange, bounds: HistoryBounds | None) -> Response:
    app, topic = _asked(exchange)

    def act(gateway: Gateway, now: Micros) -> TopicMemory:
        gateway.topics.histories.set_bounds(app, topic, bounds, now)
        return _told(gateway, app, topic)

    return json_response(await exchange.context.live.call(act))
