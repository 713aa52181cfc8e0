"""Handlers for rules: added, removed, listed and tried out."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta
from starlette.responses import Response

from lasthop.access.rest.administration import NAME
from lasthop.access.rest.answers import json_response
from lasthop.access.rest.exchange import RestExchange
from lasthop.clock import Micros
from lasthop.core.gateway import Gateway
from lasthop.core.rights.book import parse_asked
from lasthop.core.rights.rule import MAX_ENTRIES, AccessRule, Verb
from lasthop.errors import InvalidRequest

_Entry = Annotated[str, Meta(max_length=300)]


class RuleTerms(msgspec.Struct, forbid_unknown_fields=True):
    """The terms of a rule: who may or may not do what, on which targets."""

    who: Annotated[
        list[_Entry],
        Meta(
            min_length=1,
            max_length=MAX_ENTRIES,
            description="Whom it is about: credential:NAME, device:NAME, user:NAME (a user and its"
            " devices), role:NAME (what an issuer says of users), or *",
        ),
    ]
    on: Annotated[
        list[_Entry],
        Meta(
            min_length=1,
            max_length=MAX_ENTRIES,
            description="On what: topic:PATTERN, KIND:NAME with *, or # for everything",
        ),
    ]
    allow: Annotated[list[Verb], Meta(max_length=8, description="What they may do")] = []
    deny: Annotated[list[Verb], Meta(max_length=8, description="What they may not do")] = []


class RuleInfo(msgspec.Struct, omit_defaults=True):
    """A rule that holds in an app."""

    name: str
    app: str
    who: list[str]
    allow: list[Verb]
    deny: list[Verb]
    on: list[str]
    configured: bool = False
    """Whether the rule is in the configuration file, and cannot be changed here."""


class RuleList(msgspec.Struct):
    """The rules that hold in the app: of the configuration, and those that were added."""

    rules: list[RuleInfo]


class RightQuery(msgspec.Struct, forbid_unknown_fields=True):
    """A question about rights: may somebody do this on that target?"""

    who: Annotated[
        str,
        Meta(
            max_length=300,
            description="Who would do it: device:NAME, credential:NAME or user:NAME",
        ),
    ]
    verb: Annotated[
        Literal[
            "publish",
            "send",
            "subscribe",
            "join",
            "consume",
            "claim",
            "see-bodies",
            "administer",
        ],
        Meta(description="What it would do"),
    ]
    on: Annotated[str, Meta(max_length=300, description="To what: KIND:NAME, such as topic:news")]


class RightInfo(msgspec.Struct):
    """Whether something is allowed, and which rule decides."""

    allowed: bool
    rule: str
    """The name of the rule that decides; empty if none does."""
    reason: str


def _info(rule: AccessRule, *, configured: bool) -> RuleInfo:
    return RuleInfo(
        name=rule.name,
        app=rule.app,
        who=list(rule.who),
        allow=list(rule.allow),
        deny=list(rule.deny),
        on=list(rule.on),
        configured=configured,
    )


async def list_rules(exchange: RestExchange) -> Response:
    """List the rules that hold in the app."""
    app = exchange.caller.app
    found = exchange.context.live.look(lambda gateway: gateway.rules.of(app))
    return json_response(RuleList([_info(rule, configured=fixed) for rule, fixed in found]))


async def add(exchange: RestExchange) -> Response:
    """Add a rule to the app, or change it."""
    terms = await exchange.body(RuleTerms)
    name = exchange.path("name")
    if not is_name(name):
        raise InvalidRequest("the name of a rule has no spaces and no slashes", rule=name)
    rule = AccessRule(
        name=name,
        app=exchange.caller.app,
        who=tuple(terms.who),
        allow=tuple(terms.allow),
        deny=tuple(terms.deny),
        on=tuple(terms.on),
    )

    def act(gateway: Gateway, now: Micros) -> None:
        gateway.rules.add(rule)

    await exchange.context.live.call(act)
    return json_response(_info(rule, configured=False))


async def remove(exchange: RestExchange) -> Response:
    """Remove a rule that was added."""
    app, name = exchange.caller.app, exchange.path("name")
    rule = await exchange.context.live.call(lambda gateway, _: gateway.rules.remove(app, name))
    return json_response(_info(rule, configured=False))


async def check(exchange: RestExchange) -> Response:
    """Say whether something is allowed, and why."""
    asked, app = exchange.query(RightQuery), exchange.caller.app
    target = parse_asked(asked.on)
    answer = exchange.context.live.look(
        lambda gateway: gateway.rules.explain(app, asked.who, Verb(asked.verb), target)
    )
    return json_response(RightInfo(*answer))


def is_name(name: str) -> bool:
    """Whether a name has the form of names in paths."""
    try:
        msgspec.convert(name, Annotated[str, Meta(pattern=NAME)])
    except msgspec.ValidationError:
        return False
    return True
