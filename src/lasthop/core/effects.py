"""What the core wants done. Drivers carry effects out in order; core never waits for them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from lasthop.core.lifecycle import State
from lasthop.delivery.carrier import Parcel
from lasthop.surrogate.mail import Mail
from lasthop.wire.hop.frames import CloseCode, Frame, Piece
from lasthop.wire.pap.documents import Document


@dataclass(frozen=True, slots=True)
class Send:
    """Hand frames to a channel. Everything that they depend on is durable."""

    channel: int
    frames: list[Frame]


@dataclass(frozen=True, slots=True)
class SendPiece:
    """Hand a piece to a channel, and say by `channel_drained` when it has left the unsent buffer:
    the next one does not leave before, so that a message in between waits for this one at most."""

    channel: int
    piece: Piece


@dataclass(frozen=True, slots=True)
class SentElsewhere:
    """The device was told this over another of its channels: this one's memory moves on too."""

    channel: int
    frames: list[Frame]


@dataclass(frozen=True, slots=True)
class CloseChannel:
    """Say why, and close a channel."""

    channel: int
    code: CloseCode
    reason: str
    retry_after_ms: int = 0


@dataclass(frozen=True, slots=True)
class Fetch:
    """Read these messages from the store and hand them back by `fetched`."""

    keys: list[int]


@dataclass(frozen=True, slots=True)
class Carry:
    """Give a parcel to the carrier of its route, and say what became of it by `carried`, once."""

    message: int
    device: int
    parcel: Parcel


@dataclass(frozen=True, slots=True)
class Notify:
    """Tell an initiator what became of a push at one address, with the device's answer if there is
    one, and hand what it said back by `notified`, once."""

    message: int
    place: int
    url: str
    document: Document
    reply: int


@dataclass(frozen=True, slots=True)
class Changed:
    """A delivery of a watched message stands somewhere else now, durably; `reply` is a new answer's
    key."""

    message: int
    device: int
    state: State | None
    reply: int = 0


@dataclass(frozen=True, slots=True)
class Consult:
    """Ask an app's surrogate about these, one after the other, and hand every verdict back by
    `consulted`; or say `consult_failed` of the first that came to nothing, and leave the rest."""

    app: str
    mails: list[Mail]


@dataclass(frozen=True, slots=True)
class MatchFilters:
    """Read a body that may take long, match it with the filters of its app, and hand what came of
    it back by `filters_matched`, once. One such effect is open at a time."""

    message: int
    app: str
    content_type: str
    body: bytes
    changes: Mapping[tuple[str, str], bool] | None
    """By app and expression, what has come (or else gone) since the last such effect; None with
    the first: then all of `Filters.expressions` are new."""


Effect: TypeAlias = (
    Send
    | SendPiece
    | SentElsewhere
    | CloseChannel
    | Fetch
    | Carry
    | Notify
    | Changed
    | Consult
    | MatchFilters
)
