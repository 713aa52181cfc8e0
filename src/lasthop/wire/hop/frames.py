"""The frames of the hop protocol, one value class each.

The codec makes frames of bytes, and the rest of lasthop works with frames; they hold absolute
numbers, whatever shorthand the wire uses. Their bytes are described in docs/hop-protocol.md.
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
"""Content type of the answer to a device that gathers, which names the devices that were asked."""

FEED_TYPE: Final = "application/vnd.lasthop.feed"
"""Content type of a FEED body outside the hop; on the hop its operation says what it is."""

DECISION_TYPE: Final = "application/vnd.lasthop.decision"
"""The content type of a DECISION body outside the hop protocol. On the hop no content type is sent,
because the operation of the frame says what the body is."""

DEFAULT_MAX_FRAME: Final = 2**20 + 2**10
"""The largest number of bytes in a frame unless a peer says otherwise: a body of 1 MiB, the
gateway's own limit, and room for headers."""

MIN_MAX_FRAME: Final = 2**13
"""The lowest limit of frames that a peer may set: the largest ACK still fits."""

MAX_HANDSHAKE: Final = 2**14
"""The largest number of bytes in HELLO or WELCOME, which bounds what an unknown peer can make us
buffer: a token, an accept list and 256 ranges fit easily."""

MAX_RANGES: Final = 256
"""The largest number of ranges in one ACK, which bounds the work of its receiver. If there are more
gaps, the sender does better to send again."""

MAX_LANES: Final = 64
"""The largest number of lanes that may be open in one direction, beside lane 0: more than a device
has queues, and little enough for a HELLO to name them all."""

MAX_TOPIC: Final = 512
"""The largest number of bytes in a topic. A channel remembers up to 255 topics for its tokens: with
this limit at most 128 KiB."""

MAX_WAYS: Final = 16
"""The largest number of ways that a gateway tells a device."""

MAX_WAY: Final = 512
"""The largest number of bytes in the URL of a way that a gateway tells."""

MAX_LIST: Final = 64
"""The largest number of entries of an accept list or of free headers."""

Ranges: TypeAlias = tuple[tuple[int, int], ...]
"""Numbers as half-open ranges (start, stop), ascending, with gaps between them."""


class CloseCode(IntEnum):
    """The reasons for which a channel ends; docs/hop-protocol.md, "Closing", says for each who is
    at fault and what to do."""

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
    MOVED = 13


class Operation(IntEnum):
    """What a message asks of its receiver (docs/hop-protocol.md, "Messages")."""

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
    """Optional parts of the protocol that a side understands; WELCOME has those that both do."""

    NONE = 0
    BUNDLE = 1
    TIME = 2
    FEEDS = 4
    GROUPS = 8
    STREAMS = 16
    CHECKSUMS = 32
    LANES = 64
    """Several lanes in a session. Neither side offers it yet."""


ALL_FEATURES: Final = (
    Feature.BUNDLE | Feature.TIME | Feature.FEEDS | Feature.GROUPS | Feature.STREAMS
)
"""What a device understands over any link; it offers `CHECKSUMS` beside them where there is no
TLS."""


class Credit(msgspec.Struct, frozen=True, gc=False):
    """A window: how much the peer may have unacknowledged. Zero messages means a pause."""

    messages: int
    bytes: int


DEFAULT_WINDOW: Final = Credit(64, 2**20)
"""The window of a peer that names none: a busy second on a mobile link, and one body of the largest
size."""


class LaneClaim(msgspec.Struct, frozen=True, gc=False):
    """What a receiver has of one lane; a WELCOME does not say what was delivered."""

    lane: int
    received: int = 0
    delivered: int = 0
    individual: Ranges = ()
    finished: Ranges = ()
    """Of an unordered lane: the ranges that were delivered beyond the delivered count."""


class LaneClaims(msgspec.Struct, frozen=True, gc=False):
    """What a receiver knows of the peer's lanes beside lane 0."""

    seen: int
    """One more than the largest lane number that the receiver knows, closed lanes included; lane
    numbers start at 1."""
    lanes: tuple[LaneClaim, ...] = ()
    """Every lane with a number below `seen` that is not closed, in ascending order."""


class Hello(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """The first frame of a device: its identity, the numbers that it holds, and its abilities."""

    app: str
    device: str
    token: str | None = None
    features: int = 0
    incarnation: bytes | None = None
    """The incarnation, 8 bytes; with `epoch` it names the numbering that the counts belong to."""
    epoch: int | None = None
    received: int = 0
    delivered: int = 0
    individual: Ranges = ()
    dropped: Ranges = ()
    """Numbers that the device dropped as too late and whose DROPPED the gateway may not have
    received."""
    accept: tuple[str, ...] = ()
    time: int | None = None
    window: Credit | None = None
    preserve: int | None = None
    max_frame: int = DEFAULT_MAX_FRAME
    link: str | None = None
    network: str | None = None
    heartbeat: int | None = None
    assigned: int | None = None
    """How many numbers the device has assigned, if the gateway may lack some of them: their
    messages are older than this HELLO."""
    storage: int | None = None
    """How many unread messages of one ranked topic the device keeps; None means no limit."""
    join: bool = False
    """Whether this channel joins those that are open instead of replacing them."""
    probe: bool = False
    """Whether this channel only tests how long it survives silence; it carries nothing but
    heartbeats."""
    lanes: LaneClaims | None = None
    """What the device knows of the gateway's lanes; None if it knows of none."""
    lane_dropped: tuple[tuple[int, Ranges], ...] = ()
    """By lane, what `dropped` is for lane 0."""
    sending: tuple[int, ...] = ()
    """The lanes that the device has open; the gateway closes all others."""
    lowest: int = VERSION
    highest: int = VERSION


class Welcome(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """The gateway's answer to HELLO: the epoch that applies, and the terms of the channel."""

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
    """Seconds of silence that a connection survived on this network, as other devices found out."""
    joined: bool = False
    """Whether `join` was granted: the other channels stay, and nothing is sent again."""
    lanes: LaneClaims | None = None
    """What the gateway knows of the device's lanes; None if it knows of none."""
    lane_closed: tuple[tuple[int, int], ...] = ()
    """By lane, what `closed` is for lane 0."""
    sending: tuple[int, ...] = ()
    """The lanes that the gateway has open; the device closes all others."""
    lane_superseded: tuple[tuple[int, int, Ranges], ...] = ()
    """By lane, what `superseded` is for lane 0; of a lane without order the ranges beyond that
    count too."""
    version: int = VERSION


class Close(msgspec.Struct, frozen=True, gc=False):
    """The last frame on a channel. `code` is a CloseCode, or an unknown number from a newer
    peer."""

    code: int
    retry_after_ms: int = 0
    reason: str = ""


class Headers(msgspec.Struct, frozen=True, gc=False):
    """The headers of a message. A message with nothing but defaults has None instead."""

    content_type: str | None = None
    """The content type; None means the type that the receiver prefers, see `accept`."""
    priority: int = DEFAULT_PRIORITY
    deliver_within: int | None = None
    """Milliseconds from the key's time (without a key: from arrival) until the delivery's
    deadline."""
    in_reply_to: int | None = None
    reply_within: int | None = None
    """Milliseconds from the key's time until which an answer is of use."""
    operation: int = 0
    """An Operation, or an unknown number, which is refused by an error reply."""
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
    """In a request from a device: the key by which that device knows the request; an answer repeats
    it."""
    keep: bool = False
    """Whether to keep a message of a ranked topic unseen until a FEED message or a read without
    contact shows it."""
    answer: bool = False
    """Whether the message answers a request; a device that no longer waits for the answer drops
    it."""
    gather: bool = False
    """Whether many may answer this request and the sender wants to know which devices were
    asked."""
    binding: Binding = Binding.NONE
    """How a message binds a group: not to be shown (ATOMIC), or not to be acted on (CLAIM), before
    a DECISION says so."""
    group: str | None = None
    """The group that the message was sent to."""
    ahead: int | None = None
    """The size of the body in bytes, which came ahead in pieces under the message's key."""
    pull: int | None = None
    """The size of the body in bytes, which stays with the gateway until a PULL asks for it."""
    stream: bool = False
    """Whether the message opens a stream, whose pieces have the message's key."""
    tolerance: int | None = None
    """Milliseconds that a message from a device may wait for a better link or moment."""
    immediate: bool = False
    """Whether a message from a device is only for those who can be reached at once."""


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
    (27, "immediate", "MARK"),
)
"""The row of each header in docs/hop-protocol.md: its tag, its name and the type of its value,
which is a name in `wire.hop.kinds`. A header at its default is not sent."""


class MessageFrame(msgspec.Struct, frozen=True, gc=False):
    """A message on the hop. Without `seq` the message is best effort: not numbered, not
    acknowledged."""

    seq: int | None
    key: int | None
    topic: str | None = None
    headers: Headers | None = None
    body: bytes = b""
    lane: int = 0


class Ack(msgspec.Struct, frozen=True, gc=False):
    """An acknowledgement: received and delivered as absolute counts, and the ranges received beyond
    a gap."""

    received: int
    delivered: int
    individual: Ranges = ()
    finished: Ranges = ()
    """Of an unordered lane: the ranges that were delivered beyond the delivered count."""


class Skip(msgspec.Struct, frozen=True, gc=False):
    """Says that the receiver need not wait for these numbers: their messages expired or were
    cancelled in flight."""

    first: int
    count: int = 1


class Dropped(msgspec.Struct, frozen=True, gc=False):
    """Says that the application will never get these numbers: they arrived, or their turn came, too
    late.

    A DROPPED precedes the acknowledgement that covers its numbers.
    """

    ranges: Ranges


class Last(msgspec.Struct, frozen=True, gc=False):
    """Says that a lane closes: this number is its last, and no message has it."""

    number: int


class LaneFrame(msgspec.Struct, frozen=True, gc=False):
    """A frame about the numbers of a lane other than lane 0."""

    lane: int
    frame: Ack | Skip | Credit | Dropped | Last


class Piece(msgspec.Struct, frozen=True, gc=False):
    """Some bytes of a transfer. A piece without bytes asks how far the receiver is."""

    transfer: int
    """The key of the message whose body this is, or of the message that opened the stream."""
    offset: int
    body: bytes = b""
    stream: bool = False


class Taken(msgspec.Struct, frozen=True, gc=False):
    """Says that the receiver of a transfer has every byte below `offset`, durably, and accepts
    those below `limit`."""

    transfer: int
    offset: int
    limit: int


class EndStatus(IntEnum):
    """How a transfer ends, and which side says so."""

    COMPLETE = 0
    """From the sender: the transfer is complete, with `size` bytes and this checksum."""
    ABORTED = 1
    """From the sender: no more bytes will come."""
    STOPPED = 2
    """From the receiver: it wants no more bytes. The sender answers with its own end."""
    CONFIRMED = 3
    """From the receiver: the transfer is over, and the sender may forget it."""


class Ending(msgspec.Struct, frozen=True, gc=False):
    """The end of a transfer. `status` is an EndStatus."""

    transfer: int
    status: int
    size: int = 0
    checksum: int = 0
    """CRC-32 of all bytes of the transfer, as zlib computes it."""
    reason: str = ""
    stream: bool = False


class Ping(msgspec.Struct, frozen=True, gc=False):
    """The device's question whether the gateway still answers on this channel."""


class Pong(msgspec.Struct, frozen=True, gc=False):
    """The gateway's answer to a PING."""


class Wanted(msgspec.Struct, frozen=True, gc=False):
    """Asks the device to open one of these links, the best first, because messages wait for it."""

    links: tuple[str, ...]


class OtherWays(msgspec.Struct, frozen=True, gc=False):
    """Tells the device other ways to the gateway, each a link (empty if it does not matter) and a
    URL; they replace those that were told before."""

    ways: tuple[tuple[str, str], ...]


class Time(msgspec.Struct, frozen=True, gc=False):
    """The sender's clock, and its estimate of the receiver's clock, in milliseconds."""

    own: int
    peer: int


Frame: TypeAlias = (
    MessageFrame
    | Ack
    | Skip
    | Dropped
    | LaneFrame
    | Credit
    | Ping
    | Pong
    | Time
    | Wanted
    | OtherWays
    | Piece
    | Taken
    | Ending
    | Close
    | Hello
    | Welcome
)
