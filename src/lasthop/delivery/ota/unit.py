"""OTA-WSP without a connection: Po-Unit-Push, one datagram to the client's push port.

Clients do not answer, so the outcome is known at once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from lasthop.clock import Clock
from lasthop.delivery.carrier import NotReached, Outcome, Parcel, Sent, Spent, Unfit, needs_more
from lasthop.delivery.ota.datagrams import MAX_DATAGRAM, Endpoint
from lasthop.errors import Rejected
from lasthop.wire.ota.terminal import described
from lasthop.wire.ota.transform import PushContent, for_wsp, wsp_headers
from lasthop.wire.pap.codes import STATES, MessageState
from lasthop.wire.wsp.pdus import Push, encode_unit

TRANSACTIONS = 256
"""The number of transaction ids, which have one octet. Clients do not answer, so the id only
distinguishes consecutive datagrams."""


class DatagramNetwork(Protocol):
    """The object that sends datagrams to an endpoint."""

    def send(self, data: bytes, to: Endpoint) -> None:
        """Hand a datagram to the network."""
        ...


def unfit(error: Rejected) -> Unfit:
    """Return the outcome of a push that cannot be encoded: a failed transformation, unless the
    error has a more precise PAP code."""
    code = error.pap_code if error.pap_code in STATES[MessageState.UNDELIVERABLE].codes else 3006
    return Unfit(code, str(error))


class UnitCarrier:
    """Sends each push as a single datagram."""

    def __init__(
        self, *, by_ipv4: DatagramNetwork | None, by_ipv6: DatagramNetwork | None, clock: Clock
    ) -> None:
        self._by_ipv4 = by_ipv4
        self._by_ipv6 = by_ipv6
        self._clock = clock
        self._transaction = 0

    def carry(self, parcel: Parcel, report: Callable[[Outcome], None]) -> None:
        """Send the parcel and report at once; a datagram that was sent cannot be recalled."""
        report(self._send(parcel))

    def withdraw(self, number: int) -> bool:
        """Return False: every parcel has left when `carry` returns."""
        return False

    def _send(self, parcel: Parcel) -> Outcome:
        # PPG service, 5.1.2.2.4: after its deadline nothing of a push may be sent.
        if parcel.deliver_before is not None and self._clock.now() >= parcel.deliver_before:
            return NotReached("deliver_before has passed")
        endpoint = parcel.route.endpoint()
        network = self._by_ipv6 if ":" in endpoint[0] else self._by_ipv4
        if network is None:
            return NotReached("the gateway has no network of this address family")
        try:
            datagram = self.datagram(parcel)
        except Rejected as error:
            return unfit(error)
        if len(datagram) > MAX_DATAGRAM:
            return Unfit(3006, f"too large for a datagram: {len(datagram)} octets")
        if (more := needs_more(parcel, len(datagram))) is not None:
            return more
        network.send(datagram, endpoint)
        # PPG service, 5.1.2.2.5.1: an unconfirmed push is done once it was sent.
        return Sent(spent=Spent(len(datagram), 1))

    def datagram(self, parcel: Parcel) -> bytes:
        """Encode the push as a datagram; raise Rejected if the push cannot be sent over the air."""
        terminal = described(parcel.capabilities)
        push = for_wsp(PushContent(parcel.content_type, parcel.headers, parcel.body), terminal)
        self._transaction = (self._transaction + 1) % TRANSACTIONS
        unit = Push(push.content_type, wsp_headers(push), push.body)
        return encode_unit(self._transaction, unit, version=terminal.encoding_version)
