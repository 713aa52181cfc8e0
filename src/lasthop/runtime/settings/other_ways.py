"""The settings of what devices are told about other ways to their gateway."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from lasthop.core.apps.behaviour import WayText
from lasthop.wire.hop.frames import MAX_WAY, MAX_WAYS


class WaySettings(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Ways to this gateway that its devices are told, and another host to go to."""

    offered: Annotated[
        tuple[WayText, ...],
        Meta(
            description="Ways that devices are told over TLS or on this machine:"
            " URL, or LINK=URL. The behaviour of an app may have its own.",
            max_length=MAX_WAYS,
        ),
    ] = ()
    moved: Annotated[
        str,
        Meta(
            description="URL of the gateway to which devices shall go when this one stops; empty"
            " if they shall come back.",
            pattern=r"^([a-z0-9+]+:\S+)?$",
            max_length=MAX_WAY,
        ),
    ] = ""
