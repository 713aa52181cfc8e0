"""Bodies and streams in pieces, as a feature of the gateway."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from lasthop.clock import Micros
from lasthop.core.delivery import Item
from lasthop.core.feature import Arrival, CoreFeature, Operate
from lasthop.core.pieces.bodies import Bodies
from lasthop.core.pieces.pump import PiecePump
from lasthop.core.pieces.streams import Streams
from lasthop.core.pieces.uploads import Uploads
from lasthop.core.publishing.submission import Submission
from lasthop.core.session import Session
from lasthop.core.spine import Spine
from lasthop.errors import InvalidRequest
from lasthop.message import DEFAULT_CONTENT_TYPE, Message
from lasthop.store.commit import Restored
from lasthop.store.streams import StreamsRestored
from lasthop.wire.hop.frames import (
    Ending,
    Frame,
    Headers,
    MessageFrame,
    Operation,
    Piece,
    Taken,
)


class PieceFeature(CoreFeature):
    """Bodies and streams that travel in pieces, in both directions."""

    def __init__(self, spine: Spine) -> None:
        deliveries = spine.deliveries
        self._contacts = spine.contacts
        self._segment = deliveries.limits.segment
        self._pump = PiecePump(deliveries)
        self._bodies = Bodies(deliveries, self._pump, spine.dispatcher)
        self._pump.wanted = self._bodies.wanted
        self._uploads = Uploads(deliveries, self._pump)
        self.streams = Streams(deliveries, spine.acceptance, self._pump, self._uploads)

    def operations(self) -> Mapping[int, Operate]:
        return {Operation.PULL: self._pull}

    def frames(self) -> Mapping[type[Frame], Callable[[Session, Any, Micros], None]]:
        return {
            Piece: self._pump.piece,
            Taken: self._pump.taken,
            Ending: self._pump.ending,
        }

    def _pull(self, session: Session, frame: MessageFrame, headers: Headers, now: Micros) -> None:
        self._bodies.pull(session, headers.in_reply_to)

    def owned(self, item: Item) -> None:
        if item.size > self._segment or item.message.pull:
            self._bodies.attach(item)

    def intake(self, arrival: Arrival, now: Micros) -> bool:
        """Open the stream that a message asks for, which no other feature sees; or add the body
        that came ahead to its message."""
        headers, session = arrival.headers, arrival.session
        if headers.stream and not arrival.answers_to:
            self._open_stream(arrival, now)
            return True
        if headers.ahead is not None:
            body = self._uploads.claim(session, arrival.frame.key, headers.ahead)
            arrival.submission.body = body
        return False

    def _open_stream(self, arrival: Arrival, now: Micros) -> None:
        frame, headers, device = arrival.frame, arrival.headers, arrival.session.device
        if frame.key is None:
            raise InvalidRequest("a stream needs a key")
        submission = Submission(
            target=arrival.submission.target,
            content_type=headers.content_type or DEFAULT_CONTENT_TYPE,
            title=headers.title,
            priority=headers.priority,
            handling=headers.handling,
            headers=headers.extra,
        )
        self.streams.open(
            device.app,
            f"device:{device.name}",
            submission,
            now,
            sender=arrival.session,
            theirs=frame.key,
        )

    def greeted(self, session: Session, now: Micros, *, joined: bool) -> None:
        if joined:
            self._pump.joined(session)
        else:
            self._pump.again(session, alone=True)

    def channel_gone(self, session: Session) -> None:
        self._pump.again(session)

    def drained(self, channel: int, now: Micros) -> None:
        """Handle the driver's report on a `SendPiece` effect: the piece has left the channel's
        unsent buffer."""
        found = self._contacts.find(channel)
        if found is not None:
            self._pump.drained(*found, now)

    def removed(self, session: Session, now: Micros) -> None:
        self.streams.removed(session, now)
        self._pump.removed(session)

    def fetched(self, messages: Mapping[int, Message], now: Micros) -> None:
        self._bodies.fetched(messages)

    def finish(self, now: Micros) -> None:
        self.streams.finish(now)

    def restore(self, restored: Restored, now: Micros) -> None:
        self.streams.restored = restored.of(StreamsRestored)
