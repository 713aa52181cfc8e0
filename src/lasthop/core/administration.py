"""What people and services administer: devices, credentials and the behaviour of apps."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from lasthop.clock import Micros
from lasthop.core.behaviour import Behaviour
from lasthop.core.contact import Contacts
from lasthop.core.credentials import Credentials, Scope
from lasthop.core.lifecycle import Step
from lasthop.core.mailroom import Mailroom
from lasthop.core.registry import Device, DeviceRecord
from lasthop.errors import Conflict, InvalidRequest
from lasthop.events import Kind
from lasthop.store.commit import CredentialRow
from lasthop.wire.hop.frames import CloseCode


class Administration:
    """Changes who there is, who may come in, and what holds for the messages of an app."""

    def __init__(self, room: Mailroom, contacts: Contacts, credentials: Credentials) -> None:
        self._room = room
        self._credentials = credentials
        self._moments = room.moments
        self._contacts = contacts

    def register(self, app: str, name: str, record: DeviceRecord, now: Micros) -> Device:
        """Add a device."""
        if self._room.registry.find(app, name) is not None:
            raise Conflict("a device of this name exists", app=app, device=name)
        for check in self._moments.check_device:
            check(app, record, None)
        return self._contacts.register(app, name, record, now)

    def amend(self, app: str, name: str, now: Micros, **changes: object) -> Device:
        """Change fields of a device's record. Who holds its old token is sent away."""
        room = self._room
        device = self._room.registry.named(app, name)
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
        device = self._room.registry.named(app, name)
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

    def admit(self, secret: str, app: str, name: str, scopes: set[Scope], now: Micros) -> None:
        """Accept a new credential."""
        self._note([self._credentials.add(secret, app, name, scopes, now)])

    def certify(self, subject: str, app: str, name: str, scopes: set[Scope], now: Micros) -> None:
        """Accept a client's certificate as a credential."""
        self._note([self._credentials.certify(subject, app, name, scopes, now)])

    def dismiss(self, app: str, name: str) -> int:
        """Accept the credentials of a name no longer; how many there were."""
        rows = self._credentials.revoke(app, name)
        self._note(rows)
        return len(rows)

    def _note(self, rows: Iterable[CredentialRow]) -> None:
        journal = self._room.journal
        journal.commit.credentials.update((row.hash, row) for row in rows)
        journal.hurry()

    def behave(self, app: str, behaviour: Behaviour | None) -> None:
        """Say how messages of an app behave from now on; None takes back what was said."""
        room = self._room
        if behaviour is not None and (behaviour.max_size or 0) > room.limits.largest_body:
            raise InvalidRequest(
                "max_size is above what this gateway takes; what is larger is a stream",
                limit=room.limits.largest_body,
            )
        row = room.behaviours.set(app, behaviour)
        room.journal.commit.memories[row.device, row.name] = row
        room.journal.hurry()
