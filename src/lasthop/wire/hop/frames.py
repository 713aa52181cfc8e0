"""What a device and the gateway say to each other: one value class a frame of the hop protocol.

Frames are what the codec makes of bytes and what the rest of lasthop talks in; they hold absolute
numbers, whatever shorthand the wire uses. The bytes of each are described in docs/hop-protocol.md.
"""

from __future__ import annotations

from enum import IntEnum, IntFlag
from typing import Final, TypeAlias

import msgspec

from lasthop.message import DEFAULT_PRIORITY, Binding, Handling, Reliability

VERSION: Final = 1

ERROR_TYPE: Final = "application/vnd.lasthop.error+json"
"""Content type of the answer that says why a device's message was refused."""

ASKED_TYPE: Final = "application/vnd.lasthop.asked+json"
"""Content type of the answer that says who was asked, to a device that gathers."""

FEED_TYPE: Final = "application/vnd.lasthop.feed"
"""Content type of what the gateway says about a ranked topic; on the hop its operation tells."""

DECISION_TYPE: Final = "application/vnd.lasthop.decision"
"""Content type of what was decided about a message for a group; on the hop its operation tells."""

DEFAULT_MAX_FRAME: Final = 2**20 + 2**10
"""A body of 1 MiB, the gateway's own limit, and room for its headers."""

MIN_MAX_FRAME: Final = 2**13
"""The least limit that a peer may set: the largest ACK still fits."""

MAX_HANDSHAKE: Final = 2**14
"""What a stranger may make us buffer: a token, an accept list and 256 ranges fit easily."""

MAX_RANGES: Final = 256
"""With more gaps than this a sender does better to send again; bounds the work of one ACK."""

MAX_TOPIC: Final = 512
"""Bytes. A channel remembers up to 255 topics for its tokens: with this limit at most 128 KiB."""

MAX_LIST: Final = 64
"""Entries of an accept list or of free headers."""

Ranges: TypeAlias = tuple[tuple[int, int], ...]
"""Numbers as half-open ranges (start, stop), ascending, with gaps between them."""


class CloseCode(IntEnum):
    """Why a channel ends; docs/hop-protocol.md says whose fault each is and what to do then."""

    BYE = 0
    MALFORMED = 1
    TOO_LARGE = 2
    UNSUPPORTED = 3
    UNAUTHORIZED = 4
    UNKNOWN_DEVICE = 5
    REPLACED = 6
    TIMEOUT = 7
    OVERLOADED = 8
    SHUTTING_DOWN = 9
    CREDIT_EXCEEDED = 10
    OUT_OF_ORDER = 11
    LINK_CLOSED = 12


class Operation(IntEnum):
    """What a message asks of its receiver."""

    DATA = 0
    SUBSCRIBE = 1
    UNSUBSCRIBE = 2
    CONTEXT = 3
    REPLY = 4
    READ = 5
    PREFERENCES = 20
    LOOK = 6
    REPORT = 7
    FEED = 8
    OFFER = 13
    WITHDRAW = 14
    FIND = 15
    JOIN = 9
    LEAVE = 10
    CLAIM = 11
    DECISION = 12
    PULL = 16


class Feature(IntFlag):
    """What a side understands beyond the core; WELCOME carries what both do."""

    NONE = 0
    BUNDLE = 1
    TIME = 2
    FEEDS = 4
    GROUPS = 8
    STREAMS = 16


ALL_FEATURES: Final = (
    Feature.BUNDLE | Feature.TIME | Feature.FEEDS | Feature.GROUPS | Feature.STREAMS
)


class Credit(msgspec.Struct, frozen=True, gc=False):
    """The window: how much the peer may have unacknowledged. No messages: pause."""

    messages: int
    bytes: int


DEFAULT_WINDOW: Final = Credit(64, 2**20)
"""For a peer that names none: a busy second on a mobile link, and one body of the largest size."""


class Hello(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """The device's first word: who it is, what it holds, what it can do."""

    app: str
    device: str
    token: str | None = None
    features: int = 0
    incarnation: bytes | None = None
    """8 bytes; together with `epoch` names the numbering that the counts below belong to."""
    epoch: int | None = None
    received: int = 0
    delivered: int = 0
    individual: Ranges = ()
    dropped: Ranges = ()
    """Numbers that were let go as too late, as far as the gateway may not know of them."""
    accept: tuple[str, ...] = ()
    time: int | None = None
    window: Credit | None = None
    preserve: int | None = None
    max_frame: int = DEFAULT_MAX_FRAME
    link: str | None = None
    network: str | None = None
    heartbeat: int | None = None
    assigned: int | None = None
    """How many numbers the device has given out, if the gateway may not have all of them: what
    it says in them it said before this HELLO."""
    storage: int | None = None
    """How many unread messages of a ranked topic the device keeps; None: as many as there are."""
    join: bool = False
    """The channel is one more beside those that are open, and replaces none."""
    probe: bool = False
    """The channel is there to see how long it lives; it carries heartbeats and nothing else."""
    lowest: int = VERSION
    highest: int = VERSION


class Welcome(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """The gateway's answer: the numbering that holds, and the terms of the channel."""

    incarnation: bytes
    epoch: int
    resumed: bool = False
    superseded: int | None = None
    received: int = 0
    individual: Ranges = ()
    closed: int = 0
    features: int = 0
    accept: tuple[str, ...] = ()
    time: int | None = None
    peer_time: int | None = None
    window: Credit | None = None
    preserve: int | None = None
    max_frame: int = DEFAULT_MAX_FRAME
    heartbeat: int | None = None
    found: int | None = None
    """Seconds of silence that other devices have found to work on this network."""
    joined: bool = False
    """Nothing is sent again, and the other channels stay."""
    version: int = VERSION


class Close(msgspec.Struct, frozen=True, gc=False):
    """The last word on a channel. `code` is a CloseCode, unless the peer is newer than we are."""

    code: int
    retry_after_ms: int = 0
    reason: str = ""


class Headers(msgspec.Struct, frozen=True, gc=False):
    """What is said of a body. A message with nothing but defaults has None instead."""

    content_type: str | None = None
    """None: the type that the receiver likes best; see `accept`."""
    priority: int = DEFAULT_PRIORITY
    deliver_within: int | None = None
    """Milliseconds from the key's time (without a key: from arrival) to deliver_before."""
    in_reply_to: int | None = None
    reply_within: int | None = None
    """Milliseconds from the key's time until an answer is of no more use."""
    operation: int = 0
    """An Operation, or a number that we do not know and answer with an error."""
    handling: Handling = Handling.FOREGROUND
    reliability: Reliability = Reliability.EXACTLY_ONCE
    title: str | None = None
    rank: float = 0.0
    source: str | None = None
    to: str | None = None
    redelivered: bool = False
    extra: tuple[tuple[str, str], ...] = ()
    queue: str | None = None
    correlation: int | None = None
    """In a request from a device: the key under which that device knows it; an answer echoes it."""
    keep: bool = False
    """Of a ranked topic: not to be shown before a FEED message or a read without contact says
    so."""
    answer: bool = False
    """It answers a request that wanted one: whoever does not wait for it lets it go."""
    gather: bool = False
    """Of a request: many may answer it, and its sender wants to know who was asked."""
    binding: Binding = Binding.NONE
    """Of a group: not to be shown (ATOMIC), or not to be acted on (CLAIM), before a DECISION says
    so."""
    group: str | None = None
    """The group that it was sent to."""
    ahead: int | None = None
    """The body came ahead in pieces, so many bytes, under the message's key."""
    pull: int | None = None
    """The body, so many bytes, stays with the gateway until a PULL asks for it."""
    stream: bool = False
    """The message opens a stream, whose pieces have its key."""
    tolerance: int | None = None
    """Milliseconds that a message of a device may wait for a better link or moment."""


HEADER_TAGS: Final = (
    (1, "content_type", "TEXT"),
    (2, "priority", "PRIORITY"),
    (3, "deliver_within", "NUMBER"),
    (4, "in_reply_to", "NUMBER"),
    (5, "reply_within", "NUMBER"),
    (6, "operation", "OPERATION"),
    (7, "handling", "HANDLING"),
    (8, "reliability", "RELIABILITY"),
    (9, "title", "TEXT"),
    (10, "rank", "DOUBLE"),
    (11, "source", "TEXT"),
    (12, "to", "TEXT"),
    (13, "redelivered", "MARK"),
    (14, "extra", "PAIRS"),
    (15, "queue", "TEXT"),
    (16, "correlation", "NUMBER"),
    (17, "keep", "MARK"),
    (18, "binding", "BINDING"),
    (19, "group", "TEXT"),
    (21, "answer", "MARK"),
    (22, "gather", "MARK"),
    (23, "ahead", "NUMBER"),
    (24, "pull", "NUMBER"),
    (25, "stream", "MARK"),
    (26, "tolerance", "NUMBER"),
)
"""The row of each header in the specification: its tag, its name, and the type of its value, which
is a name in `wire.hop.kinds`. A header at its default is not sent."""


class MessageFrame(msgspec.Struct, frozen=True, gc=False):
    """A message on the hop. Without `seq` it is best effort: not numbered, not acknowledged."""

    seq: int | None
    key: int | None
    topic: str | None = None
    headers: Headers | None = None
    body: bytes = b""


class Ack(msgspec.Struct, frozen=True, gc=False):
    """How far numbers have come, as absolute counts, and what arrived beyond a gap."""

    received: int
    delivered: int
    individual: Ranges = ()


class Skip(msgspec.Struct, frozen=True, gc=False):
    """These numbers are closed: their messages expired or were cancelled in flight."""

    first: int
    count: int = 1


class Dropped(msgspec.Struct, frozen=True, gc=False):
    """The application will never have these numbers: they came, or came to their turn, too late.

    Said before the acknowledgement that covers them.
    """

    ranges: Ranges


class Piece(msgspec.Struct, frozen=True, gc=False):
    """Some bytes of a transfer. Without any it asks how far the receiver is."""

    transfer: int
    """The key of the message whose body it is, or that opened the stream."""
    offset: int
    body: bytes = b""
    stream: bool = False


class Taken(msgspec.Struct, frozen=True, gc=False):
    """The receiver of a transfer has every byte below `offset`, durably, and takes those below
    `limit`."""

    transfer: int
    offset: int
    limit: int


class EndStatus(IntEnum):
    """How a transfer ends, and who says so."""

    COMPLETE = 0
    """The sender: there are `size` bytes, with this checksum."""
    ABORTED = 1
    """The sender: there will be no more."""
    STOPPED = 2
    """The receiver: it wants no more. The sender answers with its own end."""
    CONFIRMED = 3
    """The receiver: it is over, and the sender may forget it."""


class Ending(msgspec.Struct, frozen=True, gc=False):
    """The end of a transfer. `status` is an EndStatus."""

    transfer: int
    status: int
    size: int = 0
    checksum: int = 0
    """CRC-32 of all bytes, as zlib computes it."""
    reason: str = ""
    stream: bool = False


class Ping(msgspec.Struct, frozen=True, gc=False):
    """Are you there?"""


class Pong(msgspec.Struct, frozen=True, gc=False):
    """I am."""


class Wanted(msgspec.Struct, frozen=True, gc=False):
    """The device would do well to open one of these links, the best first: messages wait for it."""

    links: tuple[str, ...]


class Time(msgspec.Struct, frozen=True, gc=False):
    """The sender's clock, and what it believes the receiver's to be, in milliseconds."""

    own: int
    peer: int


Frame: TypeAlias = (
    MessageFrame
    | Ack
    | Skip
    | Dropped
    | Credit
    | Ping
    | Pong
    | Time
    | Wanted
    | Piece
    | Taken
    | Ending
    | Close
    | Hello
    | Welcome
)
