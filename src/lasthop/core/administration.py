"""Devices as things to administer: they are registered, changed and removed by people and services,
not by themselves."""

from __future__ import annotations

import msgspec

from lasthop.clock import Micros
from lasthop.core.contact import Contacts
from lasthop.core.lifecycle import Step
from lasthop.core.mailroom import Mailroom
from lasthop.core.registry import Device, DeviceRecord
from lasthop.errors import Conflict, NotFound
from lasthop.events import Kind
from lasthop.wire.hop.frames import CloseCode


class Administration:
    """Changes who there is."""

    def __init__(self, room: Mailroom, contacts: Contacts) -> None:
        self._room = room
        self._moments = room.moments
        self._contacts = contacts

    def device(self, app: str, name: str) -> Device:
        """The device of this name; there must be one."""
        device = self._room.registry.find(app, name)
        if device is None:
            raise NotFound("no such device", app=app, device=name)
        return device

    def register(self, app: str, name: str, record: DeviceRecord, now: Micros) -> Device:
        """Add a device."""
        if self._room.registry.find(app, name) is not None:
            raise Conflict("a device of this name exists", app=app, device=name)
        for check in self._moments.check_device:
            check(app, record, None)
        return self._contacts.register(app, name, record, now)

    def amend(self, app: str, name: str, changes: dict[str, object], now: Micros) -> Device:
        """Change fields of a device's record. Who holds its old token is sent away."""
        room = self._room
        device = self.device(app, name)
        record = msgspec.structs.replace(device.record, **changes)
        for check in self._moments.check_device:
            check(app, record, device)
        room.registry.amend(device, record)
        room.journal.commit.devices[device.number] = device.row()
        session = room.session(device)
        reason = f"an administrator changed {', '.join(sorted(changes))}"
        room.journal.tell(Kind.CONTEXT_CHANGED, now, session, reason=reason)
        room.touch(session)  # It may be reached over the air now.
        for amended in self._moments.amended:
            amended(session, changes, now)
        if "token_hash" in changes:
            self._contacts.disconnect(session, CloseCode.UNAUTHORIZED, "the token was changed", now)
        return device

    def remove(self, app: str, name: str, now: Micros) -> Device:
        """Forget a device: what is open for it is given up."""
        room = self._room
        device = self.device(app, name)
        session = room.session(device)
        reason = "the device was removed"
        self._contacts.disconnect(session, CloseCode.UNKNOWN_DEVICE, reason, now)
        for removed in self._moments.removed:
            removed(session, now)
        for delivery in list(session.mailbox.values()):
            room.give_up(delivery, Step.GIVE_UP, now, reason)
        for forgotten in self._moments.forgotten:
            forgotten(session)
        room.journal.tell(Kind.REMOVED, now, session)
        room.journal.commit.removed_devices.append(device.number)
        room.registry.remove(device)
        room.forget_session(device)
        return device
