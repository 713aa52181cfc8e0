"""Surrogates, for administrators: how they are, and loading them anew."""

from __future__ import annotations

import msgspec
from starlette.responses import Response

from lasthop.access.rest.answers import json_response
from lasthop.access.rest.exchange import RestExchange
from lasthop.access.rest.overseer import Overseer, SurrogateInfo
from lasthop.errors import NotFound


class SurrogateList(msgspec.Struct):
    """All surrogates."""

    surrogates: list[SurrogateInfo]


async def list_surrogates(exchange: RestExchange) -> Response:
    """All surrogates."""
    overseer = exchange.clerk.overseer
    return json_response(SurrogateList([] if overseer is None else overseer.status()))


async def show_surrogate(exchange: RestExchange) -> Response:
    """One app's surrogate."""
    return json_response(_overseer(exchange).of(exchange.path("app")))


async def reload_surrogate(exchange: RestExchange) -> Response:
    """Load an app's surrogate anew; the old one stays when the new one cannot be loaded."""
    return json_response(await _overseer(exchange).reload(exchange.path("app")))


def _overseer(exchange: RestExchange) -> Overseer:
    overseer = exchange.clerk.overseer
    if overseer is None:
        raise NotFound("this app has no surrogate", app=exchange.path("app"))
    return overseer
