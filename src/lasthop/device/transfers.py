"""Everything that a device sends and gets in pieces: streams, and bodies too large for one frame.

It is a part of the session: what has to survive is collected for the next change, and what may
leave is asked for after that is durable.
"""

from __future__ import annotations

import zlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple

import msgspec

from lasthop.clock import Micros
from lasthop.device.change import Change, FlowRow, FlowState, Held, PieceRow
from lasthop.device.flows import Body, Inflow, Outflow
from lasthop.device.outgoing import priority_of
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

FIRST = 10
"""Above all priorities."""

OVER = "it is over here"
UNKNOWN = "this device knows no such stream"


class Parcel:
    """A body of ours that goes ahead of its message."""

    __slots__ = ("body", "checksum", "deadline", "priority", "queue", "sending")

    def __init__(
        self,
        key: int,
        body: bytes,
        priority: int,
        *,
        queue: str | None = None,
        deadline: Micros | None = None,
    ) -> None:
        self.queue = queue
        self.deadline = deadline
        self.body = body
        self.checksum = zlib.crc32(body)
        self.priority = priority
        # The gateway answers when it has room: of many devices some have to wait for others.
        self.sending = Sending(key, stream=False)


class Hungry(NamedTuple):
    """A transfer that could send bytes, if somebody let it."""

    key: int
    size: int
    queue: str | None
    deadline: Micros | None


class Transfers:
    """What is under way in pieces, in both directions."""

    def __init__(self, terms: Terms, held: Held) -> None:
        self._terms = terms
        self._bodies: dict[int, Body] = {}
        self._inflows: dict[int, Inflow] = {}
        self._outflows: dict[int, Outflow] = {}
        self._parcels: dict[int, Parcel] = {}
        self._lanes: dict[tuple[int, str | None], dict[int, Parcel]] = {}
        """The same by priority and queue, the oldest first: what waits holds up only those."""
        self._rows: list[PieceRow] = []
        self._dropped: list[tuple[int, bool, int]] = []
        self._flows: dict[tuple[int, bool], FlowRow] = {}
        self._pending: deque[tuple[int, list[Callable[[], None]]]] = deque()
        self._then: list[Callable[[], None]] = []
        """What becomes true with the next change."""
        self._said: set[int] = set()
        self._words: list[Frame] = []
        self._turns = 0
        self._alone = False
        """Whether this contact has had one channel only: then its first word is no late one."""
        self.pace = Pace()
        self.stirred: list[int] = []
        """Keys of streams about which something is different, since the owner last looked."""
        self.arrived: list[int] = []
        """Keys of bodies of ours that the gateway has, since then: their messages may follow."""
        self.refused: list[tuple[int, str]] = []
        """And of those that it will not take."""
        self.fetched: list[tuple[int, bytes | None, str]] = []
        """Bodies that were pulled, or why not."""
        self._pulls: set[int] = set()
        self._starting: set[int] = set()
        """Keys of bodies that go ahead once their messages are durable."""
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
    def dirty(self) -> bool:
        """Whether something must be made durable before long."""
        return bool(self._rows or self._dropped or self._flows or self._then)

    @property
    def idle(self) -> bool:
        """Whether nothing is under way but what waits for the application."""
        return not (self._parcels or self._outflows or self._inflows or self._bodies)

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
            self._words.append(Taken(frame.key or 0, 0, 0))
            return None
        self.forget_body(frame.key or 0)
        return msgspec.structs.replace(frame, headers=_whole(headers), body=body.chunks.all())

    def forget_body(self, key: int) -> None:
        """It is with its message, or of no use any more."""
        body = self._bodies.pop(key, None)
        self._pulls.discard(key)
        if body is not None and body.receiving.received:
            self._dropped.append((key, True, body.receiving.received))

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

    # Bodies that go.

    def send_ahead(self, frame: MessageFrame, *, durable: bool, first: bool = False) -> None:
        """Let a body go ahead of its message; if that is not durable yet, when it is. The message
        of one that goes `first` has its number, for which all others wait."""
        key = frame.key or 0
        priority = priority_of(frame)
        if first:
            priority = FIRST

        def begin() -> None:
            self._begin(key, Parcel(key, frame.body, priority))

        if durable:
            begin()
        else:
            self._then.append(begin)

    def _begin(self, key: int, parcel: Parcel) -> None:
        old = self._parcels.get(key)
        if old is not None:
            self._drop_parcel(key, old)
        self._parcels[key] = parcel
        self._lanes.setdefault((parcel.priority, parcel.queue), {})[key] = parcel

    def send_body(self, frame: MessageFrame, *, queue: str | None, deadline: Micros | None) -> None:
        """Let a body go ahead, as far as its queue is granted bytes; asked again, it goes on."""
        key = frame.key or 0
        if key in self._parcels or key in self._starting:
            return
        self._starting.add(key)
        priority = priority_of(frame)

        def begin() -> None:
            if key not in self._starting:
                return
            self._starting.discard(key)
            self._begin(key, Parcel(key, frame.body, priority, queue=queue, deadline=deadline))
            # Whose turn it was before may wait behind this one now: so does its body.
            lane = self._lanes[priority, queue]
            if any(other > key for other in lane):
                self._lanes[priority, queue] = dict(sorted(lane.items()))

        self._then.append(begin)

    def drop_body(self, key: int) -> None:
        """It does not go ahead any more."""
        self._starting.discard(key)
        parcel = self._parcels.get(key)
        if parcel is not None:
            self._drop_parcel(key, parcel)

    def sends(self, key: int) -> bool:
        """Whether a body or a stream of ours is still to go."""
        return key in self._parcels or key in self._outflows

    def abort_body(self, key: int, reason: str) -> None:
        """It will never go, and the gateway need not keep what it has of it."""
        self.drop_body(key)
        self._words.append(Ending(key, EndStatus.ABORTED, reason=reason))

    def _drop_parcel(self, key: int, parcel: Parcel) -> None:
        del self._parcels[key]
        lane = self._lanes[parcel.priority, parcel.queue]
        del lane[key]
        if not lane:
            del self._lanes[parcel.priority, parcel.queue]

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
            self._dropped.append((key, True, kept_from))
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
            self._said.discard(key)
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
            self._flows[inflow.key, True] = FlowRow(inflow.key, True, None)
            self._dropped.append((inflow.key, True, inflow.receiving.received + 1))
            if inflow.answer is not None and inflow.key not in self._said:
                self._words.append(inflow.answer)

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
        self._rows.append(row)
        self._note(outflow)
        written = outflow.written

        def durable() -> None:
            outflow.available = max(outflow.available, written)

        self._then.append(durable)
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

        self._then.append(durable)

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
        self._flows[outflow.key, False] = FlowRow(outflow.key, False, None)
        self._dropped.append((outflow.key, False, outflow.written + 1))
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
        self._said.clear()
        self._words.clear()

    def _sendings(self) -> list[Sending]:
        parcels = [parcel.sending for parcel in self._parcels.values()]
        return parcels + [outflow.sending for outflow in self._outflows.values()]

    def _receivers(self) -> list[Body | Inflow]:
        return [*self._bodies.values(), *self._inflows.values()]

    def piece(self, piece: Piece, *, known: bool) -> None:
        """Bytes, or a question how far we are. `known`: the message that opened the stream has been
        here."""
        key = piece.transfer
        receiver: Body | Inflow | None = self._inflows.get(key)
        if receiver is None and piece.stream:
            status = EndStatus.CONFIRMED if known else EndStatus.STOPPED
            self._words.append(Ending(key, status, reason="" if known else UNKNOWN, stream=True))
            return
        receiver = receiver or self.body(key)
        if receiver.answer is not None:
            if isinstance(receiver, Body) and receiver.complete:
                if piece.offset + len(piece.body) > receiver.receiving.received:
                    receiver.spoil()
                    self._said.discard(key)
                    return
                receiver.receiving.again()
                told = receiver.receiving.report(key, step=1)
                assert told is not None
                self._words.append(told)
            else:
                self._said.discard(key)
            return
        row = receiver.take(piece)
        if row is not None:
            self._rows.append(row)
            if isinstance(receiver, Inflow):
                self._note(receiver)
            end = row.offset + len(row.body)
            taker = receiver

            def durable() -> None:
                taker.durable(end)
                self.stirred.append(key)
                if isinstance(taker, Body):
                    self._fetched(taker)

            self._then.append(durable)
            if isinstance(taker, Inflow) and taker.early is not None:
                self._end_inflow(taker, taker.early)

    def _end_inflow(self, inflow: Inflow, ending: Ending) -> None:
        if inflow.end(ending):
            self._note(inflow)
            self._then.append(inflow.settle)
            self._then.append(lambda: self.stirred.append(inflow.key))

    def taken(self, taken: Taken, *, ours: bool) -> None:
        """The gateway says how far it is. `ours`: with a body that we have to send."""
        key = taken.transfer
        parcel = self._parcels.get(key)
        if parcel is not None:
            parcel.sending.heard(taken, len(parcel.body))
            return
        outflow = self._outflows.get(key)
        if outflow is None:
            if not ours:
                self._words.append(Ending(key, EndStatus.ABORTED, reason=OVER))
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
            self._dropped.append((key, False, kept_from))
        self.stirred.append(key)

    def ending(self, ending: Ending, *, known: bool) -> None:
        """The gateway says how a transfer ends, its own or one of ours."""
        if ending.status in (EndStatus.CONFIRMED, EndStatus.STOPPED):
            self._ours_ended(ending)
            return
        key = ending.transfer
        inflow = self._inflows.get(key) if ending.stream else None
        self._said.discard(key)
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
            self._words.append(Ending(key, EndStatus.CONFIRMED, stream=ending.stream))
        elif body is not None:
            body.end(ending)
            self._fetched(body)
        else:
            self.body(key)  # It asks from the beginning.

    def _ours_ended(self, ending: Ending) -> None:
        key = ending.transfer
        confirmed = ending.status == EndStatus.CONFIRMED
        parcel = self._parcels.get(key)
        if parcel is not None:
            self._drop_parcel(key, parcel)
            if confirmed:
                self.arrived.append(key)
            else:
                self.refused.append((key, ending.reason))
                self._words.append(Ending(key, EndStatus.ABORTED, reason=ending.reason))
            return
        outflow = self._outflows.get(key)
        if outflow is None:
            if not confirmed:
                self._words.append(Ending(key, EndStatus.ABORTED, stream=ending.stream))
        elif not confirmed:
            self.abort(key, ending.reason or "the receiver wants no more")
            outflow.sending.said_end = False
            self.stirred.append(key)
        elif outflow.ended:
            self._drop_outflow(outflow)

    def frames(self) -> list[Frame]:
        """Everything but pieces: it takes next to no room."""
        frames, self._words = self._words, []
        step = self._window // 4
        for receiver in self._receivers():
            key = receiver.key
            # The gateway may have asked how far a body is that is complete, and our answer may have
            # been lost with a channel: of that it believes nothing but what it has asked for.
            if receiver.answer is None or (isinstance(receiver, Body) and key not in self._said):
                taken = receiver.receiving.report(key, step=step)
                if taken is not None:
                    frames.append(taken)
            if receiver.answer is not None and key not in self._said:
                self._said.add(key)
                frames.append(receiver.answer)
        for parcel in self._first_parcels():
            word = Ending(
                parcel.sending.transfer, EndStatus.COMPLETE, len(parcel.body), parcel.checksum
            )
            self._speak(parcel.sending, word, frames)
        for outflow in self._outflows.values():
            if outflow.announced:
                self._speak(outflow.sending, outflow.last_word(), frames)
        return frames

    def _first_parcels(self) -> list[Parcel]:
        """Bodies of a lane go one after the other. What all messages wait for goes alone: others
        would take up the room that the gateway has for it."""
        waited_for = self._lanes.get((FIRST, None))
        lanes = self._lanes.values() if waited_for is None else [waited_for]
        return [next(iter(parcels.values())) for parcels in lanes]

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
            if isinstance(flow, Parcel):
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

    def hungry(self, most: int) -> Iterator[Hungry]:
        """Transfers that could send something: of a body all that is left of it, of a stream at
        `most` so many bytes."""
        for flow in self._by_turns():
            sending = flow.sending
            if isinstance(flow, Parcel):
                left = len(flow.body) - sending.cursor
                if sending.room(len(flow.body), 1):
                    yield Hungry(sending.transfer, left, flow.queue, flow.deadline)
            else:
                size = sending.room(flow.available, most)
                if size:
                    yield Hungry(flow.key, size, flow.queue, None)

    def _by_turns(self) -> list[Parcel | Outflow]:
        waiting: list[Parcel | Outflow] = list(self._first_parcels())
        waiting += [outflow for outflow in self._outflows.values() if outflow.announced]
        return sorted(waiting, key=lambda flow: (-flow.priority, flow.sending.turn))

    # What has to survive.

    def _note(self, flow: Inflow | Outflow) -> None:
        incoming = isinstance(flow, Inflow)
        self._flows[flow.key, incoming] = FlowRow(flow.key, incoming, flow.state())

    def collect(self, change: Change) -> None:
        """Put into `change` what has to survive."""
        change.pieces, self._rows = self._rows, []
        change.dropped_pieces, self._dropped = self._dropped, []
        change.flows, self._flows = list(self._flows.values()), {}
        if self._then:
            self._pending.append((change.n, self._then))
            self._then = []

    def committed(self, n: int) -> None:
        """Change `n`, and all before it, is durable."""
        while self._pending and self._pending[0][0] <= n:
            for then in self._pending.popleft()[1]:
                then()


def _whole(headers: Headers) -> Headers:
    return msgspec.structs.replace(headers, ahead=None)
