"""Why an event is where it is, in the words that `lasthop explain` prints."""

from __future__ import annotations

from typing import Final

ASKED: Final = "asked for by a read"
CAUGHT_UP: Final = "shown as soon as it could be"
AHEAD: Final = "sent ahead of a read"
INTERRUPTS: Final = "ranked high enough to interrupt"
BELOW_THRESHOLD: Final = "ranked below Threshold"
SETTLING: Final = "waiting for its rank to settle"
NO_CONTACT: Final = "no contact"
ENOUGH: Final = "the device has enough to read"
NO_BETTER: Final = "no better than what fills the device"
NO_ROOM: Final = "the device needed the room"
LOST: Final = "lost with the device's session"
EXPIRED: Final = "expired"
OUTRANKED: Final = "the quota is full, and it is outranked"
WITHDRAWN: Final = "withdrawn by its publisher"
OVER: Final = "read, or over"
UNKNOWN: Final = "not known here"
