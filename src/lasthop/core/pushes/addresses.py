"""Client addresses: what an initiator writes, mapped to devices, users and groups.

An address is looked up in this order: in the table of addresses, whose entries may name any target;
among the devices' own addresses; and, for a user-defined identifier, as the name of a user or else
of a device. A device and a user are persons, for whom any one device will do; a topic and an app
are groups.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import NamedTuple

from lasthop.core.registry import Device, DeviceRecord, Index, Registry
from lasthop.errors import Conflict, InvalidRequest, NotFound, Rejected
from lasthop.message import Target, TargetKind
from lasthop.store.pushes import AddressRow
from lasthop.wire.pap.addresses import IPV4, IPV6, MAN, PLMN, URI, USER, ClientAddress

GROUPS = frozenset({TargetKind.TOPIC, TargetKind.APP, TargetKind.GROUP})

ALWAYS_SERVED = frozenset({USER, PLMN, IPV4, IPV6, MAN, URI})
"""Address types that are served even if no device has such an address: an address that nobody has
is then unknown. Any other type is served as soon as one device has an address of it."""


class AddressNotServed(Rejected):
    """The error for an address whose type is not served here, or that belongs to another
    gateway."""

    code = "address_not_served"
    pap_code = 2002


class AddressUnknown(NotFound):
    """The error for a valid address that no device has."""

    code = "address_unknown"
    pap_code = 2003


class AddressPlace(NamedTuple):
    """The target and devices that an address stands for now."""

    target: Target
    devices: Mapping[int, Device]
    everyone: bool = False
    """Whether all of the devices must get a push; otherwise any one of them is enough."""
    implied: DeviceRecord | None = None
    """The device that is made of the address when the push is accepted; None if there is one."""


class AddressBook(Index):
    """All client addresses, by app and by type and value."""

    def __init__(self) -> None:
        self._targets: dict[tuple[str, str], Target] = {}
        self._devices: dict[tuple[str, str], dict[int, Device]] = {}
        self._types: Counter[tuple[str, str]] = Counter()
        """Number of addresses of each type, by app and type."""

    def restore(self, rows: Iterable[AddressRow]) -> None:
        """Add the addresses that the store has."""
        for row in rows:
            self.point(row.app, row.address, _target(row.target))

    def point(self, app: str, address: str, target: Target | None) -> AddressRow:
        """Let an address stand for a target, or remove it if `target` is None; return the row for
        the store."""
        if target is None:
            if self._targets.pop((app, address), None) is None:
                raise NotFound("no such address", app=app, address=address)
            self._count(app, address, -1)
            return AddressRow(app, address, "")
        if target.kind is TargetKind.SERVICE:
            raise InvalidRequest(
                "an address must stand for a device, a user, a topic or everyone",
                target=str(target),
            )
        if (app, address) not in self._targets:
            self._count(app, address, 1)
        self._targets[app, address] = target
        return AddressRow(app, address, str(target))

    def targets(self, app: str) -> dict[str, Target]:
        """Return the app's addresses that stand for a target."""
        return {address: t for (of, address), t in self._targets.items() if of == app}

    def added(self, device: Device) -> None:
        for address in device.record.addresses:
            self._devices.setdefault((device.app, address), {})[device.number] = device
            self._count(device.app, address, 1)

    def removed(self, device: Device) -> None:
        self._forget(device, device.record)

    def amended(self, device: Device, before: DeviceRecord) -> None:
        self._forget(device, before)
        self.added(device)

    def _forget(self, device: Device, record: DeviceRecord) -> None:
        for address in record.addresses:
            there = self._devices[device.app, address]
            del there[device.number]
            if not there:
                del self._devices[device.app, address]
            self._count(device.app, address, -1)

    def check(self, app: str, addresses: Iterable[str], device: Device | None) -> None:
        """Raise an error if another device has this network address. User-defined identifiers may
        be shared."""
        for address in addresses:
            others = self._devices.get((app, address), {})
            if address.startswith(f"{USER}:") or not others:
                continue
            if device is None or device.number not in others:
                holder = next(iter(others.values()))
                raise Conflict("another device has this address", address=address, of=holder.name)

    def at(self, app: str, address: str) -> Mapping[int, Device]:
        """Return the devices that have this address themselves."""
        return self._devices.get((app, address), {})

    def find(self, app: str, address: ClientAddress, registry: Registry) -> AddressPlace:
        """Return what an address stands for; raise `AddressNotServed` or `AddressUnknown` if
        nothing."""
        short = address.short
        target = self._targets.get((app, short))
        if target is None:
            found = self._devices.get((app, short))
            if found is not None:
                first = next(iter(found.values()))
                kind = TargetKind.DEVICE if len(found) == 1 else TargetKind.PUSH
                return AddressPlace(Target(kind, first.name if len(found) == 1 else short), found)
            target = self._named(app, address, registry)
        devices: Mapping[int, Device] = {}
        with suppress(NotFound):
            devices = registry.reach(app, target)
        if not devices:
            raise AddressUnknown("nobody is at this address", address=address.text)
        return AddressPlace(target, devices, target.kind in GROUPS)

    def _named(self, app: str, address: ClientAddress, registry: Registry) -> Target:
        """Return the user, or else the device, whose name is a user-defined identifier."""
        if address.type != USER:
            if address.type in ALWAYS_SERVED or (app, address.type) in self._types:
                raise AddressUnknown("nobody is at this address", address=address.text)
            raise AddressNotServed("addresses of this type are not served", type=address.type)
        name = address.value.decode("utf-8", "replace")
        kind = TargetKind.USER if registry.has_user(app, name) else TargetKind.DEVICE
        return Target(kind, name)

    def _count(self, app: str, address: str, change: int) -> None:
        kind = (app, address.partition(":")[0])
        self._types[kind] += change
        if not self._types[kind]:
            del self._types[kind]


def _target(text: str) -> Target:
    kind, _, name = text.partition(":")
    return Target(TargetKind(kind), name)
