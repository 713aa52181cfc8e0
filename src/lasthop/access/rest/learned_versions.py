"""Handlers by which administrators see which learned policies are on trial, and end a trial."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta
from starlette.responses import Response

from lasthop.access.rest.answers import json_response
from lasthop.access.rest.exchange import RestExchange
from lasthop.access.rest.policy_manager import PolicyManager
from lasthop.errors import NotFound


class TrialShare(msgspec.Struct, forbid_unknown_fields=True):
    """The share of the devices on which a version is tried."""

    percent: Annotated[float, Meta(gt=0, le=100, description="Percent of the devices.")]


class TrialEnd(msgspec.Struct, forbid_unknown_fields=True):
    """The reason for which a trial is ended."""

    reason: Annotated[
        str, Meta(max_length=200, description="Why, for the event log and for colleagues.")
    ] = "decided by an administrator"


async def show(exchange: RestExchange) -> Response:
    """Show which versions are in force and on trial, and the live loss of both."""
    return json_response(await _manager(exchange).status())


async def widen(exchange: RestExchange) -> Response:
    """Change the share of the devices that the version on trial decides for."""
    share = await exchange.body(TrialShare)
    return json_response(await _manager(exchange).widen(share.percent))


async def promote(exchange: RestExchange) -> Response:
    """Put the version on trial in force for all devices."""
    end = await _end(exchange)
    return json_response(await _manager(exchange).promote(end.reason))


async def take_back(exchange: RestExchange) -> Response:
    """End the trial: the version in force decides for all devices again."""
    end = await _end(exchange)
    return json_response(await _manager(exchange).take_back(end.reason))


async def _end(exchange: RestExchange) -> TrialEnd:
    return await exchange.optional_body(TrialEnd) or TrialEnd()


def _manager(exchange: RestExchange) -> PolicyManager:
    manager = exchange.context.policy_manager
    if manager is None:
        raise NotFound("this gateway has no learned policies")
    return manager
