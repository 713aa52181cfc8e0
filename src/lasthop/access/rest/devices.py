"""Handlers by which administrators register, list, change and remove devices."""

from __future__ import annotations

from itertools import islice

from starlette.responses import Response

from lasthop.access.rest.administration import (
    DeviceChange,
    NewDevice,
    TokenRotation,
    time_after,
)
from lasthop.access.rest.answers import (
    DeviceInfo,
    DeviceList,
    Removed,
    Subscribed,
    device_of,
    json_response,
)
from lasthop.access.rest.exchange import RestExchange
from lasthop.access.rest.resources import ListQuery, RemoveQuery
from lasthop.clock import SECOND, Micros
from lasthop.core.gateway import Gateway
from lasthop.core.registry import Device, hash_token
from lasthop.errors import InvalidRequest
from lasthop.message import Target, TargetKind


def _info(gateway: Gateway, device: Device, token: str | None = None) -> DeviceInfo:
    return device_of(device, gateway.deliveries.session(device), token)


async def register(exchange: RestExchange) -> Response:
    """Register a device. Its token is shown only in this answer."""
    new = await exchange.body(NewDevice)
    token = exchange.context.make_token()
    app = exchange.caller.app

    def act(gateway: Gateway, now: Micros) -> DeviceInfo:
        return _info(
            gateway,
            gateway.admin.register(app, new.name, new.record(token, now), now),
            token,
        )

    return json_response(await exchange.context.live.call(act), 201)


async def list_devices(exchange: RestExchange) -> Response:
    """List the app's devices, one page at a time."""
    query = exchange.query(ListQuery)
    everyone = Target(TargetKind.APP, "")
    app = exchange.caller.app
    limit = min(query.limit, exchange.context.settings.max_listed)

    def page_of(gateway: Gateway) -> list[DeviceInfo]:
        devices = gateway.registry.reach(app, everyone).values()
        page = islice((d for d in devices if d.number > query.after), limit + 1)
        return [_info(gateway, device) for device in page]

    found = exchange.context.live.look(page_of)
    page = found[:limit]
    return json_response(DeviceList(page, page[-1].number if len(found) > limit else None))


async def show(exchange: RestExchange) -> Response:
    """Show a device and how it is reached."""
    app, name = exchange.caller.app, exchange.path("name")
    info = exchange.context.live.look(
        lambda gateway: _info(gateway, gateway.registry.named(app, name))
    )
    return json_response(info)


async def change(exchange: RestExchange) -> Response:
    """Change a device's user, zone, capabilities, routes or addresses."""
    app, name = exchange.caller.app, exchange.path("name")
    changes = (await exchange.body(DeviceChange)).changes()
    if not changes:
        raise InvalidRequest(
            "nothing to change: give user, zone, capabilities, routes or addresses"
        )

    def act(gateway: Gateway, now: Micros) -> DeviceInfo:
        return _info(gateway, gateway.admin.amend(app, name, now, **changes))

    return json_response(await exchange.context.live.call(act))


async def rotate(exchange: RestExchange) -> Response:
    """Give a device a new token. The old one is accepted for a while if that is asked for;
    otherwise the connections that use it are closed."""
    app, name = exchange.caller.app, exchange.path("name")
    asked = await exchange.optional_body(TokenRotation) or TokenRotation()
    token = exchange.context.make_token()

    def act(gateway: Gateway, now: Micros) -> DeviceInfo:
        former = gateway.registry.named(app, name).record
        until = now + asked.overlap * SECOND if former.token_hash else 0
        device = gateway.admin.amend(
            app,
            name,
            now,
            token_hash=hash_token(token),
            former_hash=former.token_hash,
            former_until=min(until, former.token_expires or until),
            token_expires=time_after(asked.expires_in, now),
            token_used=0,
        )
        return _info(gateway, device, token)

    return json_response(await exchange.context.live.call(act))


async def remove(exchange: RestExchange) -> Response:
    """Remove a device; its open deliveries become undeliverable."""
    query = exchange.query(RemoveQuery)
    context = exchange.context
    app, name = exchange.caller.app, exchange.path("name")
    if query.erase and context.erase is None:
        raise InvalidRequest("erase: this gateway cannot erase", field="erase")
    device = await context.live.call(lambda gateway, now: gateway.admin.remove(app, name, now))
    if query.erase and context.erase is not None:
        await context.erase(device.number)
    return json_response(Removed(name, device.number, query.erase))


async def unsubscribe(exchange: RestExchange) -> Response:
    """End a device's subscription to a topic."""
    app, name, topic = exchange.caller.app, exchange.path("name"), exchange.path("topic")
    changed = await exchange.context.live.call(
        lambda gateway, now: gateway.topics.unsubscribe(app, name, topic, now)
    )
    return json_response(Subscribed(name, topic, subscribed=False, changed=changed))
