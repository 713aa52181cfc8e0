"""The settings for publishers: access, quotas, and how outcomes are reported to push initiators."""

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
    """The door for push initiators that use PAP, and how outcomes are reported to them."""

    path: Annotated[
        str, Meta(description="Path of PAP requests; empty turns it off.", pattern="^(/.*)?$")
    ] = "/pap"
    gateways: Annotated[
        str,
        Meta(
            description="Names of this gateway in client addresses (after the @), separated by"
            " commas; empty: any name is accepted."
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
            ' "when-open" while no credentials are needed.'
        ),
    ] = "when-open"
    notify_for: Annotated[
        Duration, Meta(description="How long the gateway tries to report an outcome.")
    ] = Duration(_patience.give_up_after)
    response_wait: Annotated[
        Duration,
        Meta(description="How long a report waits for the device's answer, where one is wanted."),
    ] = Duration(_patience.response_wait)

    def patience(self) -> NotificationPatience:
        """Return the times for reporting outcomes in the form that the gateway uses."""
        return NotificationPatience(give_up_after=self.notify_for, response_wait=self.response_wait)


class Access(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Who may publish and connect without a credential."""

    anonymous: Annotated[
        Literal["loopback", "never"],
        Meta(
            description='"loopback" needs no credentials as long as every listener is bound to this'
            ' machine alone; "never" always needs a credential.'
        ),
    ] = "loopback"


class Quotas(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """The rate at which one credential may publish, beyond which requests are refused with 429 and
    Retry-After, and the rate at which one device may send."""

    messages_per_second: Annotated[
        int, Meta(description="Messages per second in the long run.", ge=1)
    ] = _rest.messages.per_second
    messages_burst: Annotated[int, Meta(description="Messages at once.", ge=1)] = (
        _rest.messages.burst
    )
    bytes_per_second: Annotated[Size, Meta(description="Bytes per second in the long run.")] = Size(
        _rest.bytes.per_second
    )
    bytes_burst: Annotated[Size, Meta(description="Bytes at once.")] = Size(_rest.bytes.burst)
    device_messages_per_second: Annotated[
        int,
        Meta(
            description="Messages of one device per second in the long run, where credentials are"
            " asked for.",
            ge=1,
        ),
    ] = 100
    device_messages_burst: Annotated[
        int, Meta(description="Messages of one device at once.", ge=1)
    ] = 1000
