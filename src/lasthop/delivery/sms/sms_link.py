"""The interface of everything that takes short messages from the gateway.

A link is given one short message at a time, when it has room, and reports one `SmsOutcome` for it.
How a push becomes short messages is the link's matter: an SMSC may want long messages whole.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias

import msgspec

from lasthop.clock import Micros
from lasthop.wire.smpp.commands import SmsState
from lasthop.wire.sms.alphabets import alphabet_of
from lasthop.wire.sms.header import Ports
from lasthop.wire.sms.segments import SmsSegment, split_datagram, split_text

MAX_SMS_PARTS = 32
"""The most short messages of one push: phones give up on longer ones, and each costs money."""


class OutgoingSms(msgspec.Struct, frozen=True, kw_only=True):
    """A push on its way to one phone: either a datagram for an application, or a text."""

    to: str
    """The phone number, with a plus in front if it is international."""
    datagram: bytes = b""
    ports: Ports | None = None
    text: str = ""
    """The text for people; the datagram counts if there are ports."""
    deliver_before: Micros | None = None
    priority: int = 4
    once: bool = False
    """Whether the network may attempt the delivery only once."""
    reference: int = 0
    """The number that the parts of a long message share."""

    def segments(self) -> list[SmsSegment]:
        """Return the short messages; raise TooLarge if there are too many."""
        if self.ports is not None:
            return split_datagram(self.datagram, self.ports, self.reference, most=MAX_SMS_PARTS)
        alphabet = alphabet_of(self.text)
        return split_text(self.text, self.reference, alphabet=alphabet, most=MAX_SMS_PARTS)


class SmsTaken(msgspec.Struct, frozen=True):
    """The link has accepted a short message; its receipt will name this id, if there will be
    one."""

    message_id: str = ""


class SmsRefused(msgspec.Struct, frozen=True):
    """The link has refused a short message, and nothing of it was sent."""

    reason: str
    code: int = 0
    """PAP's status code if the same message will always be refused; 0 if it may be accepted
    later."""
    busy: bool = False
    """Whether the link only asks for a pause."""


class SmsInDoubt(msgspec.Struct, frozen=True):
    """A short message was handed over, and nobody knows whether it was accepted."""

    reason: str


SmsOutcome: TypeAlias = SmsTaken | SmsRefused | SmsInDoubt


class SmsUnit(Protocol):
    """One request of a link, prepared from a push."""

    @property
    def count(self) -> int:
        """The number of short messages that are paid for."""
        ...

    @property
    def octets(self) -> int:
        """The octets of their user data."""
        ...


class SmsReceipt(msgspec.Struct, frozen=True):
    """What a network says about a short message that a link had accepted."""

    link: str
    message_ids: tuple[str, ...]
    """The id, and the other ways in which the link may have written it."""
    state: SmsState
    error: str = ""


class SmsLink(Protocol):
    """One way to hand over short messages."""

    @property
    def name(self) -> str:
        """The name of the link, in reasons and metrics."""
        ...

    @property
    def price(self) -> int:
        """The price of one short message, in millionths."""
        ...

    @property
    def once(self) -> bool:
        """Whether the link can have the network attempt a delivery only once."""
        ...

    @property
    def receipts(self) -> bool:
        """Whether receipts will come for what the link accepts."""
        ...

    @property
    def up(self) -> bool:
        """Whether the link takes messages, now or when it has room."""
        ...

    def prepare(self, sms: OutgoingSms, now: Micros) -> Sequence[SmsUnit]:
        """Return the requests for a push; raise Rejected if the link cannot send it."""
        ...

    def room(self, now: Micros) -> bool:
        """Return whether a request may be sent now."""
        ...

    def free_at(self) -> Micros:
        """Return from when on rate and pauses allow a request."""
        ...

    def send(self, unit: SmsUnit, report: Callable[[SmsOutcome], None]) -> None:
        """Send a request, for which there must be room; `report` is called once, later."""
        ...
