"""Who there is: devices with their users and subscriptions, found by name, number, user or
topic."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable, Iterator

import msgspec

from lasthop.core.addresses import AddressBook
from lasthop.core.feeds.rules import ContextRule
from lasthop.core.feeds.terms import TopicTerms
from lasthop.core.filters import Filters
from lasthop.core.patterns import PatternTree, is_pattern
from lasthop.core.services import ServiceBook
from lasthop.decision.preferences import Preferences
from lasthop.decision.routes import Route
from lasthop.errors import NotFound
from lasthop.message import Target, TargetKind
from lasthop.store.commit import DeviceRow
from lasthop.wire.hop.services import Service

DEVICE = TargetKind.DEVICE


class DeviceRecord(msgspec.Struct, omit_defaults=True):
    """What is stored about a device beside its number, app and name."""

    token_hash: bytes = b""
    """SHA-256 of the device's token; empty for a device that registered itself on an open
    gateway."""
    user: str = ""
    zone: str = "UTC"
    subscriptions: list[str] = []
    capabilities: dict[str, str] = {}
    context: dict[str, bytes] = {}
    """What the device last said of itself: names to JSON values."""
    registered_at: int = 0
    preferences: Preferences | None = None
    """Which links it likes, when it wants to be left alone, what it can afford; as it said."""
    routes: list[Route] = []
    """How it is reached over the air; none for a device that connects by itself."""
    addresses: list[str] = []
    """Client addresses that it has itself: `PLMN:+15551999`."""
    terms: dict[str, TopicTerms] = {}
    """Of its ranked subscriptions."""
    rules: list[ContextRule] = []
    """What it is subscribed to by where it is and what it does."""
    ruled: list[str] = []
    """Topics that it is subscribed to by its rules."""
    services: dict[str, Service] = {}
    """What it does for others, by name."""
    filters: dict[str, str] = {}
    """XPath expressions of subscriptions, by topic."""
    circles: list[str] = []
    """Groups that it belongs to and queues that it takes from: `group:NAME`, `queue:NAME`."""


_encode_record = msgspec.msgpack.Encoder().encode
_decode_record = msgspec.msgpack.Decoder(DeviceRecord).decode


class Device:
    """A registered device."""

    __slots__ = ("app", "name", "number", "record")

    def __init__(self, number: int, app: str, name: str, record: DeviceRecord) -> None:
        self.number = number
        self.app = app
        self.name = name
        self.record = record

    def row(self) -> DeviceRow:
        """The device as the store keeps it."""
        return DeviceRow(self.number, self.app, self.name, _encode_record(self.record))

    def accepts(self, token: str) -> bool:
        """Whether `token` is this device's secret."""
        return hmac.compare_digest(hash_token(token), self.record.token_hash)


def hash_token(token: str) -> bytes:
    """Tokens are long and random, so one round of SHA-256 protects them; only the hash is kept."""
    return hashlib.sha256(token.encode()).digest()


class Registry:
    """All devices, and the ways to find them."""

    def __init__(self) -> None:
        self.next_number = 1
        self._by_number: dict[int, Device] = {}
        self._by_name: dict[tuple[str, str], Device] = {}
        # Dictionaries rather than sets: iteration follows registration, in every run alike.
        self._by_user: dict[tuple[str, str], dict[int, Device]] = {}
        self._by_topic: dict[tuple[str, str], dict[int, Device]] = {}
        self._by_pattern: dict[str, PatternTree[Device]] = {}
        """Of an app, subscriptions to many topics at once."""
        self._by_circle: dict[tuple[str, str], dict[int, Device]] = {}
        """Members of groups, consumers of queues."""
        self._by_app: dict[str, dict[int, Device]] = {}
        self._by_host: dict[str, dict[int, Device]] = {}
        """Those with a route to this host."""
        self.addresses = AddressBook()
        self.services = ServiceBook()
        self.filters = Filters()
        self.changes = 0
        """How often anybody has come, gone, or become another target: who was found for a target is
        still the same as long as this is."""
        self._last_matched: tuple[tuple[int, str, str], dict[int, Device]] = ((-1, "", ""), {})
        """Who was last found for a topic by patterns, and when: batches ask time and again."""

    def __len__(self) -> int:
        return len(self._by_number)

    def __iter__(self) -> Iterator[Device]:
        return iter(self._by_number.values())

    def restore(self, rows: Iterable[DeviceRow], next_number: int) -> None:
        """Fill an empty registry from a store."""
        for row in rows:
            self._index(Device(row.device, row.app, row.name, _decode_record(row.record)))
        self.next_number = next_number

    def add(self, app: str, name: str, record: DeviceRecord) -> Device:
        """Register a device under a new number."""
        device = Device(self.next_number, app, name, record)
        self.next_number += 1
        self._index(device)
        return device

    def remove(self, device: Device) -> None:
        """Forget a device."""
        self.changes += 1
        for topic in list(device.record.subscriptions):
            self.unsubscribe(device, topic)
        for circle in device.record.circles:
            self._forget_circle(device, circle)
        del self._by_number[device.number]
        del self._by_name[device.app, device.name]
        del self._by_app[device.app][device.number]
        if not self._by_app[device.app]:
            del self._by_app[device.app]
        self._leave_user(device)
        self._leave_hosts(device)
        self.addresses.remove(device)
        self.services.remove(device)
        self.filters.remove(device)

    def find(self, app: str, name: str) -> Device | None:
        """The device of this name."""
        return self._by_name.get((app, name))

    def numbered(self, number: int) -> Device | None:
        """The device with this number."""
        return self._by_number.get(number)

    def assign(self, device: Device, user: str) -> None:
        """Give a device to another user, or to nobody."""
        if user == device.record.user:
            return
        self._leave_user(device)
        device.record.user = user
        if user:
            self._by_user.setdefault((device.app, user), {})[device.number] = device

    def at_host(self, host: str) -> list[Device]:
        """The devices that are reached over the air at this address."""
        return list(self._by_host.get(host, {}).values())

    def has_user(self, app: str, user: str) -> bool:
        """Whether any device belongs to this user."""
        return (app, user) in self._by_user

    def amend(self, device: Device, record: DeviceRecord) -> None:
        """Give a device another record; its subscriptions stay."""
        if record.addresses != device.record.addresses:
            self.addresses.check(device.app, record.addresses, device)
        self.assign(device, record.user)
        self.addresses.remove(device)
        self._leave_hosts(device)
        device.record = record
        self.addresses.add(device)
        self._join_hosts(device)

    def subscribe(self, device: Device, topic: str) -> bool:
        """Add a subscription; false when it was there."""
        if not self._index_topic(device, topic):
            return False
        device.record.subscriptions.append(topic)
        return True

    def unsubscribe(self, device: Device, topic: str) -> bool:
        """Remove a subscription; false when there was none."""
        if not self._forget_topic(device, topic):
            return False
        device.record.subscriptions.remove(topic)
        if topic in device.record.filters:
            self.filters.set(device, topic, "")
        return True

    def members(self, app: str, target: Target) -> dict[int, Device]:
        """Who belongs to a group, or takes from a queue."""
        return self._by_circle.get((app, str(target)), {})

    def join(self, device: Device, target: Target) -> bool:
        """Let a device belong to a group or queue; false when it did."""
        circle = str(target)
        if not self._index_circle(device, circle):
            return False
        device.record.circles = [*device.record.circles, circle]
        return True

    def leave(self, device: Device, target: Target) -> bool:
        """And no longer; false when it did not."""
        circle = str(target)
        if not self._forget_circle(device, circle):
            return False
        device.record.circles = [name for name in device.record.circles if name != circle]
        return True

    def _index_circle(self, device: Device, circle: str) -> bool:
        self.changes += 1
        members = self._by_circle.setdefault((device.app, circle), {})
        if device.number in members:
            return False
        members[device.number] = device
        return True

    def _forget_circle(self, device: Device, circle: str) -> bool:
        self.changes += 1
        members = self._by_circle.get((device.app, circle))
        if members is None or members.pop(device.number, None) is None:
            return False
        if not members:
            del self._by_circle[device.app, circle]
        return True

    def _index_topic(self, device: Device, topic: str) -> bool:
        self.changes += 1
        if is_pattern(topic):
            tree = self._by_pattern.setdefault(device.app, PatternTree())
            return tree.add(topic, device.number, device)
        subscribers = self._by_topic.setdefault((device.app, topic), {})
        if device.number in subscribers:
            return False
        subscribers[device.number] = device
        return True

    def _forget_topic(self, device: Device, topic: str) -> bool:
        self.changes += 1
        if is_pattern(topic):
            tree = self._by_pattern.get(device.app)
            if tree is None or not tree.remove(topic, device.number):
                return False
            if not len(tree):
                del self._by_pattern[device.app]
            return True
        subscribers = self._by_topic.get((device.app, topic))
        if subscribers is None or subscribers.pop(device.number, None) is None:
            return False
        if not subscribers:
            del self._by_topic[device.app, topic]
        return True

    def reach(self, app: str, target: Target) -> dict[int, Device]:
        """The devices that a target stands for now; a name that stands for nobody is an error.

        A topic may have no subscribers: its publisher need not know.
        """
        found: dict[int, Device] | None
        if target.kind is DEVICE:
            device = self._by_name.get((app, target.name))
            if device is None:
                raise NotFound("no such device", app=app, device=target.name)
            return {device.number: device}
        if target.kind is TargetKind.TOPIC:
            return self._subscribers(app, target.name)
        if target.kind is TargetKind.USER:
            found = self._by_user.get((app, target.name))
            if not found:
                raise NotFound("no device of this user", app=app, user=target.name)
            return found
        if target.kind is TargetKind.SERVICE:
            raise NotFound(
                "a service is found when a message for it is accepted", target=target.name
            )
        if target.kind is TargetKind.GROUP:
            found = self._by_circle.get((app, str(target)))
            if not found:
                raise NotFound("nobody is in this group", app=app, group=target.name)
            return found
        return self._by_app.get(app, {})

    def topics(self, app: str) -> list[str]:
        """The topics of an app that somebody has subscribed to by name, in no order."""
        return [topic for of, topic in self._by_topic if of == app]

    def apps(self) -> list[str]:
        """The apps that have a device, by name."""
        return sorted(self._by_app)

    def _subscribers(self, app: str, topic: str) -> dict[int, Device]:
        subscribers = self._by_topic.get((app, topic), {})
        tree = self._by_pattern.get(app)
        if tree is None:
            return subscribers
        asked = self.changes, app, topic
        if self._last_matched[0] != asked:
            self._last_matched = asked, tree.match(topic) | subscribers
        return self._last_matched[1]

    def _leave_user(self, device: Device) -> None:
        self.changes += 1
        user = (device.app, device.record.user)
        if device.record.user:
            del self._by_user[user][device.number]
            if not self._by_user[user]:
                del self._by_user[user]

    def _join_hosts(self, device: Device) -> None:
        for route in device.record.routes:
            self._by_host.setdefault(route.endpoint()[0], {})[device.number] = device

    def _leave_hosts(self, device: Device) -> None:
        for host in {route.endpoint()[0] for route in device.record.routes}:
            del self._by_host[host][device.number]
            if not self._by_host[host]:
                del self._by_host[host]

    def _index(self, device: Device) -> None:
        self.changes += 1
        self._by_number[device.number] = device
        self._by_name[device.app, device.name] = device
        self._by_app.setdefault(device.app, {})[device.number] = device
        if device.record.user:
            self._by_user.setdefault((device.app, device.record.user), {})[device.number] = device
        if device.record.addresses:
            self.addresses.add(device)
        if device.record.routes:
            self._join_hosts(device)
        if device.record.services:
            self.services.add(device)
        if device.record.filters:
            self.filters.add(device)
        for topic in device.record.subscriptions:
            self._index_topic(device, topic)
        for circle in device.record.circles:
            self._index_circle(device, circle)
