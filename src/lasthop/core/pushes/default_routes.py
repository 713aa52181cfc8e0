"""Addresses that need no registration: by what they are reached, and who may address them.

PAP's device addresses stand for themselves (PPG service, 6): a phone number is a phone. The gateway
makes a device of such an address when somebody who may do so pushes to it for the first time.
Nobody may unless a default route says so: the gateway is no open relay.
"""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import ip_address

import msgspec

from lasthop.core.registry import Device, DeviceRecord, Index
from lasthop.core.rights.patterns import fits, pieces_of
from lasthop.decision.routes import Route
from lasthop.errors import Forbidden, Overloaded
from lasthop.wire.pap.addresses import IPV4, IPV6, ClientAddress

RETRY = 3600.0
"""Seconds after which an initiator may try an address for which there was no room: somebody has to
make some."""

PUBLISHER = "publisher:"
"""How the source of a push begins, before the name of its initiator."""


class NotAddressable(Forbidden):
    """The error for an address that others may push to, and this initiator may not."""

    code = "not_addressable"


class DefaultRoute(msgspec.Struct, frozen=True, kw_only=True):
    """By what addresses are reached that no device has, and who may address them."""

    name: str
    app: str
    addresses: tuple[str, ...]
    """Patterns of addresses, such as `PLMN:+1555*`."""
    who: tuple[str, ...]
    """Patterns of the names of initiators."""
    variant: str
    most: int
    """The most addresses that are devices because of this route."""

    def covers(self, address: str) -> bool:
        """Return whether the route is for an address, such as `PLMN:+15551999`."""
        return any(fits(pieces_of(pattern), address) for pattern in self.addresses)

    def admits(self, source: str) -> bool:
        """Return whether the source of a push may address what the route is for."""
        name = source.removeprefix(PUBLISHER)
        return name != source and any(fits(pieces_of(pattern), name) for pattern in self.who)


class DefaultRoutes(Index):
    """The default routes, and how many devices there are because of each."""

    def __init__(self, routes: Sequence[DefaultRoute]) -> None:
        self._routes = routes
        self._counts: dict[str, int] = {}

    def added(self, device: Device) -> None:
        self._count(device.record, 1)

    def removed(self, device: Device) -> None:
        self._count(device.record, -1)

    def amended(self, device: Device, before: DeviceRecord) -> None:
        self._count(before, -1)
        self._count(device.record, 1)

    def _count(self, record: DeviceRecord, change: int) -> None:
        if record.implied:
            self._counts[record.implied] = self._counts.get(record.implied, 0) + change

    def record(self, app: str, source: str, address: ClientAddress) -> DeviceRecord | None:
        """Return what the device of an address will be; None if no default route is for it. Raise
        an error if this initiator may not address it, or if there is no room."""
        short = address.short
        covering = [route for route in self._routes if route.app == app and route.covers(short)]
        if not covering:
            return None
        route = next((route for route in covering if route.admits(source)), None)
        if route is None:
            raise NotAddressable("you may not push to this address", address=address.text)
        if self._counts.get(route.name, 0) >= route.most:
            raise Overloaded(
                "too many addresses are devices without being registered",
                retry_after=RETRY,
                route=route.name,
                limit=route.most,
            )
        way = Route(route.variant, _place(address))
        return DeviceRecord(addresses=[short], routes=[way], implied=route.name)


def _place(address: ClientAddress) -> str:
    """Return the address of a route to a client address."""
    value = address.value.decode("latin-1")
    return str(ip_address(value)) if address.type in (IPV4, IPV6) else value
