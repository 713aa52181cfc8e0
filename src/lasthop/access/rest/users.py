"""Handlers for users: added, changed, removed and listed, with their devices and the rules about
them."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType
from starlette.responses import Response

from lasthop.access.rest.answers import json_response
from lasthop.access.rest.exchange import RestExchange
from lasthop.access.rest.rules import is_name
from lasthop.clock import Micros
from lasthop.core.apps.credentials import Scope
from lasthop.core.gateway import Gateway
from lasthop.core.rights.added_users import UserRecord
from lasthop.core.rights.rights import Who, applies
from lasthop.core.rights.rule import AccessRule
from lasthop.errors import InvalidRequest, NotFound

_Scopes = Annotated[
    list[Scope],
    Meta(
        max_length=len(Scope),
        description="What the user may do when it shows a signed token or has signed in, beside"
        " what its issuer's users may",
    ),
]
_Roles = Annotated[
    list[Annotated[str, Meta(pattern=r"^[^\x00-\x20\x7f]{1,128}$")]],
    Meta(max_length=64, description="Roles of the user in rules, beside those in its tokens"),
]
_Access = Annotated[
    Literal["open", "blocked"],
    Meta(description="Whether the user's signed tokens and sign-in are accepted"),
]


class NewUser(msgspec.Struct, forbid_unknown_fields=True):
    """The description of a user to add."""

    name: Annotated[str, Meta(description="The user, as devices, rules and tokens name it")]
    scopes: _Scopes = []
    roles: _Roles = []
    access: _Access = "open"


class UserChange(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """The fields of a user to change; a field that is left out keeps its value."""

    scopes: _Scopes | UnsetType = UNSET
    roles: _Roles | UnsetType = UNSET
    access: _Access | UnsetType = UNSET


class UserInfo(msgspec.Struct, omit_defaults=True):
    """A user of the app: whoever was added, or has a device."""

    name: str
    devices: list[str]
    rules: list[str]
    """The names of the rules that are about the user or devices of the user."""
    added: bool = False
    """Whether the user was added; others are only named by their devices."""
    scopes: list[str] = []
    roles: list[str] = []
    access: Literal["open", "blocked"] = "open"


class UserList(msgspec.Struct):
    """The users of the app, ordered by name."""

    users: list[UserInfo]


class UserRemoved(msgspec.Struct):
    """The answer that names the user who was removed."""

    removed: str


async def add(exchange: RestExchange) -> Response:
    """Add a user to the app."""
    new, app = await exchange.body(NewUser), exchange.caller.app
    if not is_name(new.name):
        raise InvalidRequest("the name of a user has no spaces and no slashes", user=new.name)
    user = UserRecord(
        app=app,
        name=new.name,
        scopes=frozenset(new.scopes),
        roles=frozenset(new.roles),
        blocked=new.access == "blocked",
    )

    def act(gateway: Gateway, now: Micros) -> UserInfo:
        gateway.users.add(user)
        gateway.admin.change_user(user, now)
        return _shown(gateway, app, new.name)

    return json_response(await exchange.context.live.call(act), 201)


async def change(exchange: RestExchange) -> Response:
    """Change a user that was added."""
    asked = await exchange.body(UserChange)
    app, name = exchange.caller.app, exchange.path("name")
    changes: dict[str, object] = {}
    if asked.scopes is not UNSET:
        changes["scopes"] = frozenset(asked.scopes)
    if asked.roles is not UNSET:
        changes["roles"] = frozenset(asked.roles)
    if asked.access is not UNSET:
        changes["blocked"] = asked.access == "blocked"

    def act(gateway: Gateway, now: Micros) -> UserInfo:
        user = msgspec.structs.replace(gateway.users.named(app, name), **changes)
        gateway.admin.change_user(user, now)
        return _shown(gateway, app, name)

    return json_response(await exchange.context.live.call(act))


async def remove(exchange: RestExchange) -> Response:
    """Remove a user that was added; its devices stay."""
    app, name = exchange.caller.app, exchange.path("name")
    await exchange.context.live.call(lambda gateway, now: gateway.admin.remove_user(app, name, now))
    return json_response(UserRemoved(name))


async def list_users(exchange: RestExchange) -> Response:
    """List the users of the app."""
    app = exchange.caller.app
    return json_response(UserList(exchange.context.live.look(lambda gateway: _users(gateway, app))))


async def show(exchange: RestExchange) -> Response:
    """Show a user, its devices, and the rules about them."""
    app, name = exchange.caller.app, exchange.path("name")
    return json_response(exchange.context.live.look(lambda gateway: _shown(gateway, app, name)))


def _shown(gateway: Gateway, app: str, name: str) -> UserInfo:
    for user in _users(gateway, app):
        if user.name == name:
            return user
    raise NotFound("no such user was added, and no device has it", app=app, user=name)


def _users(gateway: Gateway, app: str) -> list[UserInfo]:
    rules = [rule for rule, _ in gateway.rules.of(app)]
    users: dict[str, UserInfo] = {}
    for record in gateway.users.of(app):
        who = Who(app, "user", record.name, record.name, record.roles)
        users[record.name] = UserInfo(
            record.name,
            [],
            _about(rules, who),
            added=True,
            scopes=sorted(record.scopes),
            roles=sorted(record.roles),
            access="blocked" if record.blocked else "open",
        )
    for device in gateway.registry:
        user = device.record.user
        if device.app == app and user:
            found = users.setdefault(user, UserInfo(user, [], []))
            found.devices.append(device.name)
            names = _about(rules, Who(app, "device", device.name, user))
            found.rules = list(dict.fromkeys([*found.rules, *names]))
    return [users[name] for name in sorted(users)]


def _about(rules: list[AccessRule], who: Who) -> list[str]:
    return [rule.name for rule in rules if applies(rule, who)]
