"""Devices as things to administer: they are registered, changed and removed by people and services,
not by themselves."""

from __future__ import annotations

import msgspec

from lasthop.clock import Micros
from lasthop.core.contact import Contacts
from lasthop.core.feeds.feeds import Feeds
from lasthop.core.groups.bonds import Bonds
from lasthop.core.lifecycle import Step
from lasthop.core.mailroom import Mailroom
from lasthop.core.registry import Device, DeviceRecord
from lasthop.errors import Conflict, NotFound
from lasthop.events import Kind
from lasthop.wire.hop.frames import CloseCode


class Administration:
    """Changes who there is."""

    def __init__(self, room: Mailroom, contacts: Contacts, feeds: Feeds, bonds: Bonds) -> None:
        self._room = room
        self._feeds = feeds
        self._bonds = bonds
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
        self._room.registry.addresses.check(app, record.addresses, None)
        return self._contacts.register(app, name, record, now)

    def amend(self, app: str, name: str, changes: dict[str, object], now: Micros) -> Device:
        """Change fields of a device's record. Who holds its old token is sent away."""
        room = self._room
        device = self.device(app, name)
        record = msgspec.structs.replace(device.record, **changes)
        room.registry.amend(device, record)
        room.journal.commit.devices[device.number] = device.row()
        session = room.session(device)
        reason = f"an administrator changed {', '.join(sorted(changes))}"
        room.journal.tell(Kind.CONTEXT_CHANGED, now, session, reason=reason)
        room.touch(session)  # It may be reached over the air now.
        if "zone" in changes:
            self._feeds.zone_changed(session, now)
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
        self._feeds.forget(session)
        self._bonds.removing(session, now)
        for delivery in list(session.mailbox.values()):
            room.give_up(delivery, Step.GIVE_UP, now, reason)
        if room.surrogates is not None:
            room.surrogates.forget(session)
        room.journal.tell(Kind.REMOVED, now, session)
        room.journal.commit.removed_devices.append(device.number)
        room.registry.remove(device)
        room.forget_session(device)
        return device
