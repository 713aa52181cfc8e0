"""Handlers for topics, the terms of subscriptions to them, and the ranks of published messages."""

from __future__ import annotations

import math
from datetime import datetime
from typing import Annotated

import msgspec
from msgspec import Meta
from starlette.responses import Response

from lasthop.access.rest.answers import Subscribed, json_response
from lasthop.access.rest.exchange import RestExchange
from lasthop.access.rest.resources import Advertisement, RankChange, SubscribeQuery
from lasthop.access.rest.times import datetime_of
from lasthop.clock import Micros
from lasthop.core.apps.credentials import Scope
from lasthop.core.gateway import Gateway
from lasthop.core.lifecycle import State
from lasthop.core.topics.topic_history import beginning
from lasthop.decision.volume.rules import MAX_RULES, ContextRule
from lasthop.decision.volume.terms import TopicTerms
from lasthop.errors import InvalidRequest, NotFound
from lasthop.message import GATEWAY, Target, TargetKind
from lasthop.store.ranked import TopicRow


class TopicInfo(msgspec.Struct, omit_defaults=True):
    """A topic that its publisher advertises."""

    topic: str
    title: str
    source: str
    advertised_at: datetime
    subscribers: int
    changed: bool = False
    """Whether this request made or changed the advertisement."""


class TopicList(msgspec.Struct):
    """The advertised topics of the app, ordered by name."""

    topics: list[TopicInfo]


class TopicWithdrawal(msgspec.Struct):
    """The answer to the withdrawal of a topic's advertisement."""

    topic: str
    told: int
    """The number of subscribers that are notified of the withdrawal."""


class SubscriptionInfo(msgspec.Struct, omit_defaults=True):
    """A device's subscription to a topic, with the number of its messages on the device and at the
    gateway."""

    topic: str
    terms: TopicTerms | None = None
    """The terms of the subscription; without terms every message is sent at once."""
    policy: str | None = None
    """The policy that decides how many messages are sent to the device before the user asks for
    them."""
    unread: int = 0
    """The number of messages that the device stores unread."""
    waiting: int = 0
    """The number of messages that wait at the gateway."""
    by_rule: bool = False
    """Whether the subscription follows from a rule about the device's context."""
    xpath: str | None = None
    """The XPath filter: only XML messages in which the filter selects something are delivered."""


class SubscriptionList(msgspec.Struct):
    """All subscriptions of a device, ordered by topic."""

    device: str
    subscriptions: list[SubscriptionInfo]


class Rules(msgspec.Struct, forbid_unknown_fields=True):
    """The rules by which a device is subscribed according to its context. The first rule that names
    a topic decides about it."""

    rules: Annotated[list[ContextRule], Meta(max_length=MAX_RULES)]


class Reranked(msgspec.Struct):
    """The answer to a change of a message's rank."""

    id: str
    rank: float
    open: int
    """The number of deliveries that have not ended. Devices that store the message move it to its
    new place or drop it."""


def _info(gateway: Gateway, row: TopicRow, *, changed: bool = False) -> TopicInfo:
    target = Target(TargetKind.TOPIC, row.topic)
    return TopicInfo(
        row.topic,
        row.title,
        row.source,
        datetime_of(row.advertised_at),
        len(gateway.registry.reach(row.app, target)),
        changed,
    )


async def advertise(exchange: RestExchange) -> Response:
    """Advertise a topic to which messages will be published."""
    app, topic, source = exchange.caller.app, exchange.path("topic"), exchange.caller.source
    said = await exchange.optional_body(Advertisement) or Advertisement()

    def act(gateway: Gateway, now: Micros) -> TopicInfo:
        changed = gateway.topics.advertised.advertise(app, topic, source, said.title, now)
        row = gateway.topics.advertised.find(app, topic)
        assert row is not None
        return _info(gateway, row, changed=changed)

    return json_response(await exchange.context.live.call(act))


async def withdraw(exchange: RestExchange) -> Response:
    """Withdraw a topic's advertisement, and notify its subscribers that no more messages will
    come."""
    caller, topic = exchange.caller, exchange.path("topic")
    force = Scope.ADMIN in caller.scopes

    def act(gateway: Gateway, now: Micros) -> TopicWithdrawal:
        told = gateway.topics.advertised.withdraw(
            caller.app, topic, caller.source, now, force=force
        )
        return TopicWithdrawal(topic, told)

    return json_response(await exchange.context.live.call(act))


async def list_topics(exchange: RestExchange) -> Response:
    """List the advertised topics of the app."""
    app = exchange.caller.app

    def ask(gateway: Gateway) -> TopicList:
        return TopicList([_info(gateway, row) for row in gateway.topics.advertised.all(app)])

    return json_response(exchange.context.live.look(ask))


async def subscribe(exchange: RestExchange) -> Response:
    """Subscribe a device to a topic, with terms if the request has any."""
    app, name, topic = exchange.caller.app, exchange.path("name"), exchange.path("topic")
    terms = await exchange.optional_body(TopicTerms)
    query = exchange.query(SubscribeQuery)
    last = None if query.last is None else str(query.last)

    def act(gateway: Gateway, now: Micros) -> bool:
        since = beginning(query.since, last, now)
        return gateway.topics.subscribe(
            app, name, topic, now, terms, xpath=query.xpath, since=since
        )

    changed = await exchange.context.live.call(act)
    return json_response(Subscribed(name, topic, subscribed=True, changed=changed))


async def list_subscriptions(exchange: RestExchange) -> Response:
    """List a device's subscriptions, with the numbers of messages at the gateway and on the
    device."""
    app, name = exchange.caller.app, exchange.path("name")

    def ask(gateway: Gateway) -> SubscriptionList:
        device = gateway.registry.named(app, name)
        record = device.record
        session = gateway.deliveries.session(device)
        found: list[SubscriptionInfo] = []
        for topic in sorted(record.subscriptions):
            info = SubscriptionInfo(topic, by_rule=topic in record.ruled)
            info.xpath = record.filters.get(topic)
            subscription = gateway.ranked.subscription(session, topic)
            if subscription is not None:
                info.terms = subscription.terms
                info.policy = subscription.choice.label
                info.unread = subscription.feed.unread_there
                info.waiting = len(subscription.feed.entries()) - info.unread
            found.append(info)
        return SubscriptionList(name, found)

    return json_response(exchange.context.live.look(ask))


async def set_rules(exchange: RestExchange) -> Response:
    """Set the rules by which a device's subscriptions follow its context."""
    app, name = exchange.caller.app, exchange.path("name")
    rules = (await exchange.body(Rules)).rules
    await exchange.context.live.call(
        lambda gateway, now: gateway.topics.set_rules(app, name, rules, now)
    )
    return json_response(Rules(rules))


async def get_rules(exchange: RestExchange) -> Response:
    """Return the rules by which a device's subscriptions follow its context."""
    app, name = exchange.caller.app, exchange.path("name")
    rules = exchange.context.live.look(
        lambda gateway: gateway.registry.named(app, name).record.rules
    )
    return json_response(Rules(rules))


async def change_rank(exchange: RestExchange) -> Response:
    """Change the rank of a published message."""
    change = await exchange.body(RankChange)
    if not math.isfinite(change.rank):
        raise InvalidRequest("rank: a rank is a finite number", field="rank")
    context = exchange.context
    message = await context.find(exchange.caller, exchange.path("id"))
    if message.source == GATEWAY:
        raise NotFound("no such message", id=exchange.path("id"))
    rows = await context.deliveries(message.key)
    had = [row.device for row in rows if row.state == State.DELIVERED]
    app = exchange.caller.app
    open_for = await context.live.call(
        lambda gateway, now: gateway.ranked.change_rank(app, message, change.rank, had, now)
    )
    return json_response(Reranked(message.id, change.rank, open_for))
