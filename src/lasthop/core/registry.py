"""All devices of a gateway with their users and subscriptions, found by name, number, user or
topic."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable, Iterator, Mapping

import msgspec

from lasthop.clock import HOUR, Micros
from lasthop.decision.preferences import Preferences
from lasthop.decision.routes import Route
from lasthop.decision.volume.rules import ContextRule
from lasthop.decision.volume.terms import TopicTerms
from lasthop.errors import NotFound
from lasthop.message import Target, TargetKind
from lasthop.store.commit import DeviceRow
from lasthop.wire.hop.services import Service

DEVICE, USER = TargetKind.DEVICE, TargetKind.USER

NOTED_EVERY = HOUR
"""How exactly the last use of a token is known: noting it is a change of the store."""


class DeviceRecord(msgspec.Struct, omit_defaults=True):
    """What is stored about a device besides its number, app and name."""

    token_hash: bytes = b""
    """SHA-256 of the device's token; empty for a device that registered itself on an open
    gateway."""
    former_hash: bytes = b""
    """The hash of the token before this one, which is accepted until `former_until`."""
    former_until: int = 0
    token_expires: int = 0
    """The time at which the device's token ends; 0 for a token that does not end by itself."""
    token_used: int = 0
    """When the device last connected with its token, to `NOTED_EVERY`; 0 if it never did."""
    user: str = ""
    zone: str = "UTC"
    subscriptions: list[str] = []
    capabilities: dict[str, str] = {}
    context: dict[str, bytes] = {}
    """The device's last context report: names and their JSON values."""
    registered_at: int = 0
    preferences: Preferences | None = None
    """The preferences that the owner set: links, quiet hours and costs."""
    routes: list[Route] = []
    """How the device is reached over the air; empty for a device that connects to the gateway."""
    addresses: list[str] = []
    """Client addresses of the device itself: `PLMN:+15551999`."""
    implied: str = ""
    """The default route because of which the device exists; empty for a registered device."""
    terms: dict[str, TopicTerms] = {}
    """The terms of the device's ranked subscriptions, by topic."""
    rules: list[ContextRule] = []
    """Rules that subscribe the device by its place and activity."""
    ruled: list[str] = []
    """Topics that the device is subscribed to because of `rules`."""
    services: dict[str, Service] = {}
    """The services that the device offers to others, by name."""
    filters: dict[str, str] = {}
    """XPath expressions of filtered subscriptions, by topic."""
    memberships: list[str] = msgspec.field(default_factory=list, name="circles")
    """The groups that the device belongs to and the queues that it takes from: `group:NAME`,
    `queue:NAME`."""


_encode_record = msgspec.msgpack.Encoder().encode
_decode_record = msgspec.msgpack.Decoder(DeviceRecord).decode


class Device:
    """A registered device: its number, app, name and record."""

    __slots__ = ("app", "name", "number", "record")

    def __init__(self, number: int, app: str, name: str, record: DeviceRecord) -> None:
        self.number = number
        self.app = app
        self.name = name
        self.record = record

    def row(self) -> DeviceRow:
        """Return the device as the store keeps it."""
        return DeviceRow(self.number, self.app, self.name, _encode_record(self.record))

    def accepts(self, token: str, now: Micros) -> bool:
        """Return whether `token` is this device's secret and has not expired, or was its secret
        until a time that has not come."""
        record = self.record
        if self.is_token(token):
            return not record.token_expires or now < record.token_expires
        former = hmac.compare_digest(hash_token(token), record.former_hash)
        return former and now < record.former_until

    def is_token(self, token: str) -> bool:
        """Return whether `token` is this device's present secret, expired or not."""
        return hmac.compare_digest(hash_token(token), self.record.token_hash)


def hash_token(token: str) -> bytes:
    """Return the SHA-256 of a token, the only form in which tokens are kept. Tokens are long and
    random, so that one round of hashing is enough."""
    return hashlib.sha256(token.encode()).digest()


class Index:
    """One more way to find devices, which the registry keeps up to date."""

    def added(self, device: Device) -> None:
        """Add a device, which is new or restored after a restart."""

    def amended(self, device: Device, before: DeviceRecord) -> None:
        """Update the index after a device's record was changed."""

    def removed(self, device: Device) -> None:
        """Remove a device from the index."""

    def reach(self, app: str, name: str) -> Mapping[int, Device]:
        """Return the devices that a name stands for; raise an error if there are none."""
        return {}


class Registry:
    """All devices, by number, name, user and app, and by the indexes that features add."""

    def __init__(self) -> None:
        self.next_number = 1
        self._by_number: dict[int, Device] = {}
        self._by_name: dict[tuple[str, str], Device] = {}
        # Dictionaries rather than sets: iteration follows registration, in every run alike.
        self._by_user: dict[tuple[str, str], dict[int, Device]] = {}
        self._by_app: dict[str, dict[int, Device]] = {}
        self.changes = 0
        """How often a device was added, removed or given to another target: a list of devices that
        was found for a target stays right as long as this number is the same."""
        self._indexes: list[Index] = []
        self._by_kind: dict[TargetKind, Index] = {}

    def __len__(self) -> int:
        return len(self._by_number)

    def __iter__(self) -> Iterator[Device]:
        return iter(self._by_number.values())

    def index(self, index: Index, kind: TargetKind | None = None) -> None:
        """Add an index that is kept up to date, and by which targets of one kind are found."""
        self._indexes.append(index)
        if kind is not None:
            self._by_kind[kind] = index

    def restore(self, rows: Iterable[DeviceRow], next_number: int) -> None:
        """Fill an empty registry from the store's rows."""
        for row in rows:
            self._add(Device(row.device, row.app, row.name, _decode_record(row.record)))
        self.next_number = next_number

    def add(self, app: str, name: str, record: DeviceRecord) -> Device:
        """Register a device under a new number."""
        device = Device(self.next_number, app, name, record)
        self.next_number += 1
        self._add(device)
        return device

    def remove(self, device: Device) -> None:
        """Remove a device from the registry and from every index."""
        self.changes += 1
        for index in self._indexes:
            index.removed(device)
        del self._by_number[device.number]
        del self._by_name[device.app, device.name]
        del self._by_app[device.app][device.number]
        if not self._by_app[device.app]:
            del self._by_app[device.app]
        self._leave_user(device)

    def find(self, app: str, name: str) -> Device | None:
        """Return the device of this name; None if there is none."""
        return self._by_name.get((app, name))

    def named(self, app: str, name: str) -> Device:
        """Return the device of this name; raise an error if there is none."""
        device = self._by_name.get((app, name))
        if device is None:
            raise NotFound("no such device", app=app, device=name)
        return device

    def numbered(self, number: int) -> Device | None:
        """Return the device with this number; None if there is none."""
        return self._by_number.get(number)

    def assign(self, device: Device, user: str) -> None:
        """Give a device to another user, or to none if `user` is empty."""
        if user == device.record.user:
            return
        self._leave_user(device)
        device.record.user = user
        if user:
            self._by_user.setdefault((device.app, user), {})[device.number] = device

    def has_user(self, app: str, user: str) -> bool:
        """Return whether any device belongs to this user."""
        return (app, user) in self._by_user

    def amend(self, device: Device, record: DeviceRecord) -> None:
        """Replace a device's record; its subscriptions stay."""
        self.assign(device, record.user)
        before, device.record = device.record, record
        for index in self._indexes:
            index.amended(device, before)

    def of_user(self, app: str, user: str) -> list[Device]:
        """Return the devices of a user, which may be none."""
        return list(self._by_user.get((app, user), {}).values())

    def reach(self, app: str, target: Target) -> Mapping[int, Device]:
        """Return the devices that a target stands for now; raise an error if there are none.

        A topic may have no subscribers: its publisher need not know them.
        """
        if target.kind is DEVICE:
            device = self._by_name.get((app, target.name)) or self.named(app, target.name)
            return {device.number: device}
        if target.kind is USER:
            found = self._by_user.get((app, target.name))
            if not found:
                raise NotFound("no device of this user", app=app, user=target.name)
            return found
        # Without an index it is the target `app:`, all devices of the app.
        index = self._by_kind.get(target.kind)
        return self._by_app.get(app, {}) if index is None else index.reach(app, target.name)

    def apps(self) -> list[str]:
        """Return the names of the apps that have a device, sorted."""
        return sorted(self._by_app)

    def _leave_user(self, device: Device) -> None:
        self.changes += 1
        user = (device.app, device.record.user)
        if device.record.user:
            del self._by_user[user][device.number]
            if not self._by_user[user]:
                del self._by_user[user]

    def _add(self, device: Device) -> None:
        self.changes += 1
        self._by_number[device.number] = device
        self._by_name[device.app, device.name] = device
        self._by_app.setdefault(device.app, {})[device.number] = device
        if device.record.user:
            self._by_user.setdefault((device.app, device.record.user), {})[device.number] = device
        for index in self._indexes:
            index.added(device)
