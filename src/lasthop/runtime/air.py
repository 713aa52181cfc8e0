"""The carriers of a gateway: everything that goes over the air, put together."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from lasthop.clock import Clock
from lasthop.decision.routes import Variant
from lasthop.delivery.carrier import Carrier
from lasthop.delivery.ota.datagrams import Datagrams, bound
from lasthop.delivery.ota.unit import UnitCarrier
from lasthop.runtime.failure import Failure
from lasthop.runtime.settings import Ota
from lasthop.runtime.units import Address


@asynccontextmanager
async def on_air(settings: Ota, clock: Clock) -> AsyncIterator[Mapping[Variant, Carrier]]:
    """Carriers by variant, as long as the context lasts."""
    out = await Datagrams.open(_bound(settings.source))
    six = ":" in settings.source.host
    try:
        yield {
            Variant.WSP: UnitCarrier(
                by_ipv4=None if six else out, by_ipv6=out if six else None, clock=clock
            )
        }
    finally:
        out.close()


def _bound(address: Address) -> socket.socket:
    try:
        return bound(address.host, address.port)
    except OSError as error:
        why = error.strerror or str(error)
        raise Failure(f"cannot send from {address}: {why}") from None
