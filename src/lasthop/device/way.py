"""A way to the gateway: a URL with the link and network by which it is reached, and what a device
knows about it. `ways` decides which ways a device uses."""

from __future__ import annotations

from enum import StrEnum
from typing import TypeAlias

import msgspec

from lasthop.clock import Micros

WayIdentity: TypeAlias = tuple[str, str | None, str | None]
"""What tells one way from another: its URL, link and network."""

MOST_WAYS = 32
"""The largest number of ways that an application may name; the gateway may add `MOST_TOLD`."""

MOST_TOLD = 16
"""The largest number of ways that a gateway may tell a device at once."""


class Origin(StrEnum):
    """Who has named a way to the gateway."""

    APPLICATION = "application"
    GATEWAY = "gateway"


class GatewayWay(msgspec.Struct, frozen=True):
    """One possibility to reach the gateway."""

    url: str
    link: str | None = None
    """The kind of link that the way goes over (`wifi`, `mno`); None if that is unknown."""
    network: str | None = None
    """The name of the network: the operator, the SSID."""
    token: str | None = None
    """The credential that this way needs; None for the device's own."""
    preference: int = 0
    """A way is used rather than those with a lower preference, if it works."""
    origin: Origin = Origin.APPLICATION

    @property
    def place(self) -> str:
        """The name of the network, under which the device remembers facts about it."""
        return self.network or self.link or ""

    @property
    def identity(self) -> WayIdentity:
        """What tells one way from another: two of the same are one way."""
        return self.url, self.link, self.network

    def __str__(self) -> str:
        return f"{self.url} ({self.link})" if self.link else self.url


class WayState(StrEnum):
    """What a device does with a way at present."""

    IDLE = "idle"
    """The way is not used, and can be tried at any time."""
    CONNECTING = "connecting"
    """A connection is being made, or the gateway has not answered the HELLO yet."""
    OPEN = "open"
    """The gateway has welcomed the device over this way."""
    SUSPECT = "suspect"
    """The gateway has not answered in time over this way, whose connection still stands."""
    RESTING = "resting"
    """The way has just failed, and is tried again later."""
    CLOSED = "closed"
    """The link has reached a limit of the device's preferences."""
    BARRED = "barred"
    """The gateway has refused the device over this way, and trying again would not help."""


class WayStatus(msgspec.Struct, frozen=True):
    """The state of one way, for the application."""

    way: GatewayWay
    state: WayState
    since: Micros
    """When the way came into this state."""
    problem: str = ""
    """Why the way does not work, or last did not, in words for people."""
    until: Micros | None = None
    """When a way that rests or is closed can be tried again."""


# What an application is told.


class WayUp(msgspec.Struct, frozen=True):
    """A way works: the gateway answers over it."""

    way: GatewayWay


class WaySuspect(msgspec.Struct, frozen=True):
    """The gateway has not answered in time over a way."""

    way: GatewayWay


class WayDown(msgspec.Struct, frozen=True):
    """A way that worked, or was tried, works no longer."""

    way: GatewayWay
    problem: str


class NoWay(msgspec.Struct, frozen=True):
    """No way to the gateway works at present."""

    until: Micros | None
    """When the next way is tried; None if that depends on the application."""
    problem: str
    """What was wrong with the way that was tried last."""


WayEvent: TypeAlias = WayUp | WaySuspect | WayDown | NoWay


# What a driver has to do.


class ConnectWay(msgspec.Struct, frozen=True):
    """Make a connection, and send nothing over it yet."""

    way: GatewayWay


class SayHello(msgspec.Struct, frozen=True):
    """Send the HELLO over a connection that is ready."""

    way: GatewayWay
    join: bool
    """Whether the channel joins those that are open."""


class LeaveWay(msgspec.Struct, frozen=True):
    """Give up what there is of a way: an attempt to connect, or an open channel."""

    way: GatewayWay
    reason: str


class AskWay(msgspec.Struct, frozen=True):
    """Send a PING over the open channel of a way."""

    way: GatewayWay


class RenewWay(msgspec.Struct, frozen=True):
    """Open a new channel over a way that has one, and leave the old one."""

    way: GatewayWay


WayAction: TypeAlias = RenewWay | ConnectWay | SayHello | LeaveWay | AskWay
