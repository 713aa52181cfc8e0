"""What a device's session wants made durable, and what it gets back in its next life.

A `Change` is one commit of the inbox: all of it or nothing. Everything in it is plain, so that a
driver needs to know nothing of the protocol.
"""

from __future__ import annotations

import msgspec

from lasthop.clock import Micros
from lasthop.message import DEFAULT_PRIORITY
from lasthop.wire.hop.frames import MessageFrame, Ranges

PREFERENCES, BUDGETS = "lasthop.wishes", "lasthop.budgets"
NOTES = (PREFERENCES, BUDGETS)
"""Names under which the session keeps what it may spend on what it sends, and what it has spent."""


class SessionNumbers(msgspec.Struct, frozen=True, array_like=True, kw_only=True):
    """The session in numbers. New fields go to the end, with a default."""

    incarnation: bytes | None = None
    epoch: int | None = None
    base: int = 0
    """The position of number 0 of this epoch."""
    received: int = 0
    delivered: int = 0
    dropped: Ranges = ()
    """Numbers that were let go as too late, as far as the gateway may not know of them."""
    offered: int = 0
    """Messages at positions below may have been seen by the application."""
    assigned: int = 0
    """How many numbers were given out towards the gateway."""
    accepted: int = 0
    """How many of them the gateway is known to have."""
    last_key: int = 0
    generation: int = 0
    """Of the memory of keys."""
    skipped: Ranges = ()
    """Numbers above `received` that the gateway has closed."""


class InboxRow(msgspec.Struct, frozen=True, gc=False):
    """A message that the application has not dealt with."""

    position: int
    number: int | None
    frame: MessageFrame
    default_type: str | None = None


class OutboxRow(msgspec.Struct, frozen=True, gc=False):
    """A message that the gateway may not have. Its own key tells it apart."""

    number: int
    frame: MessageFrame


class DeviceKeptRow(msgspec.Struct, frozen=True, gc=False):
    """An unread message of a ranked topic."""

    key: int
    rank: float
    frame: MessageFrame
    default_type: str


class DeviceFeedRow(msgspec.Struct, frozen=True):
    """What the device knows of a ranked topic."""

    topic: str
    max: int | None = None
    gone: bool = False


class RequestRow(msgspec.Struct, frozen=True):
    """A request whose outcome is to be handed over in whatever life it comes."""

    key: int
    deadline: Micros
    callback: str
    """The name under which the application will take the outcome."""
    target: str
    lane: str = ""
    """Outcomes of one lane come in the order of the requests; without one, as they come."""


class DevicePieceRow(msgspec.Struct, frozen=True, gc=False):
    """Some bytes of a stream, or of a body that comes in pieces."""

    key: int
    incoming: bool
    offset: int
    body: bytes


class FlowState(msgspec.Struct, frozen=True, array_like=True):
    """How far a stream is. New fields go to the end, with a default."""

    position: int = 0
    """Incoming: what the application has had. Outgoing: what it has written."""
    checksum: int = 0
    """Incoming: of what has come. Outgoing: of what was written."""
    size: int = -1
    """Of the whole, once it has ended."""
    end_checksum: int = 0
    failed: bool = False
    reason: str = ""
    target: str = ""
    content_type: str | None = None
    title: str | None = None
    priority: int = DEFAULT_PRIORITY
    queue: str | None = None


class FlowRow(msgspec.Struct, frozen=True):
    """A stream; without a state it is over."""

    key: int
    incoming: bool
    state: FlowState | None


class Change(msgspec.Struct, kw_only=True):
    """One commit, to be carried out in the order of its fields."""

    n: int
    state: SessionNumbers
    detached: bool = False
    """A new epoch began: no stored message has a number any more."""
    stored: list[InboxRow] = []
    adopted: list[tuple[int, int]] = []
    """(position, number): known messages that came again in a new epoch."""
    removed: list[int] = []
    """Positions of messages that the application has had, or never will."""
    keys: list[int] = []
    """Keys of what it has had, to be remembered with the state's generation; those of
    generations before the last one may be forgotten."""
    kept: list[DeviceKeptRow] = []
    """Unread messages of ranked topics, in the order in which they came."""
    discarded: list[int] = []
    """Keys of those that are kept no longer. What is in `kept` came after that."""
    reranked: list[tuple[int, float]] = []
    feeds: list[DeviceFeedRow] = []
    queued: list[OutboxRow] = []
    renumbered: list[tuple[int, int]] = []
    """(key, number) of stored outgoing messages."""
    taken: list[int] = []
    """Keys of outgoing messages that need not be kept."""
    requested: list[RequestRow] = []
    settled: list[int] = []
    """Keys of requests whose outcome the application has had."""
    flows: list[FlowRow] = []
    pieces: list[DevicePieceRow] = []
    dropped_pieces: list[tuple[int, bool, int]] = []
    """(key, incoming, offset): pieces that begin below the offset need not be kept."""
    notes: dict[str, bytes] = {}
    """What the session keeps under names of its own; empty: not any more."""


class InboxContents(msgspec.Struct, kw_only=True):
    """What an inbox has kept: rows in ascending order, keys of the last two generations."""

    state: SessionNumbers = SessionNumbers()
    inbox: list[InboxRow] = []
    outbox: list[OutboxRow] = []
    old_keys: list[int] = []
    young_keys: list[int] = []
    kept: list[DeviceKeptRow] = []
    """In the order in which they came."""
    feeds: list[DeviceFeedRow] = []
    requests: list[RequestRow] = []
    """In ascending order of key."""
    flows: list[FlowRow] = []
    pieces: list[DevicePieceRow] = []
    """By key and offset."""
    notes: dict[str, bytes] = {}
    """Those of the session: `NOTES`."""
