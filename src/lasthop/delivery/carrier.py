"""The interface of every carrier: it is given a parcel and reports one outcome.

A channel is a conversation that a device began; a carrier brings one push to a device that has no
channel: by a datagram, a transaction, a request. The core hands over a `Parcel` when everything
that it depends on is durable, and gets exactly one `Outcome` for it, unless the gateway dies in
between. A parcel may wait inside its carrier, for a session or for its turn; until something of it
has left, the core can take it back by `withdraw`.

Other bearers (short messages, SIP, point to multipoint) are carriers in other packages.
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

    number: int = 0
    """The number by which `Carrier.withdraw` names the parcel, and which no other parcel has at the
    time; 0: the parcel is never withdrawn."""
    route: Route
    content_type: str
    headers: tuple[tuple[str, str], ...]
    body: bytes
    confirmed: bool = False
    """Whether the client is asked to confirm the push."""
    strict: bool = False
    """Whether the push may only be sent if the client can confirm it."""
    response: bool = False
    """Whether the publisher accepts content that the client returns."""
    deliver_before: Micros | None = None
    """The deadline in microseconds, after which nothing of the push may be sent; None if there is
    no deadline."""
    capabilities: Mapping[str, str] = {}
    """The registered capabilities of the device, by name."""


class ReturnedContent(msgspec.Struct, frozen=True):
    """The content that a client returned in its answer to a push."""

    content_type: str
    body: bytes
    headers: tuple[tuple[str, str], ...] = ()


class Sent(msgspec.Struct, frozen=True):
    """The push was handed to the link, and no confirmation will follow (PPG service,
    5.1.2.2.5.1)."""


class Confirmed(msgspec.Struct, frozen=True):
    """The client has confirmed that it has the push (PPG service, 5.1.2.2.5.2)."""

    content: ReturnedContent | None = None


class Aborted(msgspec.Struct, frozen=True):
    """The client has refused the push; the reason is one of the OTA protocols (0xEA to 0xEE), or 0
    if the client gave none."""

    reason: int = 0


class Unanswered(msgspec.Struct, frozen=True):
    """The push was sent, perhaps several times, without an answer: the client may have it."""

    reason: str


class NotReached(msgspec.Struct, frozen=True):
    """Nothing of the push was sent; a later attempt may succeed."""

    reason: str


class Unfit(msgspec.Struct, frozen=True):
    """The push can never be sent in its present form; the fields are PAP's status code and the
    reason."""

    code: int
    reason: str


Outcome: TypeAlias = Sent | Confirmed | Aborted | Unanswered | NotReached | Unfit


class Carrier(Protocol):
    """Delivers parcels over one variant of the OTA protocol."""

    def carry(self, parcel: Parcel, report: Callable[[Outcome], None]) -> None:
        """Deliver a parcel. `report` is called once, at once or later, on the thread that runs the
        carriers; never for a parcel that was withdrawn."""
        ...

    def withdraw(self, number: int) -> bool:
        """Take a parcel back. Return True if nothing of it has left: then nothing will, and no
        outcome is reported. False: it is too late; the outcome was reported or will be."""
        ...


class CarrierKind(Protocol):
    """A further protocol over the air, which another package offers."""

    @property
    def variation(self) -> Variation:
        """The abilities of the protocol: what it can confirm and carry."""
        ...

    def open(
        self, clock: Clock, reachable: Callable[[str], None], /
    ) -> AbstractAsyncContextManager[Carrier]:
        """Return a carrier that works while the context lasts, and calls `reachable` with each
        address that contacts the gateway."""
        ...
