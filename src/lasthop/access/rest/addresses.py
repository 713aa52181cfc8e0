"""Handlers for the PAP client addresses that stand for users, topics, devices or all devices of an
app."""

from __future__ import annotations

from starlette.responses import Response

from lasthop.access.rest.administration import AddressTarget, checked_address
from lasthop.access.rest.answers import AddressInfo, AddressList, json_response
from lasthop.access.rest.exchange import RestExchange
from lasthop.core.names import parse_target
from lasthop.errors import Rejected


async def list_addresses(exchange: RestExchange) -> Response:
    """List the client addresses of the app that stand for a target."""
    app = exchange.caller.app
    found = exchange.context.live.look(lambda gateway: gateway.pushes.addresses.targets(app))
    return json_response(AddressList([AddressInfo(a, str(t)) for a, t in sorted(found.items())]))


async def point(exchange: RestExchange) -> Response:
    """Let a client address stand for a target; no device needs to match the target yet."""
    app, address = exchange.caller.app, checked_address(exchange.path("address"), "address")
    given = await exchange.body(AddressTarget)
    try:
        target = parse_target(given.target)
    except Rejected as error:
        error.fields["field"] = "target"
        raise
    await exchange.context.live.call(lambda gateway, _: gateway.pushes.point(app, address, target))
    return json_response(AddressInfo(address, str(target)))


async def remove(exchange: RestExchange) -> Response:
    """Remove the target that a client address stands for."""
    app, address = exchange.caller.app, checked_address(exchange.path("address"), "address")
    await exchange.context.live.call(lambda gateway, _: gateway.pushes.point(app, address, None))
    return json_response(AddressInfo(address, ""))
