"""The part of the session for streams, and for bodies that are sent in pieces: passes frames to
them, sends their frames, and joins bodies to their messages."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from lasthop.clock import Micros
from lasthop.device.change import Change, FlowState, InboxContents
from lasthop.device.message import Message
from lasthop.device.outgoing import Outgoing
from lasthop.device.part import DevicePart
from lasthop.device.pieces.device_transfers import DeviceTransfers
from lasthop.device.pieces.outgoing_bodies import OutgoingBodies
from lasthop.device.pieces.transfer_book import TransferBook
from lasthop.device.session_core import SessionCore
from lasthop.device.session_events import Fetched, SessionEvent, StreamStirred
from lasthop.wire.hop.frames import (
    Ending,
    Feature,
    Frame,
    Headers,
    Hello,
    MessageFrame,
    Operation,
    Piece,
    Taken,
    Welcome,
)


class PiecePart(DevicePart):
    """Everything that a device sends and receives in pieces."""

    def __init__(self, core: SessionCore, held: InboxContents) -> None:
        self._core = core
        self._arrivals = core.arrivals
        self._book = TransferBook(core.mark)
        self._outgoing_bodies = OutgoingBodies(core.terms, core.outbox, self._book)
        self.transfers = DeviceTransfers(core.terms, held, self._book, self._outgoing_bodies)
        self.bodies = self.transfers.bodies
        self.incoming = self.transfers.incoming
        self.outgoing = self.transfers.outgoing

    # The application.

    def open_stream(self, now: Micros, headers: Headers) -> int:
        """Open a stream of this device; return its key."""
        key = self._core.queue(now, headers=headers)
        state = FlowState(
            target=headers.to or "",
            content_type=headers.content_type,
            title=headers.title,
            priority=headers.priority,
            queue=headers.queue,
        )
        self.outgoing.open(key, state)
        return key

    def pull(self, key: int, now: Micros) -> bytes | None:
        """Return the body of a message that was left at the gateway, if this device already has it.
        Otherwise ask the gateway for the body, and return None; a `Fetched` event has the
        result."""
        body = self.bodies.pull(key)
        if body is None:
            self._core.queue(now, headers=Headers(operation=Operation.PULL, in_reply_to=key))
        return body

    # What comes in.

    def frames_taken(self) -> Mapping[type[Frame], Callable[[Any, Micros], None]]:
        return {Piece: self._piece, Taken: self._taken, Ending: self._ending}

    def _piece(self, piece: Piece, now: Micros) -> None:
        self.transfers.piece(piece, known=self._arrivals.knows(piece.transfer))

    def _taken(self, taken: Taken, now: Micros) -> None:
        self.transfers.taken(taken)

    def _ending(self, ending: Ending, now: Micros) -> None:
        self.transfers.ending(ending)

    def whole(self, frame: MessageFrame, headers: Headers) -> MessageFrame | None:
        """Return a message with its body, and open the stream that it announces."""
        if headers.stream and frame.key is not None and not self._arrivals.knows(frame.key):
            self.incoming.open(frame.key)
        if headers.ahead is None:
            return frame
        known = frame.seq is not None and self._arrivals.has(frame.seq, frame.lane)
        return self.bodies.claim(frame, headers, known=known)

    def ended(self, message: Message, *, had: bool) -> None:
        headers = message.frame.headers
        if headers is None:
            return
        if had and headers.pull is not None:
            self.bodies.forget(message.key)
        elif headers.stream and not had:
            self.incoming.stop(message.key, "the message that opened the stream came too late")

    # The channel.

    def welcomed(self, hello: Hello, welcome: Welcome, now: Micros) -> None:
        self.transfers.again(alone=True)
        self._outgoing_bodies.welcomed(taken=bool(welcome.features & Feature.STREAMS))

    def joined(self) -> None:
        self.outgoing.alone = False  # Reports on different channels may overtake one another.

    def rerouted(self, channel: int) -> None:
        self.transfers.again()

    # What goes out.

    def accepted(self, items: list[Outgoing], now: Micros) -> None:
        self.outgoing.announce(item.key for item in items)

    def refused(self, key: int) -> None:
        self.outgoing.refuse(key)

    def frames(self, *, room: bool, piece: bool) -> list[Frame]:
        if not self._outgoing_bodies.taken:
            return []
        frames = self.transfers.frames()
        order = self._core.outbox.order
        if piece and room and not order.more:
            next_piece = order.next_piece(self.transfers)
            if next_piece is not None:
                frames.append(next_piece)
        return frames

    # What has to survive.

    def collect(self, change: Change) -> None:
        self._book.collect(change)

    def committed(self, n: int) -> None:
        self._book.committed(n)

    def restored(self) -> None:
        self._outgoing_bodies.restored()

    def session_events(self) -> list[SessionEvent]:
        session_events: list[SessionEvent] = [Fetched(*fetched) for fetched in self.bodies.fetched]
        session_events += [StreamStirred(key) for key in dict.fromkeys(self._book.stirred)]
        self.bodies.fetched, self._book.stirred = [], []
        return session_events
