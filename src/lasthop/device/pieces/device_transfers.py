"""All transfers of a device in both directions: passes each frame to its transfer, and chooses the
transfer that sends the next piece."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import groupby
from operator import attrgetter

from lasthop.device.change import InboxContents
from lasthop.device.outbox_order import Transferable
from lasthop.device.pieces.flows import Body, Inflow, OutgoingFlow
from lasthop.device.pieces.incoming_bodies import IncomingBodies
from lasthop.device.pieces.incoming_streams import IncomingStreams
from lasthop.device.pieces.outgoing_bodies import OutgoingBodies, OutgoingBody
from lasthop.device.pieces.outgoing_streams import OutgoingStreams
from lasthop.device.pieces.transfer_book import TransferBook
from lasthop.device.terms import DeviceTerms
from lasthop.wire.hop.frames import Ending, EndStatus, Frame, Piece, Taken
from lasthop.wire.hop.transfer import Pace, Sending

OVER = "it is over here"


class DeviceTransfers:
    """The transfers that are under way, in both directions."""

    def __init__(
        self, terms: DeviceTerms, held: InboxContents, book: TransferBook, bodies: OutgoingBodies
    ) -> None:
        self.book = book
        self.bodies = IncomingBodies(terms, book)
        self.incoming = IncomingStreams(terms, book)
        self.outgoing = OutgoingStreams(terms, book)
        self.outgoing_bodies = bodies
        self._step = terms.stream_window // 4
        """Bytes of a transfer after which the gateway is told how much has arrived."""
        self._turns = 0
        self.pace = Pace()
        self._restore(held)

    def _restore(self, held: InboxContents) -> None:
        announcing = {
            row.frame.key for row in held.outbox if row.frame.headers and row.frame.headers.stream
        }
        for row in held.flows:
            assert row.state is not None
            if row.incoming:
                self.incoming.restore(row.key, row.state)
            else:
                self.outgoing.restore(row.key, row.state, announced=row.key not in announcing)
        for (key, incoming), rows in groupby(held.pieces, key=attrgetter("key", "incoming")):
            flow: Body | Inflow | OutgoingFlow | None = (
                self.incoming.get(key) or self.bodies.body(key)
                if incoming
                else self.outgoing.get(key)
            )
            for piece in rows:
                if flow is not None:
                    flow.restore(piece)
        for inflow in self.incoming.all():
            inflow.settle()

    @property
    def idle(self) -> bool:
        """Whether no transfer is under way, and no stream is open."""
        streams = self.outgoing.all() or self.incoming.all()
        return not (streams or self.outgoing_bodies or self.bodies.all())

    def sends(self, key: int) -> bool:
        """Whether this device still has to send a body or stream with this key."""
        return key in self.outgoing_bodies or key in self.outgoing

    # What the gateway says.

    def again(self, *, alone: bool = False) -> None:
        """Ask for the progress of all transfers, and report it, again: because the first channel
        was opened (`alone`), or because one of several channels has ended."""
        self.outgoing.alone = alone
        for sending in self.outgoing_bodies.progress():
            sending.again()
        for outgoing_stream in self.outgoing.all():
            outgoing_stream.sending.again()
        for receiver in self._receivers():
            receiver.receiving.again()
        self.book.said.clear()
        self.book.words.clear()

    def _receivers(self) -> list[Body | Inflow]:
        return [*self.bodies.all(), *self.incoming.all()]

    def piece(self, piece: Piece, *, known: bool) -> None:
        """Handle a piece, or a question about this device's progress, that the gateway sends.
        `known`: the message that opened the stream has already arrived."""
        if piece.stream or self.incoming.get(piece.transfer) is not None:
            self.incoming.take(piece, known=known)
        else:
            self.bodies.take(piece)

    def taken(self, taken: Taken) -> None:
        """Handle the gateway's report of how much it has received of a transfer of this device."""
        key = taken.transfer
        body, outgoing_stream = self.outgoing_bodies.get(key), self.outgoing.get(key)
        if body is not None:
            body.sending.heard(taken, len(body.body))
        elif outgoing_stream is not None:
            self.outgoing.heard(outgoing_stream, taken)
        elif not self.outgoing_bodies.belongs(key):
            self.book.words.append(Ending(key, EndStatus.ABORTED, reason=OVER))

    def ending(self, ending: Ending) -> None:
        """Handle the frame by which the gateway ends a transfer, in either direction."""
        if ending.status in (EndStatus.CONFIRMED, EndStatus.STOPPED):
            self._ours_ended(ending)
            return
        inflow = self.incoming.get(ending.transfer) if ending.stream else None
        self.book.said.discard(ending.transfer)
        if inflow is not None:
            self.incoming.end(inflow, ending)
        else:
            self.bodies.end(ending)

    def _ours_ended(self, ending: Ending) -> None:
        if self.outgoing_bodies.ended(ending):
            return
        outgoing_stream = self.outgoing.get(ending.transfer)
        if outgoing_stream is not None:
            self.outgoing.ended(outgoing_stream, ending)
        elif ending.status != EndStatus.CONFIRMED:
            over = Ending(ending.transfer, EndStatus.ABORTED, stream=ending.stream)
            self.book.words.append(over)

    # What leaves.

    def frames(self) -> list[Frame]:
        """Return all frames to send except pieces; these frames are very small."""
        frames, self.book.words = self.book.words, []
        for receiver in self._receivers():
            key = receiver.key
            # The gateway may have asked for our progress with a complete body, and our answer may
            # have been lost with a channel: it goes on only with the answer to its question.
            unsaid = key not in self.book.said
            if receiver.answer is None or (isinstance(receiver, Body) and unsaid):
                taken = receiver.receiving.report(key, step=self._step)
                if taken is not None:
                    frames.append(taken)
            if receiver.answer is not None and unsaid:
                self.book.said.add(key)
                frames.append(receiver.answer)
        for body in self.outgoing_bodies.first():
            self._speak(body.sending, body.word(), frames)
        for outgoing_stream in self.outgoing.announced():
            self._speak(outgoing_stream.sending, outgoing_stream.last_word(), frames)
        return frames

    def _speak(self, sending: Sending, word: Ending | None, frames: list[Frame]) -> None:
        question = sending.question()
        if question is not None:
            frames.append(question)
        if word is None or sending.said_end:
            return
        if word.status != EndStatus.COMPLETE or (sending.known and sending.cursor >= word.size):
            sending.said_end = True
            frames.append(word)

    def next_piece(self, allow: Callable[[int], int] | None = None) -> Piece | None:
        """Return the next piece to send, the most urgent first; `allow` returns how many bytes of a
        transfer may leave."""
        for flow in self._by_turns():
            sending = flow.sending
            most = self.pace.size
            if allow is not None:
                most = min(most, allow(sending.transfer))
            if isinstance(flow, OutgoingBody):
                size = sending.room(len(flow.body), most)
                body = flow.body[sending.cursor : sending.cursor + size]
            else:
                size = sending.room(flow.available, most)
                body = flow.chunks.read(sending.cursor, size) if size else b""
            if body:
                self._turns += 1
                sending.turn = self._turns
                return sending.piece(body)
        return None

    def transferable(self, most: int) -> Iterator[Transferable]:
        """Yield the transfers that could send bytes, with the number of bytes: for a body all that
        is left, for a stream at most `most`."""
        for flow in self._by_turns():
            sending = flow.sending
            if isinstance(flow, OutgoingBody):
                left = len(flow.body) - sending.cursor
                if sending.room(len(flow.body), 1):
                    yield Transferable(sending.transfer, left, flow.queue, flow.deadline)
            else:
                size = sending.room(flow.available, most)
                if size:
                    yield Transferable(flow.key, size, flow.queue, None)

    def _by_turns(self) -> list[OutgoingBody | OutgoingFlow]:
        waiting: list[OutgoingBody | OutgoingFlow] = list(self.outgoing_bodies.first())
        waiting += self.outgoing.announced()
        return sorted(waiting, key=lambda flow: (-flow.priority, flow.sending.turn))
