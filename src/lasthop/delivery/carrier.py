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


class Spent(msgspec.Struct, frozen=True, gc=False):
    """What the provider of a carrier counts: octets, units and money."""

    octets: int = 0
    units: int = 0
    """Units of the link's tariff, such as short messages."""
    money: int | None = None
    """The price in millionths, if the provider names one; None: it follows from the link's
    tariff."""


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
    once: bool = False
    """Whether the network may attempt the delivery only once."""
    priority: int = 4
    """The message's priority, 0 to 9."""
    capabilities: Mapping[str, str] = {}
    """The registered capabilities of the device, by name."""
    most: Spent | None = None
    """What is reserved for the parcel in budgets. A carrier that would need more sends nothing and
    reports `NeedsMore`. None: no limit applies."""


class _Reported(msgspec.Struct, frozen=True, kw_only=True):
    """What every outcome says beside its meaning."""

    spent: Spent | None = None
    """What was spent on the parcel, also where nothing of the push itself left; None: what was
    reserved for it, if something left, and otherwise nothing."""


class ReturnedContent(msgspec.Struct, frozen=True):
    """The content that a client returned in its answer to a push."""

    content_type: str
    body: bytes
    headers: tuple[tuple[str, str], ...] = ()


class Sent(_Reported, frozen=True):
    """The push was handed to the link, and no confirmation will follow (PPG service,
    5.1.2.2.5.1)."""

    receipts: tuple[str, ...] = ()
    """The names of the receipts by which the network will say whether the handset has it; none
    if it will not. A receipt confirms nothing (5.1.2.2.5.2)."""


class Confirmed(_Reported, frozen=True):
    """The client has confirmed that it has the push (PPG service, 5.1.2.2.5.2)."""

    content: ReturnedContent | None = None


class Aborted(_Reported, frozen=True):
    """The client has refused the push; the reason is one of the OTA protocols (0xEA to 0xEE), or 0
    if the client gave none."""

    reason: int = 0


class Unanswered(_Reported, frozen=True):
    """The push was sent, perhaps several times, without an answer: the client may have it."""

    reason: str


class NotReached(_Reported, frozen=True):
    """Nothing of the push was sent; a later attempt may succeed."""

    reason: str


class NeedsMore(_Reported, frozen=True):
    """Nothing of the push was sent: it needs more than `Parcel.most`."""

    needed: Spent


class Unfit(_Reported, frozen=True):
    """The push can never be sent in its present form; the fields are PAP's status code and the
    reason."""

    code: int
    reason: str


Outcome: TypeAlias = Sent | Confirmed | Aborted | Unanswered | NotReached | NeedsMore | Unfit


def needs_more(parcel: Parcel, octets: int, units: int = 1) -> NeedsMore | None:
    """Return the outcome of a parcel that needs more than was reserved for it; None if it does
    not."""
    most = parcel.most
    if most is None or (octets <= most.octets and units <= most.units):
        return None
    return NeedsMore(Spent(octets, units))


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
