"""Handlers for groups and queues, and for the devices that belong to them."""

from __future__ import annotations

from datetime import datetime

import msgspec
from starlette.responses import Response

from lasthop.access.rest.answers import json_response
from lasthop.access.rest.exchange import RestExchange
from lasthop.access.rest.resources import GroupTerms, MembersQuery, QueueRules
from lasthop.access.rest.times import datetime_of
from lasthop.clock import SECOND, Micros
from lasthop.core.gateway import Gateway
from lasthop.core.groups.records import GroupRecord
from lasthop.message import Target, TargetKind


class GroupInfo(msgspec.Struct, omit_defaults=True):
    """A group of an app and, if it was asked for by name, its members."""

    name: str
    title: str
    open: bool
    made_at: datetime
    members: int
    changed: bool = False
    """Whether this request made or changed the group."""
    devices: list[str] | None = None
    """The names of the group's first members; only when the group is asked for by name."""
    more: bool = False
    """Whether there are more members than are listed."""


class GroupList(msgspec.Struct):
    """All groups of the app, ordered by name."""

    groups: list[GroupInfo]


class ConsumerInfo(msgspec.Struct):
    """A device that takes messages from a queue."""

    device: str
    in_contact: bool
    holding: int
    """The number of messages that the device has taken and not finished."""


class QueueInfo(msgspec.Struct, omit_defaults=True):
    """A queue of an app and, if it was asked for by name, its consumers."""

    name: str
    title: str
    open: bool
    made_at: datetime
    patience: float
    prefetch: int
    waiting: int
    """The number of messages in the queue that no consumer has taken."""
    consumers: int
    changed: bool = False
    """Whether this request made or changed the queue."""
    devices: list[ConsumerInfo] | None = None
    """The first consumers of the queue; only when the queue is asked for by name."""
    more: bool = False
    """Whether there are more consumers than are listed."""


class QueueList(msgspec.Struct):
    """All queues of the app, ordered by name."""

    queues: list[QueueInfo]


class Membership(msgspec.Struct):
    """A device's membership of a group or queue; `changed` is false if the request changed
    nothing."""

    device: str
    target: str
    belongs: bool
    changed: bool


class Dissolved(msgspec.Struct):
    """The answer to the removal of a group or queue."""

    name: str
    left: int
    """The number of devices that belonged to the group or queue."""


GROUP, QUEUE = TargetKind.GROUP, TargetKind.QUEUE


def _group(gateway: Gateway, app: str, name: str, record: GroupRecord) -> GroupInfo:
    members = gateway.groups.members.of(app, Target(GROUP, name))
    return GroupInfo(name, record.title, record.open, datetime_of(record.made_at), len(members))


def _queue(gateway: Gateway, app: str, name: str, record: GroupRecord) -> QueueInfo:
    return QueueInfo(
        name,
        record.title,
        record.open,
        datetime_of(record.made_at),
        record.patience / SECOND,
        record.prefetch,
        gateway.groups.queue(app, name).length,
        len(gateway.groups.members.of(app, Target(QUEUE, name))),
    )


async def make_group(exchange: RestExchange) -> Response:
    """Make a group, or change its properties."""
    app, target = exchange.caller.app, Target(GROUP, exchange.path("name"))
    terms = await exchange.optional_body(GroupTerms) or GroupTerms()

    def act(gateway: Gateway, now: Micros) -> GroupInfo:
        record = GroupRecord(title=terms.title, open=terms.open)
        changed = gateway.groups.make(app, target, record, now)
        made = _group(gateway, app, target.name, gateway.groups.records.known(app, target))
        made.changed = changed
        return made

    return json_response(await exchange.context.live.call(act))


async def make_queue(exchange: RestExchange) -> Response:
    """Make a queue, or change its properties."""
    app, target = exchange.caller.app, Target(QUEUE, exchange.path("name"))
    rules = await exchange.optional_body(QueueRules) or QueueRules()

    def act(gateway: Gateway, now: Micros) -> QueueInfo:
        record = GroupRecord(
            title=rules.title,
            open=rules.open,
            patience=round(rules.patience * SECOND),
            prefetch=rules.prefetch,
        )
        changed = gateway.groups.make(app, target, record, now)
        made = _queue(gateway, app, target.name, gateway.groups.records.known(app, target))
        made.changed = changed
        return made

    return json_response(await exchange.context.live.call(act))


async def list_groups(exchange: RestExchange) -> Response:
    """List all groups of the app."""
    app = exchange.caller.app

    def ask(gateway: Gateway) -> GroupList:
        found = gateway.groups.records.all(app, GROUP)
        return GroupList([_group(gateway, app, name, record) for name, record in found])

    return json_response(exchange.context.live.look(ask))


async def list_queues(exchange: RestExchange) -> Response:
    """List all queues of the app."""
    app = exchange.caller.app

    def ask(gateway: Gateway) -> QueueList:
        found = gateway.groups.records.all(app, QUEUE)
        return QueueList([_queue(gateway, app, name, record) for name, record in found])

    return json_response(exchange.context.live.look(ask))


async def show_group(exchange: RestExchange) -> Response:
    """Show a group and its first members."""
    app, target = exchange.caller.app, Target(GROUP, exchange.path("name"))
    limit = exchange.query(MembersQuery).limit

    def ask(gateway: Gateway) -> GroupInfo:
        shown = _group(gateway, app, target.name, gateway.groups.records.known(app, target))
        members = gateway.groups.members.of(app, target).values()
        shown.devices = [device.name for device in members][:limit]
        shown.more = len(members) > limit
        return shown

    return json_response(exchange.context.live.look(ask))


async def show_queue(exchange: RestExchange) -> Response:
    """Show a queue, its first consumers, and how many messages each of them has taken."""
    app, target = exchange.caller.app, Target(QUEUE, exchange.path("name"))
    limit = exchange.query(MembersQuery).limit

    def ask(gateway: Gateway) -> QueueInfo:
        shown = _queue(gateway, app, target.name, gateway.groups.records.known(app, target))
        queue = gateway.groups.queue(app, target.name)
        consumers = list(gateway.groups.members.of(app, target).values())
        shown.devices = []
        for device in consumers[:limit]:
            session = gateway.deliveries.session(device)
            holding = queue.holding(session)
            shown.devices.append(ConsumerInfo(device.name, session.channel != 0, holding))
        shown.more = len(consumers) > limit
        return shown

    return json_response(exchange.context.live.look(ask))


async def _move(exchange: RestExchange, kind: TargetKind, *, joins: bool) -> Response:
    app, name = exchange.caller.app, exchange.path("device")
    target = Target(kind, exchange.path("name"))

    def act(gateway: Gateway, now: Micros) -> bool:
        gateway.groups.records.known(app, target)
        move = gateway.groups.join if joins else gateway.groups.leave
        return move(app, name, target, now)

    changed = await exchange.context.live.call(act)
    return json_response(Membership(name, str(target), joins, changed))


async def add_member(exchange: RestExchange) -> Response:
    """Add a device to a group."""
    return await _move(exchange, GROUP, joins=True)


async def remove_member(exchange: RestExchange) -> Response:
    """Remove a device from a group; messages sent to the group before are still delivered to it."""
    return await _move(exchange, GROUP, joins=False)


async def add_consumer(exchange: RestExchange) -> Response:
    """Add a device to a queue as a consumer."""
    return await _move(exchange, QUEUE, joins=True)


async def remove_consumer(exchange: RestExchange) -> Response:
    """Remove a device from a queue's consumers."""
    return await _move(exchange, QUEUE, joins=False)


async def _remove(exchange: RestExchange, kind: TargetKind) -> Response:
    app, target = exchange.caller.app, Target(kind, exchange.path("name"))

    def act(gateway: Gateway, now: Micros) -> Dissolved:
        return Dissolved(target.name, gateway.groups.remove(app, target, now))

    return json_response(await exchange.context.live.call(act))


async def remove_group(exchange: RestExchange) -> Response:
    """Remove a group from the app."""
    return await _remove(exchange, GROUP)


async def remove_queue(exchange: RestExchange) -> Response:
    """Remove a queue from the app; refused unless the queue is empty."""
    return await _remove(exchange, QUEUE)
