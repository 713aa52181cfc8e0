"""What is stored of a feed, beside its deliveries and the rows of its events."""

from __future__ import annotations

from typing import Any

import msgspec

from lasthop.decision.volume.entry import Place
from lasthop.decision.volume.memory import FeedState
from lasthop.decision.volume.policy_choice import PolicyChoice

HOT, COLD = 0, 1
"""The parts of a feed's row: one changes with everything, the other seldom and is larger."""

PLACES: dict[Place, int] = {
    Place.DELAYED: 1,
    Place.PREFETCH: 2,
    Place.HOLDING: 3,
    Place.BELOW: 4,
    Place.DEVICE: 5,
}
"""Stored: never reuse a number."""

PLACE_OF = {number: place for place, number in PLACES.items()}

OVER, SHOWN, EARLY = 0, 6, 7
"""Of what the feed is done with: closed, or waiting for the device's word; of what it does not know
yet, because of its deliver_after."""

NOT_FOLLOWED = 8
"""Of an instruction: the device has said that it did not do as told. Others need no row."""


class Hot(msgspec.Struct, omit_defaults=True):
    """A feed from one moment to the next."""

    state: FeedState = FeedState()
    choice: PolicyChoice = PolicyChoice()
    lessons: list[list[Any]] = []
    """What its policy was taught since its memory was last written."""
    lane: list[list[Any]] = []
    """What is to be said to the device and cannot be said yet."""


_encode = msgspec.msgpack.Encoder().encode
_decode_hot = msgspec.msgpack.Decoder(Hot).decode
_decode_cold = msgspec.msgpack.Decoder(dict[str, Any]).decode


def pack(record: Hot | dict[str, Any]) -> bytes:
    """As the store keeps it."""
    return _encode(record)


def unpack_hot(data: bytes) -> Hot:
    """The part that changes with everything."""
    return _decode_hot(data)


def unpack_cold(data: bytes) -> dict[str, Any]:
    """A policy's memory."""
    return _decode_cold(data)
