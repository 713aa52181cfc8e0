"""Surrogates, for administrators: how they are, and loading them anew."""

from __future__ import annotations

import msgspec
from starlette.responses import Response

from lasthop.access.rest.answers import json_response
from lasthop.access.rest.exchange import RestExchange
from lasthop.access.rest.surrogate_manager import SurrogateInfo, SurrogateManager
from lasthop.errors import NotFound


class SurrogateList(msgspec.Struct):
    """All surrogates."""

    surrogates: list[SurrogateInfo]


async def list_surrogates(exchange: RestExchange) -> Response:
    """All surrogates."""
    surrogate_manager = exchange.context.surrogate_manager
    return json_response(
        SurrogateList([] if surrogate_manager is None else surrogate_manager.status())
    )


async def show_surrogate(exchange: RestExchange) -> Response:
    """One app's surrogate."""
    return json_response(_surrogate_manager(exchange).of(exchange.path("app")))


async def reload_surrogate(exchange: RestExchange) -> Response:
    """Load an app's surrogate anew; the old one stays when the new one cannot be loaded."""
    return json_response(await _surrogate_manager(exchange).reload(exchange.path("app")))


def _surrogate_manager(exchange: RestExchange) -> SurrogateManager:
    surrogate_manager = exchange.context.surrogate_manager
    if surrogate_manager is None:
        raise NotFound("this app has no surrogate", app=exchange.path("app"))
    return surrogate_manager
