"""The data that a device's session stores, and gets back after a restart.

A `Change` is one commit of the inbox: all of it or nothing. Everything in it is plain data, so that
an inbox needs to know nothing of the protocol.
"""

from __future__ import annotations

import msgspec

from lasthop.clock import Micros
from lasthop.message import DEFAULT_PRIORITY
from lasthop.wire.hop.frames import MessageFrame, Ranges

PREFERENCES, BUDGETS = "lasthop.wishes", "lasthop.budgets"
NOTES = (PREFERENCES, BUDGETS)
"""The names under which the inbox keeps the preferences for sending and the spending so far."""


class SessionNumbers(msgspec.Struct, frozen=True, array_like=True, kw_only=True):
    """The numbers of a session. New fields go to the end, with a default."""

    incarnation: bytes | None = None
    epoch: int | None = None
    base: int = 0
    """The position in the inbox of number 0 of this epoch."""
    received: int = 0
    delivered: int = 0
    dropped: Ranges = ()
    """Numbers of messages that were dropped because they were too late, and that the gateway may
    not know to be dropped."""
    offered: int = 0
    """The position below which messages may have been seen by the application."""
    assigned: int = 0
    """The count of numbers that were given to outgoing messages."""
    accepted: int = 0
    """The number of the first outgoing message that the gateway may not have; it has all before."""
    last_key: int = 0
    generation: int = 0
    """The number of the present generation of remembered keys: see `KeyMemory`."""
    skipped: Ranges = ()
    """Numbers above `received` that the gateway said it will not use."""
    before: int = 0
    """The position in lane 0 below which messages of earlier epochs stand: they come before those
    of all lanes."""
    seen_lanes: int = 1
    """One more than the largest number of a lane of the gateway that this device knows."""
    closed_lanes: Ranges = ()
    """The numbers of the gateway's lanes that are closed."""
    opened_lanes: int = 0
    """The number of lanes that this device has opened in this epoch."""


class InboxRow(msgspec.Struct, frozen=True, gc=False):
    """A received message that the application is not done with."""

    position: int
    number: int | None
    frame: MessageFrame
    default_type: str | None = None
    lane: int = 0
    """The lane in which the message has its position."""
    numbered_in: int = 0
    """The lane that its number belongs to; another one if the message came again in a new epoch."""


class OutboxRow(msgspec.Struct, frozen=True, gc=False):
    """A message that the gateway may not have, identified by the key of its frame."""

    number: int
    frame: MessageFrame
    lane: int = 0


class IncomingLaneNumbers(msgspec.Struct, frozen=True, array_like=True, kw_only=True):
    """The numbers of a lane in which messages come, other than lane 0: see `SessionNumbers`. New
    fields go to the end, with a default."""

    base: int = 0
    received: int = 0
    delivered: int = 0
    dropped: Ranges = ()
    offered: int = 0
    skipped: Ranges = ()
    """Numbers above `received` that are finished, or that the gateway said it will not use."""


class OutgoingLaneNumbers(msgspec.Struct, frozen=True, array_like=True, kw_only=True):
    """The numbers of a lane in which this device sends, other than lane 0, and which messages it
    carries. New fields go to the end, with a default."""

    queue: str | None = None
    priority: int = DEFAULT_PRIORITY
    assigned: int = 0
    accepted: int = 0
    last: int | None = None
    """The number of the lane's LAST, if the lane is being closed."""


class LaneRow(msgspec.Struct, frozen=True):
    """The stored numbers of a lane other than lane 0; without `numbers` the lane is forgotten."""

    incoming: bool
    id: int
    numbers: IncomingLaneNumbers | OutgoingLaneNumbers | None


class DeviceKeptRow(msgspec.Struct, frozen=True, gc=False):
    """An unread message of a ranked topic, or a message of an atomic group that must not be shown
    yet."""

    key: int
    rank: float
    frame: MessageFrame
    default_type: str


class DeviceFeedRow(msgspec.Struct, frozen=True):
    """The device's record of a ranked topic; `gone` if it is to be removed."""

    topic: str
    max: int | None = None
    gone: bool = False


class RequestRow(msgspec.Struct, frozen=True):
    """A request whose outcome goes to a named callback, also after a restart."""

    key: int
    deadline: Micros
    callback: str
    """The name of the application's callback for the outcome."""
    target: str
    lane: str = ""
    """The lane of the request: outcomes of one lane are handed over in the order of the requests.
    If empty, the outcome is handed over as soon as it comes."""


class DevicePieceRow(msgspec.Struct, frozen=True, gc=False):
    """Some bytes of a stream, or of a body that comes in pieces."""

    key: int
    incoming: bool
    offset: int
    body: bytes


class FlowState(msgspec.Struct, frozen=True, array_like=True):
    """The progress of a stream. New fields go to the end, with a default."""

    position: int = 0
    """Incoming: bytes that the application has read. Outgoing: bytes that it has written."""
    checksum: int = 0
    """Incoming: the checksum of the bytes that have come. Outgoing: of the bytes that were
    written."""
    size: int = -1
    """The size of the whole stream in bytes once it has ended; -1 before."""
    end_checksum: int = 0
    failed: bool = False
    reason: str = ""
    target: str = ""
    content_type: str | None = None
    title: str | None = None
    priority: int = DEFAULT_PRIORITY
    queue: str | None = None


class FlowRow(msgspec.Struct, frozen=True):
    """The stored progress of a stream; if `state` is None, the stream is over."""

    key: int
    incoming: bool
    state: FlowState | None


class Change(msgspec.Struct, kw_only=True):
    """All changes of one commit, to be carried out in the order of the fields."""

    n: int
    state: SessionNumbers
    detached: bool = False
    """Whether a new epoch began, so that no stored message has a number any more, and there is no
    lane but lane 0."""
    moved: list[tuple[int, int, int | None]] = []
    """Triples (lane, position, new position) of stored messages that move to lane 0, because a new
    epoch began; without a new position the message is finished."""
    stored: list[InboxRow] = []
    adopted: list[tuple[int, int, int, int | None]] = []
    """Lane, position, lane of the number, and number, of each stored message that came again in a
    new epoch with a new number."""
    removed: dict[int, list[int]] = {}
    """Positions, by lane, of messages that are finished: the application is done with them, or
    never gets them."""
    lanes: list[LaneRow] = []
    keys: list[int] = []
    """Keys of messages that the application is done with, to be remembered under the state's
    generation; keys of generations before the last one may be forgotten."""
    kept: list[DeviceKeptRow] = []
    """Messages to keep outside the inbox, in the order in which they came."""
    discarded: list[int] = []
    """Keys of messages that are no longer kept outside the inbox; carried out before `kept`."""
    reranked: list[tuple[int, float]] = []
    feeds: list[DeviceFeedRow] = []
    queued: list[OutboxRow] = []
    renumbered: list[tuple[int, int, int]] = []
    """Triples (key, lane, number) for stored outgoing messages whose number has changed."""
    taken: list[int] = []
    """Keys of outgoing messages that need not be stored any more."""
    requested: list[RequestRow] = []
    settled: list[int] = []
    """Keys of requests whose outcome the application is done with."""
    flows: list[FlowRow] = []
    pieces: list[DevicePieceRow] = []
    dropped_pieces: list[tuple[int, bool, int]] = []
    """Triples (key, incoming, offset): the stored pieces of this transfer that begin below the
    offset may be deleted."""
    notes: dict[str, bytes] = {}
    """Values that the session stores under names of its own; an empty value removes the name."""


class InboxContents(msgspec.Struct, kw_only=True):
    """Everything that an inbox has stored: rows in ascending order, and the remembered keys of the
    last two generations."""

    state: SessionNumbers = SessionNumbers()
    inbox: list[InboxRow] = []
    lanes: list[LaneRow] = []
    """The lanes besides lane 0, of both directions, in ascending order of id."""
    outbox: list[OutboxRow] = []
    old_keys: list[int] = []
    young_keys: list[int] = []
    kept: list[DeviceKeptRow] = []
    """Messages kept outside the inbox, in the order in which they came."""
    feeds: list[DeviceFeedRow] = []
    requests: list[RequestRow] = []
    """Requests for named callbacks, in ascending order of key."""
    flows: list[FlowRow] = []
    pieces: list[DevicePieceRow] = []
    """Stored pieces, in ascending order of key and offset."""
    notes: dict[str, bytes] = {}
    """The session's own named values: those of `NOTES`."""
