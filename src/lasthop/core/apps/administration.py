"""What people and services administer: devices, credentials and the behaviour of apps."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from lasthop.clock import Micros
from lasthop.core.apps.behaviour import Behaviour
from lasthop.core.apps.credentials import FIRST, Credentials, Scope, ended
from lasthop.core.contacts.contact import Contacts
from lasthop.core.deliveries import Deliveries
from lasthop.core.lifecycle import Step
from lasthop.core.registry import Device, DeviceRecord
from lasthop.core.rights.added_users import UserRecord, Users
from lasthop.core.rights.book import RuleBook
from lasthop.errors import Conflict, InvalidRequest, NotFound
from lasthop.events import Kind
from lasthop.store.commit import CredentialRow
from lasthop.wire.hop.frames import CloseCode


class Administration:
    """Changes devices, credentials, and the behaviour of the messages of an app."""

    def __init__(
        self,
        deliveries: Deliveries,
        contacts: Contacts,
        credentials: Credentials,
        rules: RuleBook,
        users: Users,
    ) -> None:
        self._deliveries = deliveries
        self._credentials = credentials
        self._rules = rules
        self._users = users
        self._moments = deliveries.moments
        self._contacts = contacts

    def register(self, app: str, name: str, record: DeviceRecord, now: Micros) -> Device:
        """Register a new device; raise an error if a device of this name exists or the record is
        refused."""
        if self._deliveries.registry.find(app, name) is not None:
            raise Conflict("a device of this name exists already", app=app, device=name)
        for check in self._moments.check_device:
            check(app, record, None)
        return self._contacts.register(app, name, record, now)

    def amend(self, app: str, name: str, now: Micros, **changes: object) -> Device:
        """Change fields of a device's record. If the token changes and the former one is accepted
        no longer, the channels of the device are closed."""
        deliveries = self._deliveries
        device = self._deliveries.registry.named(app, name)
        record = msgspec.structs.replace(device.record, **changes)
        for check in self._moments.check_device:
            check(app, record, device)
        deliveries.registry.amend(device, record)
        deliveries.commits.open.devices[device.number] = device.row()
        session = deliveries.session(device)
        reason = f"an administrator changed {', '.join(sorted(changes))}"
        deliveries.commits.record(Kind.CONTEXT_CHANGED, now, session, reason=reason)
        deliveries.touch(session)  # It may have got a route over the air.
        for amended in self._moments.amended:
            amended(session, changes, now)
        self._contacts.expiries.watch(session)
        if "user" in changes and self._contacts.expiries.is_signed(device):
            reason = "the device was given to another user"
            self._contacts.disconnect(session, CloseCode.UNAUTHORIZED, reason, now)
        if "token_hash" in changes and record.former_until <= now:
            self._contacts.disconnect(session, CloseCode.UNAUTHORIZED, "the token was changed", now)
        return device

    def remove(self, app: str, name: str, now: Micros) -> Device:
        """Remove a device, and give up its open deliveries."""
        deliveries = self._deliveries
        device = self._deliveries.registry.named(app, name)
        session = deliveries.session(device)
        reason = "the device was removed"
        self._contacts.disconnect(session, CloseCode.UNKNOWN_DEVICE, reason, now)
        self._contacts.expiries.forget(device)
        for removed in self._moments.removed:
            removed(session, now)
        for delivery in list(session.mailbox.values()):
            deliveries.give_up(delivery, Step.GIVE_UP, now, reason)
        for forgotten in self._moments.forgotten:
            forgotten(session)
        deliveries.commits.record(Kind.REMOVED, now, session)
        deliveries.commits.open.removed_devices.append(device.number)
        deliveries.registry.remove(device)
        deliveries.forget_session(device)
        return device

    def admit(
        self,
        secret: str,
        app: str,
        name: str,
        scopes: set[Scope],
        now: Micros,
        *,
        expires_at: Micros = 0,
    ) -> None:
        """Add a new credential that is recognised by its secret, until it expires."""
        self._note([self._credentials.add(secret, app, name, scopes, now, expires_at)])

    def certify(
        self,
        subject: str,
        app: str,
        name: str,
        scopes: set[Scope],
        now: Micros,
        *,
        expires_at: Micros = 0,
    ) -> None:
        """Accept the subject of a client's certificate as a credential, until it expires."""
        self._note([self._credentials.certify(subject, app, name, scopes, now, expires_at)])

    def rotate(self, secret: str, app: str, name: str, now: Micros, *, overlap: Micros) -> None:
        """Accept a new secret for a name, with the scopes of its newest credential; the earlier
        credentials of the name end after `overlap`."""
        rows = [row for row in self._credentials.named(app, name) if not ended(row, now)]
        if not rows:
            raise NotFound("no such credential", app=app, name=name)
        scopes = {Scope(scope) for scope in max(rows, key=lambda r: r.created_at).scopes.split()}
        for row in rows:
            row.expires_at = min(row.expires_at or now + overlap, now + overlap)
        self._note([*rows, self._credentials.add(secret, app, name, scopes, now)])

    def used(self, row: CredentialRow, now: Micros) -> None:
        """Note that a credential was used; this is written with whatever is written next."""
        row.used_at = now
        if row.name != FIRST:
            self._deliveries.commits.open.credentials[row.hash] = row

    def dismiss(self, app: str, name: str) -> int:
        """Revoke the credentials of a name, and return how many there were."""
        rows = self._credentials.revoke(app, name)
        self._note(rows)
        return len(rows)

    def _note(self, rows: Iterable[CredentialRow]) -> None:
        commits = self._deliveries.commits
        commits.open.credentials.update((row.hash, row) for row in rows)
        commits.hurry()
        self._rules.refresh()

    def change_user(self, user: UserRecord, now: Micros) -> None:
        """Change a user that was added. Devices that have connected with a token of a user who is
        blocked now are disconnected."""
        self._users.change(user)
        if user.blocked:
            self._let_go(user.app, user.name, "the user was blocked", now)

    def remove_user(self, app: str, name: str, now: Micros) -> UserRecord:
        """Remove a user that was added. Its devices stay; those that have connected with a token of
        the user are disconnected, and come back if its issuer lets anybody in."""
        user = self._users.remove(app, name)
        self._let_go(app, name, "the user was removed", now)
        return user

    def _let_go(self, app: str, user: str, reason: str, now: Micros) -> None:
        for device in self._deliveries.registry.of_user(app, user):
            if self._contacts.expiries.is_signed(device):
                session = self._deliveries.session(device)
                self._contacts.disconnect(session, CloseCode.UNAUTHORIZED, reason, now)

    def behave(self, app: str, behaviour: Behaviour | None) -> None:
        """Set how messages of an app behave from now on; None restores the configured behaviour."""
        deliveries = self._deliveries
        if behaviour is not None and (behaviour.max_size or 0) > deliveries.limits.largest_body:
            raise InvalidRequest(
                "max_size is above the limit of this gateway; send larger bodies as streams",
                limit=deliveries.limits.largest_body,
            )
        row = deliveries.behaviours.set(app, behaviour)
        deliveries.commits.open.memories[row.device, row.name] = row
        deliveries.commits.hurry()
