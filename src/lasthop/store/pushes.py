"""The rows that a store keeps about pushes: what their initiators asked for, the client addresses,
and the notifications to be sent. A commit that concerns no push has no such rows."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from lasthop.clock import Micros
from lasthop.store.commit import DeliveryRow


class AddressRow(msgspec.Struct, array_like=True):
    """A client address and its target: `device:`, `user:`, `topic:` with a name, or `app:`. Without
    a target the row is to be removed."""

    app: str
    address: str
    """The address as type and value, such as `PLMN:+15551999` or `USER:staff%40example.org`."""
    target: str


class Addressee(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """One address of a push, exactly as its initiator wrote it."""

    text: str
    everyone: bool = False
    """Whether all devices of the address must get the push; otherwise any one of them is enough."""
    devices: tuple[int, ...] | None = None
    """The devices of the address, ascending. None means every device that the message went to, for
    a push to one address."""
    code: int = 0
    """PAP's status code for why the push was not accepted for this address; 0 if it was."""


class PushRow(msgspec.Struct, array_like=True, gc=False):
    """What an initiator asked for with a push, as far as the message itself does not say it."""

    id: bytes
    """A hash of app, initiator and push-id; kept for ever, so that no push-id is used twice."""
    message: int
    app: str
    push_id: str
    addresses: tuple[Addressee, ...]
    notify_to: str = ""
    version: str = ""
    """The version of PAP in which the initiator wrote."""
    withdrawn_at: Micros = 0
    """When the push was cancelled for the devices whose delivery had not even begun; 0 if it was
    not."""


class KnownPush(msgspec.Struct):
    """A push-id that was used; `row` is None once the message was removed."""

    message: int
    row: PushRow | None


class OpenPush(msgspec.Struct):
    """A push that is not finished, with its finished deliveries."""

    row: PushRow
    ended: list[DeliveryRow]


class NotificationRow(msgspec.Struct, array_like=True, gc=False):
    """A result notification for an initiator, and the state of the attempts to send it."""

    message: int
    place: int
    """The index of the address among those of the push."""
    state: str
    code: int
    event_time: Micros
    method: str
    first_at: Micros
    due: Micros
    attempts: int = 0
    reply: int = 0
    """Key of the client's answer that is sent along; 0 without one."""
    awaited_from: int = 0
    """The device whose answer the notification waits for until it is due; 0 for none."""
    done: bool = False


class PushChanges(msgspec.Struct):
    """The push changes of one commit. If two rows have the same key, the later one is stored."""

    addresses: dict[tuple[str, str], AddressRow] = {}
    pushes: dict[bytes, PushRow] = {}
    notifications: dict[tuple[int, int], NotificationRow] = {}


class PushesRestored(msgspec.Struct, frozen=True):
    """The rows of pushes when a store is opened."""

    addresses: Iterable[AddressRow] = ()
    pushes: Iterable[OpenPush] = ()
    """Pushes whose message is open or that have a notification to send; may be read once."""
    notifications: Iterable[NotificationRow] = ()
