"""The settings of rights: what devices have without rules, and the rules of the configuration."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from lasthop.core.rights.rule import ALL_APPS, AccessRule, Verb

RULES = "rules"
"""The part of the settings that has a section for every rule, [[rules]], and no variable."""


class RightsSettings(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """What devices may do where no rule says it; a gateway that needs no credentials lets them do
    everything."""

    devices: Annotated[
        Literal["least", "open"],
        Meta(
            description='"least": a device gets what is sent to it and answers; it subscribes,'
            ' sends and joins where a rule allows it. "open": everything that no rule denies.'
        ),
    ] = "least"


class RuleSettings(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A rule about who may do what; one such section for every rule. What a rule denies is denied,
    whatever another one allows."""

    name: Annotated[
        str,
        Meta(
            description="The rule's name in refusals; if it is empty, its number.",
            pattern="^[A-Za-z0-9._-]{0,64}$",
        ),
    ] = ""
    app: Annotated[str, Meta(description='The app that it holds in; "*" is all apps.')] = ALL_APPS
    who: Annotated[
        tuple[str, ...],
        Meta(
            description='Whom it is about: "credential:NAME", "device:NAME", "user:NAME" (a user'
            ' and its devices), "role:NAME" (what an issuer says of users), or "*"; a name may'
            " have *."
        ),
    ]
    allow: Annotated[tuple[Verb, ...], Meta(description="What they may do.")] = ()
    deny: Annotated[tuple[Verb, ...], Meta(description="What they may not do.")] = ()
    on: Annotated[
        tuple[str, ...],
        Meta(
            description='Targets: "topic:PATTERN", "device:NAME", "user:NAME", "group:NAME",'
            ' "queue:NAME", "service:NAME", "app:", or "#" for everything. {user} and {device} are'
            " the device's own."
        ),
    ] = ("#",)

    def rule(self, number: int) -> AccessRule:
        """Return the rule in the form that the gateway uses."""
        return AccessRule(
            name=self.name or f"rules-{number}",
            app=self.app,
            who=self.who,
            allow=self.allow,
            deny=self.deny,
            on=self.on,
        )
