"""What is stored of a feed, besides its deliveries and the rows of its messages."""

from __future__ import annotations

from typing import Any

import msgspec

from lasthop.decision.volume.entry import Place
from lasthop.decision.volume.memory import FeedState
from lasthop.decision.volume.policy_choice import EARLIER_DEFAULT, PolicyChoice

HOT, COLD = 0, 1
"""The two parts of a feed's row: the first changes with every message; the second changes seldom
and is larger."""

PLACES: dict[Place, int] = {
    Place.DELAYED: 1,
    Place.PREFETCH: 2,
    Place.HOLDING: 3,
    Place.BELOW: 4,
    Place.DEVICE: 5,
}
"""The number of each place in the store: never reuse one."""

PLACE_OF = {number: place for place, number in PLACES.items()}

OVER, SHOWN, EARLY = 0, 6, 7
"""Places of messages that the feed has finished with, that wait for the device's report, or that
the feed does not know yet because of their `deliver_after`."""

NOT_FOLLOWED = 8
"""The place of an instruction that the device did not follow, according to its report; other
instructions need no row."""


class Hot(msgspec.Struct, omit_defaults=True):
    """The part of a feed's state that changes with every message."""

    state: FeedState = FeedState()
    choice: PolicyChoice = PolicyChoice()
    lessons: list[list[Any]] = []
    """What the policy has learned since its memory was last written."""
    lane: list[list[Any]] = []
    """Instructions to the device that cannot be sent yet."""
    default: str = EARLIER_DEFAULT
    """The default policy when the subscription was made, which the subscription keeps."""


_encode = msgspec.msgpack.Encoder().encode
_decode_hot = msgspec.msgpack.Decoder(Hot).decode
_decode_cold = msgspec.msgpack.Decoder(dict[str, Any]).decode


def pack(record: Hot | dict[str, Any]) -> bytes:
    """Return a part of a feed as the store keeps it."""
    return _encode(record)


def unpack_hot(data: bytes) -> Hot:
    """Return the part of a feed that changes with every message."""
    return _decode_hot(data)


def unpack_cold(data: bytes) -> dict[str, Any]:
    """Return the memory of a feed's policy."""
    return _decode_cold(data)
