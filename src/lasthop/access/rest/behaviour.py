"""Handlers that show the behaviour of an app's messages, set it, and reset it to the gateway's
settings."""

from __future__ import annotations

from starlette.responses import Response

from lasthop.access.rest.answers import json_response
from lasthop.access.rest.exchange import RestExchange
from lasthop.clock import Micros
from lasthop.core.apps.behaviour import Behaviour
from lasthop.core.gateway import Gateway
from lasthop.errors import NotFound


def _app(exchange: RestExchange) -> str:
    app = exchange.path("app")
    if app != exchange.caller.app:
        raise NotFound("no such app", app=app)
    return app


async def show(exchange: RestExchange) -> Response:
    """Show the behaviour of the app's messages."""
    app = _app(exchange)
    look = exchange.context.live.look
    return json_response(
        look(lambda gateway: gateway.deliveries.behaviours.get(app) or Behaviour())
    )


async def change(exchange: RestExchange) -> Response:
    """Set the behaviour of the app's messages from now on."""
    app = _app(exchange)
    behaviour = await exchange.body(Behaviour)

    def act(gateway: Gateway, now: Micros) -> Behaviour:
        gateway.admin.behave(app, behaviour)
        return behaviour

    return json_response(await exchange.context.live.call(act))


async def forget(exchange: RestExchange) -> Response:
    """Remove the behaviour set by REST, so that the app's settings or the defaults apply again."""
    app = _app(exchange)

    def act(gateway: Gateway, now: Micros) -> Behaviour:
        gateway.admin.behave(app, None)
        return gateway.deliveries.behaviours.get(app) or Behaviour()

    return json_response(await exchange.context.live.call(act))
