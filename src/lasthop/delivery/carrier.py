"""The one shape of every carrier: a parcel in, one outcome out.

A channel is a conversation that a device began; a carrier takes one push to a device that did not
call: a datagram, a transaction, a request. Core hands it a `Parcel` when everything that it depends
on is durable, and hears exactly one `Outcome` for it, unless the gateway dies in between.

Other bearers (short messages, SIP, point to multipoint) are carriers of other packages.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Protocol, TypeAlias

import msgspec

from lasthop.clock import Clock, Micros
from lasthop.decision.routes import Route, Variation


class Parcel(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One push for one device, as its publisher wrote it."""

    route: Route
    content_type: str
    headers: tuple[tuple[str, str], ...]
    body: bytes
    confirmed: bool = False
    """The client's word is asked for."""
    strict: bool = False
    """Without it the push must not be sent."""
    response: bool = False
    """The publisher takes content that the client returns."""
    deliver_before: Micros | None = None
    """After this nothing of it leaves."""
    capabilities: Mapping[str, str] = {}
    """What is registered of the device."""


class ReturnedContent(msgspec.Struct, frozen=True):
    """What a client returned."""

    content_type: str
    body: bytes
    headers: tuple[tuple[str, str], ...] = ()


class Sent(msgspec.Struct, frozen=True):
    """It was handed to the link, and nobody will say more."""


class Confirmed(msgspec.Struct, frozen=True):
    """The client has it."""

    content: ReturnedContent | None = None


class Aborted(msgspec.Struct, frozen=True):
    """The client has refused it, with a reason of the OTA protocols (0xEA to 0xEE) or none (0)."""

    reason: int = 0


class Unanswered(msgspec.Struct, frozen=True):
    """It has left, perhaps several times, and nothing came back: the client may have it."""

    reason: str


class NotReached(msgspec.Struct, frozen=True):
    """Nothing of it has left. Later it may."""

    reason: str


class Unfit(msgspec.Struct, frozen=True):
    """It can never leave as it is: PAP's code, and why."""

    code: int
    reason: str


Outcome: TypeAlias = Sent | Confirmed | Aborted | Unanswered | NotReached | Unfit


class Carrier(Protocol):
    """Takes parcels over one variant of OTA."""

    def carry(self, parcel: Parcel, report: Callable[[Outcome], None]) -> None:
        """Take a parcel on its way. `report` is called once, at once or later, on the thread that
        runs the carriers."""
        ...


class CarrierKind(Protocol):
    """What another package offers: one more protocol over the air."""

    @property
    def variation(self) -> Variation:
        """What the protocol can do."""
        ...

    def open(
        self, clock: Clock, reachable: Callable[[str], None], /
    ) -> AbstractAsyncContextManager[Carrier]:
        """A carrier, as long as the context lasts; `reachable` is to be told which addresses
        call."""
        ...
