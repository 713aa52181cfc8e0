"""What core asks a store to make durable: one `Commit`, all or nothing.

A commit holds rows in the shape in which they are kept, so that a driver writes a whole batch with
a handful of statements. Commits are numbered from 1 without gaps; a driver applies them in order
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
    """One message for one device as it stands; `state` is that of a `core.lifecycle.State`."""

    message: int
    device: int
    state: int
    open: bool
    epoch: int
    seq: int
    attempts: int
    changed_at: Micros
    last_event: int
    """Offset of the delivery's newest event; `prev` leads on from there."""
    redelivered: bool = False
    reply: int = 0
    """Key of the device's answer, when one was wanted and came."""
    code: int = 0
    """PAP's status code of its end, where that says more than the state."""
    ahead: bool = False
    """Whether its body has gone ahead in pieces, and it follows without."""


class SessionRow(msgspec.Struct, array_like=True, gc=False):
    """What outlives the channels of a device: its numbering both ways, and its count of events."""

    device: int
    epoch: int
    assigned: int
    """Numbers given out towards the device: durable before any of them is sent."""
    received: int
    delivered: int
    inbound: int
    """Messages of the device that have been accepted in this epoch."""
    events: int
    incarnation: int = 0
    """Of the store that began this epoch."""
    previous: tuple[tuple[int, int, int], ...] = ()
    """Earlier numberings that the device may still speak of, newest first: incarnation, epoch and
    how many of its messages were accepted under them. At most a few."""


class DeviceRow(msgspec.Struct, array_like=True):
    """A device as registered; `record` is opaque to the store."""

    device: int
    app: str
    name: str
    record: bytes


class ReplyRow(msgspec.Struct, array_like=True, gc=False):
    """A device's answer to a message: the first one counts, and only if the message was for it."""

    message: int
    device: int
    reply: int


class KeyRow(msgspec.Struct, array_like=True, gc=False):
    """An idempotency key and what it stands for, kept for a stated time."""

    app: str
    key: str
    """Behind the publisher whose key it is (`own_key`); an older gateway kept it alone."""
    digest: bytes
    """Of the request: the same key with another request is a conflict."""
    first: int
    count: int
    at: Micros


class FanoutRow(msgspec.Struct, array_like=True, gc=False):
    """A message for many, being fanned out: devices up to `cursor` have their deliveries."""

    message: int
    cursor: int
    last: int
    """Highest device number at acceptance: who registers later is not addressed."""
    done: bool


class CredentialRow(msgspec.Struct, array_like=True):
    """A publisher's or an administrator's credential; only a hash of the secret is kept."""

    hash: bytes
    app: str
    name: str
    scopes: str
    created_at: Micros
    revoked: bool = False


class MemoryRow(msgspec.Struct, array_like=True):
    """What some part of core remembers about a device under a name; opaque to the store.

    Device 0 stands for all of them together. An empty state means that there is nothing to
    remember any more.
    """

    device: int
    name: str
    state: bytes


class Commit(msgspec.Struct):
    """Everything that one commit changes. Of two rows for the same key the later one counts."""

    n: int
    first_event: int
    messages: list[Message] = []
    deliveries: list[DeliveryRow] = []
    sessions: dict[int, SessionRow] = {}
    devices: dict[int, DeviceRow] = {}
    removed_devices: list[int] = []
    keys: list[KeyRow] = []
    replies: list[ReplyRow] = []
    """Applied after `deliveries`."""
    fanouts: dict[int, FanoutRow] = {}
    credentials: dict[bytes, CredentialRow] = {}
    memories: dict[tuple[int, str], MemoryRow] = {}
    changes: dict[type[Any], Any] = {}
    """What features change, by the type of their changes."""
    events: bytearray = bytearray()
    """JSON lines, each ended by a newline."""
    event_count: int = 0

    def of(self, kind: type[Kind]) -> Kind:
        """What it changes of one kind, to be added to."""
        found: Kind | None = self.changes.get(kind)
        if found is None:
            found = self.changes[kind] = kind()
        return found

    def remember(self, device: int, name: str, state: bytes) -> None:
        """Let a part of core remember this about a device; see `MemoryRow`."""
        self.memories[device, name] = MemoryRow(device, name, state)

    @property
    def empty(self) -> bool:
        """Whether there is nothing to write."""
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
    """A message with its open deliveries. While it is still fanned out there may be none."""

    message: Message
    deliveries: list[DeliveryRow]


class Restored(msgspec.Struct):
    """What a store knows when it is opened: enough for core to go on where it was."""

    incarnation: int
    """Random, made when the store was created or restored from a copy."""
    boot: int
    """How often the store has been opened; already counted up and durable."""
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
    """Only the newest few; older ones are looked up."""
    credentials: Iterable[CredentialRow]
    memories: Iterable[MemoryRow]
    kept: Mapping[type[Any], Any]
    """What features have kept, by the type of it."""

    def of(self, kind: type[Kind]) -> Kind:
        """What there is of one kind."""
        found: Kind = self.kept[kind]
        return found

    def memories_of(self, *names: str) -> list[MemoryRow]:
        """What is remembered under these names, in ascending order of device."""
        return [row for row in self.memories if row.name in names]
