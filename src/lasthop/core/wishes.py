"""What a device prefers: taken in from itself or from an administrator, kept, and brought back."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from lasthop.clock import Micros
from lasthop.core.mailroom import Mailroom
from lasthop.core.session import Session
from lasthop.core.steering import BUDGETS, CAPS, Steering
from lasthop.decision.books import restored_budgets
from lasthop.decision.budgets import Budgets, Limit
from lasthop.decision.preferences import Preferences
from lasthop.errors import InvalidRequest, LasthopError
from lasthop.events import Kind
from lasthop.store.commit import MemoryRow

_decode = msgspec.json.Decoder(Preferences).decode
_encode = msgspec.json.Encoder().encode


def decode_preferences(body: bytes) -> Preferences:
    """Preferences as devices and the REST door send them, checked as a whole."""
    try:
        return _decode(body)
    except msgspec.ValidationError as error:
        cause = error.__cause__
        if isinstance(cause, LasthopError):
            raise cause from None
        raise InvalidRequest(f"not preferences: {error}") from None
    except msgspec.DecodeError as error:
        raise InvalidRequest(f"preferences are a JSON object: {error}") from None


def encode_preferences(preferences: Preferences) -> bytes:
    """The same, to be shown and logged."""
    return _encode(preferences)


def prefer(room: Mailroom, session: Session, preferences: Preferences, now: Micros) -> None:
    """A device wants its messages sent like this from now on."""
    device = session.device
    device.record.preferences = preferences
    room.journal.commit.devices[device.number] = device.row()
    terms = encode_preferences(preferences).decode()
    room.journal.tell(Kind.PREFERENCES_CHANGED, now, session, terms=terms)
    if session.steering is None:
        session.steering = Steering(session, preferences, room.shared)
    else:
        session.steering.grants.revoke(now)
        session.steering.wish(preferences)
    room.touch(session)


def share(room: Mailroom, limits: tuple[Limit, ...], zone: str) -> None:
    """Limits that all devices have in common."""
    if limits:
        room.shared = Budgets(limits, zone_name=zone)


def restore_wishes(room: Mailroom, memories: Iterable[MemoryRow], now: Micros) -> None:
    """Bring back preferences and budgets after a restart."""
    kept: dict[int, list[MemoryRow]] = {}
    for row in memories:
        if row.name in (BUDGETS, CAPS):
            kept.setdefault(row.device, []).append(row)
    for row in kept.pop(0, ()):
        if room.shared is not None:
            limits = room.shared.limits
            room.shared = restored_budgets(row.state, now)
            room.shared.change(limits)
    for device in room.registry:
        preferences = device.record.preferences
        if preferences is None and device.number not in kept:
            continue
        session = room.session(device)
        session.steering = Steering(session, preferences or Preferences(), room.shared)
        for row in kept.get(device.number, ()):
            session.steering.restore(row.name, row.state, now)
