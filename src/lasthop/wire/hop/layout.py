"""The type bytes and flags of the hop protocol, as the tables of docs/hop-protocol.md have them."""

from __future__ import annotations

from typing import Final

from lasthop.message import COUNTER_BITS, KEY_TIME_SHIFT, NODE_BITS

BUNDLE: Final = 0x00
"""The mark of a datagram that holds several frames; never the type of a frame."""

MOST_BUNDLED: Final = 2048
"""The largest number of frames of one bundle, twice what fits a window. They are handled together,
and no other channel is served meanwhile: the smallest message takes some ten microseconds."""

PING: Final = 0x01
PONG: Final = 0x02
TIME: Final = 0x03
WANTED: Final = 0x04
WAYS: Final = 0x05

CRITICAL: Final = 0x40
"""The first critical type of control frames: unknown types from here on close the channel."""

HELLO: Final = 0x40
WELCOME: Final = 0x41
CLOSE: Final = 0x42
ACK: Final = 0x43
ADVANCE: Final = 0x44
SKIP: Final = 0x45
CREDIT: Final = 0x46
DROPPED: Final = 0x47
PIECE: Final = 0x48
TAKEN: Final = 0x49
ENDING: Final = 0x4A
LANE: Final = 0x4B
LAST: Final = 0x4C
"""The last number of a lane: a frame inside LANE only."""

MESSAGE: Final = 0x80
"""The first type byte of messages; the low seven bits are flags."""

NUMBERED: Final = 0x40
KEY_BITS: Final = 0x30
KEY_NEXT: Final = 0x00
KEY_FORWARD: Final = 0x10
KEY_ABSOLUTE: Final = 0x20
KEY_NONE: Final = 0x30
TOPIC: Final = 0x08
HEADERS: Final = 0x04
UNSEQUENCED: Final = 0x02
IN_LANE: Final = 0x01
"""The number of a lane follows the type byte of a message."""

FORWARD_BITS: Final = 6
"""Bits of the counter in a key that is sent as a step forward: with a gap of 32 seconds the step
still takes three bytes, and a gateway that accepts 64 messages a millisecond still profits."""

FORWARD_LIMIT: Final = 1 << FORWARD_BITS
NODE_MASK: Final = ((1 << NODE_BITS) - 1) << COUNTER_BITS
COUNTER_MASK: Final = (1 << COUNTER_BITS) - 1
TIME_SHIFT: Final = KEY_TIME_SHIFT

FIRST_LANE: Final = 2
"""The lowest identifier of a lane beside lane 0: twice the lane's number, which starts at 1, and
one more if its messages need no order."""

MAX_TOKEN: Final = 255
"""The largest number of topics that a channel gives a token, in each direction; later topics are
spelt out."""
