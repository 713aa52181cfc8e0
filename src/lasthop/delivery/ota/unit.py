"""OTA-WSP without a connection: Po-Unit-Push, one datagram to the client's push port.

Nothing comes back, so that the outcome is known at once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from lasthop.clock import Clock
from lasthop.delivery.carrier import NotReached, Outcome, Parcel, Sent, Unfit
from lasthop.delivery.ota.datagrams import MAX_DATAGRAM, Endpoint
from lasthop.errors import Rejected
from lasthop.wire.ota.terminal import described
from lasthop.wire.ota.transform import PushContent, for_wsp, wsp_headers
from lasthop.wire.pap.codes import STATES, MessageState
from lasthop.wire.wsp.pdus import Push, encode_unit

TRANSACTIONS = 256
"""The number in front of a unit has one octet. Nobody answers, so that it only tells neighbours
apart."""


class DatagramNetwork(Protocol):
    """Where datagrams go."""

    def send(self, data: bytes, to: Endpoint) -> None:
        """Hand a datagram to the network."""
        ...


def unfit(error: Rejected) -> Unfit:
    """Why a push has no form on the air: a failed transformation, unless the error says more."""
    code = error.pap_code if error.pap_code in STATES[MessageState.UNDELIVERABLE].codes else 3006
    return Unfit(code, str(error))


class UnitCarrier:
    """Sends pushes as single datagrams."""

    def __init__(
        self, *, by_ipv4: DatagramNetwork | None, by_ipv6: DatagramNetwork | None, clock: Clock
    ) -> None:
        self._by_ipv4 = by_ipv4
        self._by_ipv6 = by_ipv6
        self._clock = clock
        self._transaction = 0

    def carry(self, parcel: Parcel, report: Callable[[Outcome], None]) -> None:
        """Send it; a datagram once handed over is beyond anybody's reach."""
        report(self._send(parcel))

    def _send(self, parcel: Parcel) -> Outcome:
        if parcel.deliver_before is not None and self._clock.now() >= parcel.deliver_before:
            return NotReached("deliver_before has passed")
        endpoint = parcel.route.endpoint()
        network = self._by_ipv6 if ":" in endpoint[0] else self._by_ipv4
        if network is None:
            return NotReached("no network of this address family")
        try:
            datagram = self.datagram(parcel)
        except Rejected as error:
            return unfit(error)
        if len(datagram) > MAX_DATAGRAM:
            return Unfit(3006, f"too large for a datagram: {len(datagram)} octets")
        network.send(datagram, endpoint)
        return Sent()

    def datagram(self, parcel: Parcel) -> bytes:
        """The push as it leaves; raises Rejected for what has no form on the air."""
        terminal = described(parcel.capabilities)
        push = for_wsp(PushContent(parcel.content_type, parcel.headers, parcel.body), terminal)
        self._transaction = (self._transaction + 1) % TRANSACTIONS
        unit = Push(push.content_type, wsp_headers(push), push.body)
        return encode_unit(self._transaction, unit, version=terminal.encoding_version)
