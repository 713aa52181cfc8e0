"""A rule: who is allowed, or denied, which verbs on which targets."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Annotated

import msgspec
from msgspec import Meta

from lasthop.core.names import ONE
from lasthop.core.rights.patterns import EVERYTHING, check_pattern
from lasthop.errors import InvalidRequest
from lasthop.message import TargetKind


class Verb(StrEnum):
    """What a rule allows or denies."""

    PUBLISH = "publish"
    """Publish to a topic, or to all devices of the app (`app:`)."""
    SEND = "send"
    """Send to a device, a user, a group, a queue or a service."""
    SUBSCRIBE = "subscribe"
    """Subscribe to a topic or a pattern."""
    JOIN = "join"
    """Join a group, or offer a service."""
    CONSUME = "consume"
    """Consume: take messages from a queue."""
    CLAIM = "claim"
    """Claim a message for a group."""
    SEE_BODIES = "see-bodies"
    """Read what devices have answered and streamed, over REST and on the dashboard."""
    ADMINISTER = "administer"
    """Register, change and remove devices, groups, queues and addresses."""


SENT_BY: dict[TargetKind, Verb] = dict.fromkeys(TargetKind, Verb.SEND) | {
    TargetKind.TOPIC: Verb.PUBLISH,
    TargetKind.APP: Verb.PUBLISH,
}
"""The verb that a message for each kind of target needs."""

JOINED_BY: dict[TargetKind, Verb] = {
    TargetKind.GROUP: Verb.JOIN,
    TargetKind.SERVICE: Verb.JOIN,
    TargetKind.QUEUE: Verb.CONSUME,
}
"""The verb that a device needs to become one of those whom a target stands for."""

OF_DEVICES = (
    Verb.PUBLISH,
    Verb.SEND,
    Verb.SUBSCRIBE,
    Verb.JOIN,
    Verb.CONSUME,
    Verb.CLAIM,
)
"""The verbs of devices, in the order in which they are shown."""

ALL_APPS = "*"
MAX_ENTRIES = 64
"""Entries of `who` and of `on` in one rule: longer lists are several rules."""

_Entries = Annotated[tuple[str, ...], Meta(min_length=1, max_length=MAX_ENTRIES)]
_Verbs = Annotated[tuple[Verb, ...], Meta(max_length=len(Verb))]

WHO = ("credential", "device", "user", "role")


class AccessRule(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """A rule of one app, or of all apps: `allow` and `deny` hold for everyone in `who`, on every
    target in `on`."""

    name: str
    app: str = ALL_APPS
    who: _Entries
    allow: _Verbs = ()
    deny: _Verbs = ()
    on: _Entries = (EVERYTHING,)

    @property
    def broad(self) -> bool:
        """Whether the rule allows something on everything, to more than one caller."""
        everyone = any(ONE in entry for entry in self.who)
        return bool(self.allow) and everyone and any(on in (EVERYTHING, ONE) for on in self.on)

    def __str__(self) -> str:
        """Return the rule in one line, for people."""
        allow = f" allow {' '.join(self.allow)}" if self.allow else ""
        deny = f" deny {' '.join(self.deny)}" if self.deny else ""
        return f"{self.name}: {' '.join(self.who)}{allow}{deny} on {' '.join(self.on)}"


def checked(rule: AccessRule) -> AccessRule:
    """Return a rule if all of its entries can be understood; otherwise raise an error."""
    if not rule.allow and not rule.deny:
        raise InvalidRequest("a rule allows or denies something", rule=rule.name)
    _check_who(rule.who)
    for on in rule.on:
        check_pattern(on)
    return rule


def _check_who(entries: Iterable[str]) -> None:
    for entry in entries:
        kind, colon, name = entry.partition(":")
        if entry != ONE and (not colon or kind not in WHO or not name):
            raise InvalidRequest(
                "a rule is for * (everybody), credential:NAME, device:NAME, user:NAME (a user and"
                " its devices) or role:NAME (users whose tokens have this role)",
                who=entry,
            )
