"""What the core asks its driver to do. Drivers carry effects out in order; the core never waits for
them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from lasthop.core.lifecycle import State
from lasthop.delivery.carrier import Parcel
from lasthop.message import Message
from lasthop.surrogate.mail import Mail
from lasthop.wire.hop.frames import CloseCode, Frame, Piece
from lasthop.wire.pap.documents import Document


@dataclass(frozen=True, slots=True)
class Send:
    """Hand frames to a channel. Everything that the frames depend on is durable."""

    channel: int
    frames: list[Frame]


@dataclass(frozen=True, slots=True)
class SendPiece:
    """Hand a piece to a channel, and call `channel_drained` when the piece has left the unsent
    buffer. The next piece does not leave before, so that a message in between waits for one piece
    at most."""

    channel: int
    piece: Piece


@dataclass(frozen=True, slots=True)
class SentElsewhere:
    """Let the flow control of a channel know of acknowledgements that the device got over another
    of its channels."""

    channel: int
    frames: list[Frame]


@dataclass(frozen=True, slots=True)
class CloseChannel:
    """Send a CLOSE frame with the reason, and close a channel."""

    channel: int
    code: CloseCode
    reason: str
    retry_after_ms: int = 0


@dataclass(frozen=True, slots=True)
class Fetch:
    """Read messages from the store and hand them back by `fetched`."""

    keys: list[int]


@dataclass(frozen=True, slots=True)
class Recall:
    """Read messages from the store for a device, find out of which of them it has or had a
    delivery, and hand both back by `recalled`."""

    device: int
    keys: list[int]


@dataclass(frozen=True, slots=True)
class Appeared:
    """A message has durably appeared in a topic that somebody listens to."""

    app: str
    topic: str
    key: int
    place: int
    """The message's place in the history of its topic; 0 if the topic does not remember it."""
    message: Message | None
    """The message, if it is in memory with its body; otherwise it has to be read from the store."""


@dataclass(frozen=True, slots=True)
class Carry:
    """Give a parcel to the carrier of its route, and report the result by `carried`, once."""

    message: int
    device: int
    parcel: Parcel


@dataclass(frozen=True, slots=True)
class Notify:
    """Notify an initiator of the outcome of a push at one address, with the device's answer if
    there is one, and hand the initiator's response back by `notified`, once."""

    message: int
    place: int
    url: str
    document: Document
    reply: int


@dataclass(frozen=True, slots=True)
class Changed:
    """A delivery of a watched message has changed its state, durably; `reply` is the key of a new
    answer."""

    message: int
    device: int
    state: State | None
    reply: int = 0


@dataclass(frozen=True, slots=True)
class Consult:
    """Ask an app's surrogate about mails, one after the other, and hand each verdict back by
    `consulted`; or report by `consult_failed` the first mail that got no verdict, and leave out the
    rest."""

    app: str
    mails: list[Mail]


@dataclass(frozen=True, slots=True)
class MatchFilters:
    """Match a body that may take long to read with the filters of its app, and hand the result back
    by `filters_matched`, once. One such effect is open at a time."""

    message: int
    app: str
    content_type: str
    body: bytes
    changes: Mapping[tuple[str, str], bool] | None
    """By app and expression, whether the expression was added (True) or removed (False) since the
    last such effect; None with the first effect, when all of `Filters.expressions` are new."""


Effect: TypeAlias = (
    Send
    | SendPiece
    | SentElsewhere
    | CloseChannel
    | Fetch
    | Recall
    | Appeared
    | Carry
    | Notify
    | Changed
    | Consult
    | MatchFilters
)
