"""A client of OTA-WSP: what a phone does, for tests, rehearsals and measurements.

The client listens at its push port for single datagrams, opens a session when it is asked to, and
gives every push to its application once for each transaction.
"""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import ip_address
from typing import TypeAlias

from lasthop.clock import Micros
from lasthop.errors import Malformed, TooLarge
from lasthop.wire.ota.wsp_session import PROTOERR, Address
from lasthop.wire.wsp.capabilities import Capabilities, WspOptions
from lasthop.wire.wsp.headers import Field
from lasthop.wire.wsp.pdus import (
    Connect,
    ConnectReply,
    Disconnect,
    Push,
    Reply,
    Resume,
    Suspend,
    decode_pdu,
    decode_unit,
    encode_pdu,
)
from lasthop.wire.wsp.sir import MEDIA_TYPE, Sir, decode_sir
from lasthop.wire.wtp import transaction as wtp
from lasthop.wire.wtp.endpoint import Endpoint
from lasthop.wire.wtp.transaction import Side, WtpPatience

USUAL = Capabilities(
    client_sdu_size=1400,
    server_sdu_size=1400,
    options=WspOptions.CONFIRMED_PUSH | WspOptions.PUSH | WspOptions.SESSION_RESUME,
    method_outstanding=1,
    push_outstanding=2,
)


@dataclass(frozen=True, slots=True)
class PushArrived:
    """A push has arrived. A confirmed one waits for `accept` or `refuse`."""

    push: Push
    side: Side | None = None


@dataclass(frozen=True, slots=True)
class SessionAsked:
    """The gateway asks the client to open a session."""

    request: Sir


@dataclass(frozen=True, slots=True)
class Connected:
    """The session is open, with these capabilities."""

    capabilities: Capabilities


@dataclass(frozen=True, slots=True)
class Resumed:
    """The session was resumed, or is not known to the gateway any more."""

    known: bool


@dataclass(frozen=True, slots=True)
class SessionFailed:
    """A session could not be opened or resumed."""

    reason: int


Event: TypeAlias = PushArrived | SessionAsked | Connected | Resumed | SessionFailed


class SessionClient:
    """One phone: its session with the gateway, and the pushes that arrive."""

    def __init__(
        self,
        *,
        first_tid: int,
        capabilities: Capabilities = USUAL,
        headers: tuple[Field, ...] = (),
        patience: WtpPatience | None = None,
    ) -> None:
        self._wtp = Endpoint(first_tid=first_tid, patience=patience)
        self._capabilities = capabilities
        self._headers = headers
        self._opening: Side | None = None
        self._resuming: Side | None = None
        self._server: Address | None = None
        self.session: int | None = None

    # For the driver.

    def receive_unit(self, data: bytes) -> list[Event]:
        """Handle a received datagram at the push port; return its events."""
        try:
            _, pdu = decode_unit(data)
            if not isinstance(pdu, Push):
                return []
            if pdu.content_type.lower() == MEDIA_TYPE:
                return [SessionAsked(decode_sir(pdu.data))]
        except (Malformed, TooLarge):
            return []
        return [PushArrived(pdu)]

    def receive(self, data: bytes, peer: Address, now: Micros) -> list[Event]:
        """Handle a received datagram of the session; return its events."""
        return self._act(self._wtp.receive(data, peer, now), now)

    def datagrams(self) -> list[tuple[bytes, Address]]:
        """Return the datagrams to send now; each is returned once."""
        return self._wtp.datagrams()  # type: ignore[return-value]

    def next_timeout(self) -> Micros | None:
        """Return when to call `timeout`; None if no timer runs."""
        return self._wtp.next_timeout()

    def timeout(self, now: Micros) -> list[Event]:
        """Send what is due again, and return the events that follow."""
        return self._act(self._wtp.timeout(now), now)

    # For the application.

    def connect(self, server: Address, now: Micros) -> None:
        """Open a session, unless one is being opened."""
        if self._opening is None:
            self._server = server
            pdu = encode_pdu(Connect(self._capabilities, self._headers))
            self._opening = self._wtp.invoke(server, pdu, tcl=2, now=now)

    def accept(self, side: Side, now: Micros) -> None:
        """Confirm a push for the application."""
        self._wtp.acknowledge(side, now)

    def refuse(self, side: Side, reason: int, now: Micros) -> None:
        """Refuse a confirmed push for the application, with this reason."""
        self._wtp.abort(side, reason, now)

    def suspend(self, now: Micros) -> None:
        """Suspend the session: the client will be away for a while."""
        if self._server is not None and self.session is not None:
            self._wtp.invoke(self._server, encode_pdu(Suspend(self.session)), tcl=0, now=now)

    def resume(self, now: Micros) -> None:
        """Resume the suspended session; `Resumed` or `SessionFailed` follows."""
        if self._server is not None and self.session is not None and self._resuming is None:
            pdu = encode_pdu(Resume(self.session))
            self._resuming = self._wtp.invoke(self._server, pdu, tcl=2, now=now)

    def disconnect(self, now: Micros) -> None:
        """Close the session with the gateway."""
        if self._server is not None and self.session is not None:
            self._wtp.invoke(self._server, encode_pdu(Disconnect(self.session)), tcl=0, now=now)
            self.session = None

    def _act(self, events: list[wtp.Event], now: Micros) -> list[Event]:
        out: list[Event] = []
        for event in events:
            match event:
                case wtp.Invoked():
                    out += self._invoked(event, now)
                case wtp.TransactionAnswered():
                    out += self._answered(event.side, event.data)
                case wtp.TransactionEnded():
                    out += self._failed(event.side, event.reason)
                case _:
                    pass
        return out

    def _invoked(self, event: wtp.Invoked, now: Micros) -> list[Event]:
        try:
            pdu = decode_pdu(event.data)
        except (Malformed, TooLarge):
            pdu = None
        if isinstance(pdu, Push) and pdu.confirmed == (event.tcl == 1):
            return [PushArrived(pdu, event.side if event.tcl else None)]
        if isinstance(pdu, Disconnect) and event.tcl == 0:
            self.session = None
        elif event.tcl:
            self._wtp.abort(event.side, PROTOERR, now)
        return []

    def _answered(self, side: Side, data: bytes) -> list[Event]:
        opening, resuming = side is self._opening, side is self._resuming
        try:
            pdu = decode_pdu(data)
        except (Malformed, TooLarge):
            return self._failed(side, PROTOERR)
        if opening and isinstance(pdu, ConnectReply):
            self._opening = None
            self.session = pdu.session
            return [Connected(pdu.capabilities)]
        if resuming and isinstance(pdu, Reply):
            self._resuming = None
            if pdu.status != 0x20:
                self.session = None
            return [Resumed(self.session is not None)]
        return self._failed(side, PROTOERR)

    def _failed(self, side: Side, reason: int) -> list[Event]:
        if side is self._opening:
            self._opening = None
            return [SessionFailed(reason)]
        if side is self._resuming:
            self._resuming = None
            return [SessionFailed(reason)]
        return []


def contact_of(request: Sir, default: Address | None = None) -> Address | None:
    """Return where the gateway wants its session opened: the first contact point with an IP
    address, or `default`."""
    for contact in request.wsp_contacts:
        if len(contact.address) in (4, 16):
            return str(ip_address(contact.address)), contact.port or 9201
    return default
