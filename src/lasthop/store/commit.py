"""What the core asks a store to make durable: one `Commit`, all or nothing.

A commit holds rows in the shape in which they are kept, so that a driver writes a whole batch with
a handful of statements. Commits are numbered from 1 without gaps; a driver applies them in order,
and a number is durable only when all smaller ones are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

import msgspec

from lasthop.clock import Micros
from lasthop.message import Message

Kind = TypeVar("Kind")


class DeliveryRow(msgspec.Struct, array_like=True, gc=False):
    """The present state of one message for one device; `state` is a `core.lifecycle.State`."""

    message: int
    device: int
    state: int
    open: bool
    epoch: int
    seq: int
    attempts: int
    changed_at: Micros
    last_event: int
    """Offset of the delivery's newest event; its `prev` is the offset of the event before."""
    redelivered: bool = False
    reply: int = 0
    """Key of the device's answer, if one was wanted and came; otherwise 0."""
    code: int = 0
    """PAP's status code for the delivery's end, where it says more than the state; otherwise 0."""
    ahead: bool = False
    """Whether the body was sent ahead in pieces, and the message follows without it."""
    lane: int = 0
    """The lane that `seq` is a number of."""
    receipt: int = 0
    """What a network has said about the handset since the delivery was sent, as `SmsState` numbers
    it; 0 if it has said nothing."""


class SessionRow(msgspec.Struct, array_like=True, gc=False):
    """What outlives the channels of a device: its numbering both ways, and its count of events."""

    device: int
    epoch: int
    assigned: int
    """The number of sequence numbers assigned towards the device; durable before any of them is
    sent."""
    received: int
    delivered: int
    inbound: int
    """The number of messages of the device that were accepted in this epoch."""
    events: int
    incarnation: int = 0
    """The incarnation of the store that began this epoch."""
    previous: tuple[tuple[int, int, int], ...] = ()
    """Earlier numberings that the device may still claim, newest first: incarnation, epoch and how
    many of its messages were accepted in that epoch. At most a few."""


class DeviceRow(msgspec.Struct, array_like=True):
    """A registered device; `record` is opaque to the store."""

    device: int
    app: str
    name: str
    record: bytes


class ReplyRow(msgspec.Struct, array_like=True, gc=False):
    """A device's answer to a message. Only the first answer is stored, and only if the message was
    for the device."""

    message: int
    device: int
    reply: int


class KeyRow(msgspec.Struct, array_like=True, gc=False):
    """An idempotency key and the messages that it stands for, kept for a stated time."""

    app: str
    key: str
    """The key, preceded by the publisher whose key it is (`own_key`); older gateways stored the key
    alone."""
    digest: bytes
    """The hash of the request: the same key with another request is a conflict."""
    first: int
    count: int
    at: Micros


class FanoutRow(msgspec.Struct, array_like=True, gc=False):
    """A message for many that is being fanned out: devices up to `cursor` have their deliveries."""

    message: int
    cursor: int
    last: int
    """The highest device number at acceptance: devices that register later are not addressed."""
    done: bool


class CredentialRow(msgspec.Struct, array_like=True):
    """A publisher's or an administrator's credential; only a hash of the secret is kept."""

    hash: bytes
    app: str
    name: str
    scopes: str
    created_at: Micros
    revoked: bool = False
    expires_at: Micros = 0
    """When the credential ends; 0 if it does not end by itself."""
    used_at: Micros = 0
    """When it was last used, to the hour; 0 if it never was."""


class MemoryRow(msgspec.Struct, array_like=True):
    """What a part of the core remembers about a device under a name; opaque to the store.

    Device 0 stands for all devices together. An empty state removes the row.
    """

    device: int
    name: str
    state: bytes


class Commit(msgspec.Struct):
    """Everything that one commit changes. If two rows have the same key, the later one is
    stored."""

    n: int
    first_event: int
    messages: list[Message] = []
    deliveries: list[DeliveryRow] = []
    sessions: dict[int, SessionRow] = {}
    devices: dict[int, DeviceRow] = {}
    removed_devices: list[int] = []
    keys: list[KeyRow] = []
    replies: list[ReplyRow] = []
    """Answers of devices; applied after `deliveries`."""
    fanouts: dict[int, FanoutRow] = {}
    credentials: dict[bytes, CredentialRow] = {}
    memories: dict[tuple[int, str], MemoryRow] = {}
    changes: dict[type[Any], Any] = {}
    """The changes of features, by the type of the changes."""
    events: bytearray = bytearray()
    """Events as JSON lines, each ended by a newline."""
    event_count: int = 0

    def of(self, kind: type[Kind]) -> Kind:
        """Return this commit's changes of one type, to add to."""
        found: Kind | None = self.changes.get(kind)
        if found is None:
            found = self.changes[kind] = kind()
        return found

    def remember(self, device: int, name: str, state: bytes) -> None:
        """Store what a part of the core remembers about a device; see `MemoryRow`."""
        self.memories[device, name] = MemoryRow(device, name, state)

    @property
    def empty(self) -> bool:
        """Whether the commit changes nothing, so that it need not be written."""
        return not (
            self.event_count
            or self.messages
            or self.deliveries
            or self.sessions
            or self.devices
            or self.removed_devices
            or self.keys
            or self.replies
            or self.fanouts
            or self.credentials
            or self.memories
            or self.changes
        )


class OpenMessage(msgspec.Struct):
    """A message with its open deliveries; there may be none yet while it is being fanned out."""

    message: Message
    deliveries: list[DeliveryRow]


class Restored(msgspec.Struct):
    """What a store holds when it is opened: enough for the core to continue where it was."""

    incarnation: int
    """The store's random incarnation, made when it was created or restored from a backup."""
    boot: int
    """How often the store has been opened, this time included; already durable."""
    next_commit: int
    next_event: int
    last_key: int
    next_device: int
    devices: Iterable[DeviceRow]
    sessions: Iterable[SessionRow]
    open: Iterable[OpenMessage]
    """Every message with an open delivery or an unfinished fan-out, in ascending order of key; may
    be read once."""
    fanouts: Iterable[FanoutRow]
    keys: Iterable[KeyRow]
    """The newest idempotency keys; older ones are looked up in the store."""
    credentials: Iterable[CredentialRow]
    memories: Iterable[MemoryRow]
    kept: Mapping[type[Any], Any]
    """The rows that features of the core have stored, by the class that holds those of one feature,
    such as `GroupsRestored`."""

    def of(self, kind: type[Kind]) -> Kind:
        """Return the rows of one feature, by the type of their collection."""
        found: Kind = self.kept[kind]
        return found

    def memories_of(self, *names: str) -> list[MemoryRow]:
        """Return what is remembered under these names, in ascending order of device."""
        return [row for row in self.memories if row.name in names]
