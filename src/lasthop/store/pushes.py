"""What a store keeps of pushes: what their initiators asked for, the client addresses they use, and
what is to be reported to them. Commits without a push have none of it."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from lasthop.clock import Micros
from lasthop.store.commit import DeliveryRow


class AddressRow(msgspec.Struct, array_like=True):
    """A client address and who it stands for: `device:`, `user:`, `topic:` with a name, or `app:`.
    Without a target it is to be removed."""

    app: str
    address: str
    """Type and value: `PLMN:+15551999`, `USER:staff%40example.org`."""
    target: str


class Addressee(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """One address of a push, exactly as its initiator wrote it."""

    text: str
    everyone: bool = False
    """Whether each of its devices counts, or any one will do."""
    devices: tuple[int, ...] | None = None
    """In ascending order. None: everyone whom the message went to, for a push to one address."""
    code: int = 0
    """Why the push was not accepted for this address, as a code of PAP; 0 when it was."""


class PushRow(msgspec.Struct, array_like=True, gc=False):
    """What an initiator asked for with a message, as far as the message itself does not say it."""

    id: bytes
    """Stands for app, initiator and push-id; kept for ever, so that none is used twice."""
    message: int
    app: str
    push_id: str
    addresses: tuple[Addressee, ...]
    notify_to: str = ""
    version: str = ""
    """Of PAP, in which the initiator wrote."""
    withdrawn_at: Micros = 0
    """When it was cancelled for those whose delivery had not even begun."""


class KnownPush(msgspec.Struct):
    """A push-id that was used; of what was asked nothing is left when the message is gone."""

    message: int
    row: PushRow | None


class OpenPush(msgspec.Struct):
    """A push that is not over, with those of its deliveries that are."""

    row: PushRow
    ended: list[DeliveryRow]


class NotificationRow(msgspec.Struct, array_like=True, gc=False):
    """What is to be reported to an initiator, and the state of our attempts to."""

    message: int
    place: int
    """Of the address among the push's."""
    state: str
    code: int
    event_time: Micros
    method: str
    first_at: Micros
    due: Micros
    attempts: int = 0
    reply: int = 0
    """Key of the client's answer that goes along."""
    awaited_from: int = 0
    """The device whose answer is waited for until it is due."""
    done: bool = False


class PushChanges(msgspec.Struct):
    """What one commit changes. Of two rows for the same key the later one counts."""

    addresses: dict[tuple[str, str], AddressRow] = {}
    pushes: dict[bytes, PushRow] = {}
    notifications: dict[tuple[int, int], NotificationRow] = {}


class PushesRestored(msgspec.Struct, frozen=True):
    """What there is when a store is opened."""

    addresses: Iterable[AddressRow] = ()
    pushes: Iterable[OpenPush] = ()
    """Those whose message is open, or that have something to report; may be read once."""
    notifications: Iterable[NotificationRow] = ()
