"""Everything that a device sends and gets in pieces: streams, and bodies too large for one frame.

It is a part of the session: what has to survive is collected for the next change, and what may
leave is asked for after that is durable.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from operator import attrgetter

import msgspec

from lasthop.device.change import FlowRow, FlowState, Held
from lasthop.device.outbox_order import Transferable
from lasthop.device.pieces.flows import Body, Inflow, Outflow
from lasthop.device.pieces.outgoing_bodies import OutgoingBodies, OutgoingBody
from lasthop.device.pieces.transfer_book import TransferBook
from lasthop.device.terms import Terms
from lasthop.errors import Conflict, NotFound
from lasthop.wire.hop.frames import (
    Ending,
    EndStatus,
    Frame,
    Headers,
    MessageFrame,
    Piece,
    Taken,
)
from lasthop.wire.hop.transfer import Pace, Sending

OVER = "it is over here"
UNKNOWN = "this device knows no such stream"


class Transfers:
    """What is under way in pieces, in both directions."""

    def __init__(
        self, terms: Terms, held: Held, book: TransferBook, bodies: OutgoingBodies
    ) -> None:
        self._terms = terms
        self.book = book
        self.outgoing_bodies = bodies
        self._bodies: dict[int, Body] = {}
        self._inflows: dict[int, Inflow] = {}
        self._outflows: dict[int, Outflow] = {}
        self._turns = 0
        self._alone = False
        """Whether this contact has had one channel only: then its first word is no late one."""
        self.pace = Pace()
        self.stirred: list[int] = []
        """Keys of streams about which something is different, since the owner last looked."""
        self.fetched: list[tuple[int, bytes | None, str]] = []
        """Bodies that were pulled, or why not."""
        self._pulls: set[int] = set()
        self._restore(held)

    def _restore(self, held: Held) -> None:
        announcing = {
            row.frame.key for row in held.outbox if row.frame.headers and row.frame.headers.stream
        }
        for row in held.flows:
            assert row.state is not None
            if row.incoming:
                self._inflows[row.key] = Inflow(row.key, row.state, window=self._window)
            else:
                self._outflows[row.key] = Outflow(
                    row.key, row.state, window=self._window, announced=row.key not in announcing
                )
        for (key, incoming), rows in groupby(held.pieces, key=attrgetter("key", "incoming")):
            keeper: Body | Inflow | Outflow | None = (
                self._inflows.get(key) or self.body(key) if incoming else self._outflows.get(key)
            )
            for piece in rows:
                if keeper is not None:
                    keeper.restore(piece)
        for inflow in self._inflows.values():
            inflow.settle()

    @property
    def _window(self) -> int:
        return self._terms.stream_window

    @property
    def idle(self) -> bool:
        """Whether nothing is under way but what waits for the application."""
        return not (self.outgoing_bodies or self._outflows or self._inflows or self._bodies)

    def joined(self) -> None:
        """There is one more channel: words may overtake one another."""
        self._alone = False

    # Bodies that come.

    def body(self, key: int) -> Body:
        """A body that comes in pieces, from its beginning."""
        body = self._bodies.get(key)
        if body is None:
            body = Body(key, window=self._window, most=self._terms.max_body)
            self._bodies[key] = body
        return body

    def claim(self, frame: MessageFrame, *, known: bool) -> MessageFrame | None:
        """A message whose body came ahead, made whole; `None` when there is no use for it."""
        headers = frame.headers
        assert headers is not None
        body = self._bodies.get(frame.key or 0)
        if known or (frame.seq is None and body is None):
            return msgspec.structs.replace(frame, headers=_whole(headers)) if known else None
        if body is None or body.receiving.durable != headers.ahead:
            # The gateway believes something that is not so (any more): as if it had been lost.
            self.book.words.append(Taken(frame.key or 0, 0, 0))
            return None
        self.forget_body(frame.key or 0)
        return msgspec.structs.replace(frame, headers=_whole(headers), body=body.chunks.all())

    def forget_body(self, key: int) -> None:
        """It is with its message, or of no use any more."""
        body = self._bodies.pop(key, None)
        self._pulls.discard(key)
        if body is not None and body.receiving.received:
            self.book.drop(key, incoming=True, below=body.receiving.received)

    def pull(self, key: int) -> bytes | None:
        """Somebody wants a body that was left with the gateway; here it is if it has come."""
        body = self.body(key)
        if body.complete:
            return body.chunks.all()
        self._pulls.add(key)
        return None

    def _fetched(self, body: Body) -> None:
        if body.key in self._pulls and body.complete:
            self._pulls.discard(body.key)
            self.fetched.append((body.key, body.chunks.all(), ""))

    def sends(self, key: int) -> bool:
        """Whether a body or a stream of ours is still to go."""
        return key in self.outgoing_bodies or key in self._outflows

    # Streams that come.

    def open_incoming(self, key: int) -> None:
        """A message has come that opens a stream."""
        if key not in self._inflows:
            inflow = self._inflows[key] = Inflow(key, FlowState(), window=self._window)
            self._note(inflow)
            self.stirred.append(key)

    def incoming(self) -> list[int]:
        """Streams that the application has not had to the end."""
        return list(self._inflows)

    def advance(self, key: int, position: int, most: int) -> bytes | None:
        """The application has had what is below `position`; returns what comes next. `None`: there
        is nothing yet. Empty: that was all."""
        inflow = self._inflow(key)
        before = inflow.position
        kept_from = inflow.consume(position)
        if kept_from is not None:
            self.book.drop(key, incoming=True, below=kept_from)
        if inflow.failed and inflow.answer is not None:
            self._close(inflow)
            raise Conflict("the stream has been given up", reason=inflow.reason)
        if inflow.at_end:
            self._close(inflow)
            return b""
        if inflow.position > before:
            self._note(inflow)
        return inflow.read(most) or None

    def stop(self, key: int, reason: str) -> None:
        """The application wants no more of it."""
        inflow = self._inflows.get(key)
        if inflow is not None and not inflow.failed:
            inflow.stop(reason)
            self.book.said.discard(key)
            self._note(inflow)

    def position(self, key: int) -> int:
        """What the application has had of a stream."""
        return self._inflow(key).position

    def _inflow(self, key: int) -> Inflow:
        inflow = self._inflows.get(key)
        if inflow is None:
            raise NotFound("no such stream is open", id=f"{key:016x}")
        return inflow

    def _close(self, inflow: Inflow) -> None:
        """The application knows how it ended. The gateway is told whenever it asks."""
        if inflow.answer is not None and inflow.answer.status == EndStatus.STOPPED:
            return  # Until the gateway has answered.
        self._drop_inflow(inflow)

    def _drop_inflow(self, inflow: Inflow) -> None:
        if self._inflows.pop(inflow.key, None) is not None:
            self.book.note(FlowRow(inflow.key, True, None))
            self.book.drop(inflow.key, incoming=True, below=inflow.receiving.received + 1)
            if inflow.answer is not None and inflow.key not in self.book.said:
                self.book.words.append(inflow.answer)

    # Streams that go.

    def open_outgoing(self, key: int, state: FlowState) -> None:
        """The application opens one, with the message that has this key."""
        outflow = Outflow(key, state, window=self._window, announced=False)
        self._outflows[key] = outflow
        self._note(outflow)

    def outgoing(self) -> list[tuple[int, FlowState]]:
        """Streams of ours that the gateway may not have to the end."""
        return [(key, outflow.state()) for key, outflow in self._outflows.items()]

    def write(self, key: int, body: bytes) -> int:
        """Take what fits; returns how many bytes that were, durable with the next change."""
        outflow = self._outflow(key)
        row = outflow.write(body)
        if row is None:
            return 0
        self.book.keep(row)
        self._note(outflow)
        written = outflow.written

        def durable() -> None:
            outflow.available = max(outflow.available, written)

        self.book.then(durable)
        return len(row.body)

    def end(self, key: int) -> None:
        """Everything was written."""
        outflow = self._outflow(key)
        if outflow.failed:
            raise Conflict("the stream has been given up", reason=outflow.reason)
        outflow.size = outflow.written
        self._end(outflow)

    def abort(self, key: int, reason: str) -> None:
        """There will be no more."""
        outflow = self._outflows.get(key)
        if outflow is not None and not outflow.failed:
            outflow.failed, outflow.reason = True, reason
            self._end(outflow)

    def _end(self, outflow: Outflow) -> None:
        self._note(outflow)

        def durable() -> None:
            outflow.ended = True
            outflow.sending.said_end = False

        self.book.then(durable)

    def _outflow(self, key: int) -> Outflow:
        outflow = self._outflows.get(key)
        if outflow is None:
            raise NotFound("no such stream is open", id=f"{key:016x}")
        return outflow

    def open_to_write(self, key: int) -> bool:
        """Whether a stream of ours is not over: the gateway may not have heard of its end."""
        return key in self._outflows

    def announced(self, keys: Iterable[int]) -> None:
        """The gateway has these messages of ours."""
        if self._outflows:
            for key in keys:
                outflow = self._outflows.get(key)
                if outflow is not None:
                    outflow.announced = True

    def refuse(self, key: int) -> None:
        """The gateway does not want the stream that this message opened."""
        outflow = self._outflows.get(key)
        if outflow is not None:
            outflow.failed, outflow.reason = True, "the gateway refused it"
            self._drop_outflow(outflow)

    def _drop_outflow(self, outflow: Outflow) -> None:
        del self._outflows[outflow.key]
        self.book.note(FlowRow(outflow.key, False, None))
        self.book.drop(outflow.key, incoming=False, below=outflow.written + 1)
        self.stirred.append(outflow.key)

    # The channel.

    def again(self, *, alone: bool = False) -> None:
        """A channel is open, the only one, or one of several has ended: find out how far everything
        is."""
        self._alone = alone
        for sending in self._sendings():
            sending.again()
        for receiver in self._receivers():
            receiver.receiving.again()
        self.book.said.clear()
        self.book.words.clear()

    def _sendings(self) -> list[Sending]:
        bodies = self.outgoing_bodies.sendings()
        return bodies + [outflow.sending for outflow in self._outflows.values()]

    def _receivers(self) -> list[Body | Inflow]:
        return [*self._bodies.values(), *self._inflows.values()]

    def piece(self, piece: Piece, *, known: bool) -> None:
        """Bytes, or a question how far we are. `known`: the message that opened the stream has been
        here."""
        key = piece.transfer
        receiver: Body | Inflow | None = self._inflows.get(key)
        if receiver is None and piece.stream:
            status = EndStatus.CONFIRMED if known else EndStatus.STOPPED
            self.book.words.append(
                Ending(key, status, reason="" if known else UNKNOWN, stream=True)
            )
            return
        receiver = receiver or self.body(key)
        if receiver.answer is not None:
            if isinstance(receiver, Body) and receiver.complete:
                if piece.offset + len(piece.body) > receiver.receiving.received:
                    receiver.spoil()
                    self.book.said.discard(key)
                    return
                receiver.receiving.again()
                told = receiver.receiving.report(key, step=1)
                assert told is not None
                self.book.words.append(told)
            else:
                self.book.said.discard(key)
            return
        row = receiver.take(piece)
        if row is not None:
            self.book.keep(row)
            if isinstance(receiver, Inflow):
                self._note(receiver)
            end = row.offset + len(row.body)
            taker = receiver

            def durable() -> None:
                taker.durable(end)
                self.stirred.append(key)
                if isinstance(taker, Body):
                    self._fetched(taker)

            self.book.then(durable)
            if isinstance(taker, Inflow) and taker.early is not None:
                self._end_inflow(taker, taker.early)

    def _end_inflow(self, inflow: Inflow, ending: Ending) -> None:
        if inflow.end(ending):
            self._note(inflow)
            self.book.then(inflow.settle)
            self.book.then(lambda: self.stirred.append(inflow.key))

    def taken(self, taken: Taken) -> None:
        """The gateway says how far it is."""
        key = taken.transfer
        body = self.outgoing_bodies.get(key)
        if body is not None:
            body.sending.heard(taken, len(body.body))
            return
        outflow = self._outflows.get(key)
        if outflow is None:
            if not self.outgoing_bodies.belongs(key):
                self.book.words.append(Ending(key, EndStatus.ABORTED, reason=OVER))
            return
        if taken.offset > outflow.available:
            self.abort(key, "this device has lost what it had written")
            return
        if taken.offset < outflow.sending.taken and not outflow.chunks.read(taken.offset, 1):
            if self._alone and not outflow.sending.known:
                self.abort(key, "the gateway has lost what it had of it")
            return
        outflow.sending.heard(taken, outflow.available)
        kept_from = outflow.chunks.drop_below(taken.offset)
        if kept_from is not None:
            self.book.drop(key, incoming=False, below=kept_from)
        self.stirred.append(key)

    def ending(self, ending: Ending, *, known: bool) -> None:
        """The gateway says how a transfer ends, its own or one of ours."""
        if ending.status in (EndStatus.CONFIRMED, EndStatus.STOPPED):
            self._ours_ended(ending)
            return
        key = ending.transfer
        inflow = self._inflows.get(key) if ending.stream else None
        self.book.said.discard(key)
        if inflow is not None:
            if inflow.answer is not None and inflow.answer.status == EndStatus.STOPPED:
                if ending.status == EndStatus.ABORTED:
                    inflow.answer = Ending(key, EndStatus.CONFIRMED, stream=True)
                    self._drop_inflow(inflow)
            else:
                self._end_inflow(inflow, ending)
            return
        body = self._bodies.get(key)
        if ending.stream or ending.status == EndStatus.ABORTED:
            if body is not None:
                if key in self._pulls:
                    self.fetched.append((key, None, ending.reason))
                self.forget_body(key)
            self.book.words.append(Ending(key, EndStatus.CONFIRMED, stream=ending.stream))
        elif body is not None:
            body.end(ending)
            self._fetched(body)
        else:
            self.body(key)  # It asks from the beginning.

    def _ours_ended(self, ending: Ending) -> None:
        key = ending.transfer
        confirmed = ending.status == EndStatus.CONFIRMED
        if self.outgoing_bodies.ended(ending):
            return
        outflow = self._outflows.get(key)
        if outflow is None:
            if not confirmed:
                self.book.words.append(Ending(key, EndStatus.ABORTED, stream=ending.stream))
        elif not confirmed:
            self.abort(key, ending.reason or "the receiver wants no more")
            outflow.sending.said_end = False
            self.stirred.append(key)
        elif outflow.ended:
            self._drop_outflow(outflow)

    def frames(self) -> list[Frame]:
        """Everything but pieces: it takes next to no room."""
        frames, self.book.words = self.book.words, []
        step = self._window // 4
        for receiver in self._receivers():
            key = receiver.key
            # The gateway may have asked how far a body is that is complete, and our answer may have
            # been lost with a channel: of that it believes nothing but what it has asked for.
            unsaid = key not in self.book.said
            if receiver.answer is None or (isinstance(receiver, Body) and unsaid):
                taken = receiver.receiving.report(key, step=step)
                if taken is not None:
                    frames.append(taken)
            if receiver.answer is not None and unsaid:
                self.book.said.add(key)
                frames.append(receiver.answer)
        for body in self.outgoing_bodies.first():
            self._speak(body.sending, body.word(), frames)
        for outflow in self._outflows.values():
            if outflow.announced:
                self._speak(outflow.sending, outflow.last_word(), frames)
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
        """The piece that leaves when the last one has left, the most urgent first; `allow` says how
        many bytes of a transfer may."""
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
        """Transfers that could send something: of a body all that is left of it, of a stream at
        `most` so many bytes."""
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

    def _by_turns(self) -> list[OutgoingBody | Outflow]:
        waiting: list[OutgoingBody | Outflow] = list(self.outgoing_bodies.first())
        waiting += [outflow for outflow in self._outflows.values() if outflow.announced]
        return sorted(waiting, key=lambda flow: (-flow.priority, flow.sending.turn))

    # What has to survive.

    def _note(self, flow: Inflow | Outflow) -> None:
        incoming = isinstance(flow, Inflow)
        self.book.note(FlowRow(flow.key, incoming, flow.state()))


def _whole(headers: Headers) -> Headers:
    return msgspec.structs.replace(headers, ahead=None)
