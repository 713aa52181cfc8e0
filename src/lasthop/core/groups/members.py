"""The members of groups and the consumers of queues."""

from __future__ import annotations

from collections.abc import Mapping

from lasthop.core.registry import Device, Index, Registry
from lasthop.errors import NotFound
from lasthop.message import Target, TargetKind


class MemberIndex(Index):
    """Finds the members of a group and the consumers of a queue."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._members: dict[tuple[str, str], dict[int, Device]] = {}

    def added(self, device: Device) -> None:
        for record in device.record.memberships:
            self._enter(device, record)

    def removed(self, device: Device) -> None:
        for record in device.record.memberships:
            self._forget(device, record)

    def reach(self, app: str, name: str) -> Mapping[int, Device]:
        found = self._members.get((app, f"{TargetKind.GROUP}:{name}"))
        if not found:
            raise NotFound("nobody is in this group", app=app, group=name)
        return found

    def of(self, app: str, target: Target) -> Mapping[int, Device]:
        """Return the members of a group, or the consumers of a queue."""
        return self._members.get((app, str(target)), {})

    def join(self, device: Device, target: Target) -> bool:
        """Add a device to a group or queue; return False if it was a member."""
        record = str(target)
        if not self._enter(device, record):
            return False
        device.record.memberships = [*device.record.memberships, record]
        return True

    def leave(self, device: Device, target: Target) -> bool:
        """Remove a device from a group or queue; return False if it was not a member."""
        record = str(target)
        if not self._forget(device, record):
            return False
        device.record.memberships = [name for name in device.record.memberships if name != record]
        return True

    def _enter(self, device: Device, record: str) -> bool:
        self._registry.changes += 1
        members = self._members.setdefault((device.app, record), {})
        if device.number in members:
            return False
        members[device.number] = device
        return True

    def _forget(self, device: Device, record: str) -> bool:
        self._registry.changes += 1
        members = self._members.get((device.app, record))
        if members is None or members.pop(device.number, None) is None:
            return False
        if not members:
            del self._members[device.app, record]
        return True
