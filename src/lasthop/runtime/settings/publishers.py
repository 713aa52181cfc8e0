"""Who may come in, how much they may publish, and how push initiators hear of outcomes."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from lasthop.access.rest.settings import RestSettings
from lasthop.core.pushes.notification import NotificationPatience
from lasthop.runtime.units import Duration, Size

_patience = NotificationPatience()
_rest = RestSettings()


class Pap(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """The door for push initiators that speak PAP, and how they hear of outcomes."""

    path: Annotated[
        str, Meta(description="Where they POST to; empty turns it off.", pattern="^(/.*)?$")
    ] = "/pap"
    gateways: Annotated[
        str,
        Meta(
            description="Names of this gateway in client addresses (after the @), separated by"
            " commas; empty: any name will do."
        ),
    ] = ""
    notify_hosts: Annotated[
        str,
        Meta(
            description="Hosts to which outcomes are reported, separated by commas; *.example.org"
            " for all below a name; empty: any host."
        ),
    ] = ""
    notify_private: Annotated[
        Literal["when-open", "always", "never"],
        Meta(
            description="Whether outcomes are reported to this machine and to private networks:"
            ' "when-open" while everyone is let in without a credential.'
        ),
    ] = "when-open"
    notify_for: Annotated[Duration, Meta(description="How long we try to report an outcome.")] = (
        Duration(_patience.give_up_after)
    )
    response_wait: Annotated[
        Duration,
        Meta(description="How long a report waits for the device's answer, where one is wanted."),
    ] = Duration(_patience.response_wait)

    def patience(self) -> NotificationPatience:
        """As the gateway takes it."""
        return NotificationPatience(give_up_after=self.notify_for, response_wait=self.response_wait)


class Access(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Who may come in without a credential."""

    anonymous: Annotated[
        Literal["loopback", "never"],
        Meta(
            description='"loopback" lets everyone in as long as every listener is bound to this'
            ' machine alone; "never" always asks for a credential.'
        ),
    ] = "loopback"


class Quotas(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """What one credential may publish; beyond it the answer is 429 and when to come back."""

    messages_per_second: Annotated[int, Meta(description="In the long run.", ge=1)] = (
        _rest.messages.per_second
    )
    messages_burst: Annotated[int, Meta(description="At once.", ge=1)] = _rest.messages.burst
    bytes_per_second: Annotated[Size, Meta(description="In the long run.")] = Size(
        _rest.bytes.per_second
    )
    bytes_burst: Annotated[Size, Meta(description="At once.")] = Size(_rest.bytes.burst)
