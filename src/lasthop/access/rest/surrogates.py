"""Handlers by which administrators see the surrogates of a gateway and reload them."""

from __future__ import annotations

import msgspec
from starlette.responses import Response

from lasthop.access.rest.answers import json_response
from lasthop.access.rest.exchange import RestExchange
from lasthop.access.rest.surrogate_manager import SurrogateInfo, SurrogateManager
from lasthop.errors import NotFound


class SurrogateList(msgspec.Struct):
    """The states of all surrogates of the gateway."""

    surrogates: list[SurrogateInfo]


async def list_surrogates(exchange: RestExchange) -> Response:
    """List the surrogates of the gateway with their states."""
    surrogate_manager = exchange.context.surrogate_manager
    return json_response(
        SurrogateList([] if surrogate_manager is None else surrogate_manager.status())
    )


async def show_surrogate(exchange: RestExchange) -> Response:
    """Show the state of an app's surrogate."""
    return json_response(_surrogate_manager(exchange).of(exchange.path("app")))


async def reload_surrogate(exchange: RestExchange) -> Response:
    """Load an app's surrogate again; if the new one cannot be loaded, the old one keeps running."""
    return json_response(await _surrogate_manager(exchange).reload(exchange.path("app")))


def _surrogate_manager(exchange: RestExchange) -> SurrogateManager:
    surrogate_manager = exchange.context.surrogate_manager
    if surrogate_manager is None:
        raise NotFound("this app has no surrogate", app=exchange.path("app"))
    return surrogate_manager
