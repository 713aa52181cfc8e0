"""All streams: opening, growing, ending, and what is told of them.

A stream is opened by a message, whose key is its own: the receiving device gets that like any
other, in order, and then its pieces. The log has a line when it opens, sparse ones on the way and
one when it ends.
"""

from __future__ import annotations

from functools import partial

import msgspec

from lasthop.clock import Micros
from lasthop.core.deliveries import Deliveries
from lasthop.core.delivery import Delivery
from lasthop.core.effects import Changed
from lasthop.core.feature import DeliveryObserver
from lasthop.core.lifecycle import DELIVERED, State, Step
from lasthop.core.pieces.ends import FromDevice, ToDevice
from lasthop.core.pieces.pump import PiecePump
from lasthop.core.pieces.stream import Stream, StreamRecord, StreamState
from lasthop.core.pieces.uploads import UploadRecord, Uploads
from lasthop.core.publishing.acceptance import Acceptance
from lasthop.core.publishing.submission import Submission
from lasthop.core.session import Session
from lasthop.core.transfer import Transfer
from lasthop.errors import InvalidRequest, NotFound, QuotaExceeded
from lasthop.events import Kind
from lasthop.message import TargetKind
from lasthop.store.streams import PieceRow, StreamChanges, StreamRow, StreamsRestored
from lasthop.wire.hop.transfer import Sending

PROGRESS = 8 << 20
"""Bytes after which the log hears of a stream again."""

NO_ROOM_YET = 30
"""Seconds after which to try again to open a stream."""


class Streams(DeliveryObserver):
    """Every stream that is not over."""

    def __init__(
        self, deliveries: Deliveries, acceptance: Acceptance, pump: PiecePump, uploads: Uploads
    ) -> None:
        self._deliveries = deliveries
        self._acceptance = acceptance
        self._pump = pump
        self._uploads = uploads
        self._open: dict[int, Stream] = {}
        self.restored = StreamsRestored()
        """While the gateway comes back: what the store knows."""

    # Opening.

    def open(
        self,
        app: str,
        source: str,
        submission: Submission,
        now: Micros,
        *,
        sender: Session | None = None,
        theirs: int = 0,
    ) -> Stream:
        """Begin a stream to a device, or to whoever fetches it over REST."""
        target = submission.target
        if target.kind not in (TargetKind.DEVICE, TargetKind.PUBLISHER):
            raise InvalidRequest(
                "a stream goes to one device, or to a publisher: device:NAME or publisher:",
                target=str(target),
            )
        receiver = None
        if target.kind is TargetKind.DEVICE:
            for device in self._deliveries.registry.reach(app, target).values():
                receiver = self._deliveries.session(device)
        self._check_room(sender, receiver)
        submission.stream = True
        message = self._acceptance.accept(app, source, [submission], now)[0]
        record = StreamRecord(
            app=app,
            source=source,
            target=str(target),
            sender=sender.device.number if sender is not None else 0,
            theirs=theirs,
            receiver=receiver.device.number if receiver is not None else 0,
            priority=message.priority,
            opened_at=now,
            content_type=message.content_type,
            title=message.title,
            moved_at=now,
            queue=message.queue,
        )
        stream = Stream(message.key, record)
        self._add(stream)
        self._note(stream)
        self._tell(stream, Kind.STREAM_OPENED, now)
        if sender is not None:
            self._deliveries.touch(sender)
        return stream

    def _check_room(self, sender: Session | None, receiver: Session | None) -> None:
        limits = self._deliveries.limits
        if len(self._open) >= limits.streams:
            raise QuotaExceeded(
                "too many streams are open", retry_after=NO_ROOM_YET, limit=limits.streams
            )
        for session in (sender, receiver):
            if session is None:
                continue
            number, most = session.device.number, limits.streams_per_device
            records = [stream.record for stream in self._open.values()]
            theirs = sum(number in (record.sender, record.receiver) for record in records)
            if theirs >= most:
                raise QuotaExceeded(
                    "too many streams of this device are open",
                    retry_after=NO_ROOM_YET,
                    device=session.device.name,
                    limit=most,
                )

    def _add(self, stream: Stream) -> None:
        self._open[stream.key] = stream
        item = self._deliveries.items.get(stream.key)
        if item is not None:
            item.observe(self)
        record = stream.record
        sender = self._session(record.sender)
        if sender is not None and not record.sender_done:
            self._pump.transfers(sender).incoming[record.theirs] = FromDevice(self, stream, sender)
        receiver = self._session(record.receiver)
        if receiver is not None and not record.receiver_done:
            sending = Sending(stream.key, stream=True, taken=record.taken)
            self._pump.send(
                receiver, stream.key, Transfer(sending, ToDevice(self, stream, receiver))
            )
        self._watch(stream)

    def _session(self, number: int) -> Session | None:
        device = self._deliveries.registry.numbered(number) if number else None
        return None if device is None else self._deliveries.session(device)

    # Asking.

    def find(self, app: str, key: int) -> Stream:
        """An open stream of an app."""
        stream = self._open.get(key)
        if stream is None or stream.record.app != app:
            raise no_such_stream(key)
        return stream

    def get(self, key: int) -> Stream | None:
        """An open stream, whoever it belongs to."""
        return self._open.get(key)

    def of(self, app: str) -> list[Stream]:
        """The open streams of an app, oldest first."""
        return [stream for stream in self._open.values() if stream.record.app == app]

    @property
    def window(self) -> int:
        """How much of a stream is held at most."""
        return self._deliveries.limits.stream_window

    # Growing.

    def append(self, stream: Stream, offset: int, body: bytes, now: Micros) -> int:
        """Take what is new and fits; returns the position, which is durable with the open commit.

        Bytes that came before are passed over; a gap is refused.
        """
        body = stream.fresh(offset, body, self.window)
        if body:
            start = stream.append(body, now)
            changes = self._deliveries.commits.open.of(StreamChanges)
            changes.pieces.append(PieceRow(stream.key, start, body))
            self._note(stream)
            end = stream.record.received
            self._deliveries.commits.when_durable(partial(self._durable, stream, end))
        return stream.record.received

    def _durable(self, stream: Stream, end: int, now: Micros) -> None:
        stream.durable = max(stream.durable, end)
        self._stir(stream)

    def taken(self, stream: Stream, offset: int, now: Micros) -> None:
        """The receiver has what is below."""
        before = stream.record.taken
        kept_from = stream.taken(offset, now)
        if offset > before:
            self._note(stream)
            if kept_from is not None:
                changes = self._deliveries.commits.open.of(StreamChanges)
                changes.handed_on[stream.key] = kept_from
                self._deliveries.commits.hurry()
            if offset // PROGRESS > before // PROGRESS:
                self._tell(stream, Kind.STREAM_PROGRESSED, now)
            self._stir(stream)

    # Ending.

    def end(
        self, stream: Stream, now: Micros, *, size: int | None = None, checksum: int | None = None
    ) -> None:
        """The sender has sent everything. Saying so again changes nothing."""
        if stream.record.state is StreamState.COMPLETE:
            stream.check_end(size, checksum)
            return
        if not stream.open:
            stream.fresh(0, b"", 0)
        stream.check_end(size, checksum)
        self._close(stream, StreamState.COMPLETE, "", now)

    def abort(self, stream: Stream, reason: str, now: Micros) -> None:
        """The sender gives it up."""
        if stream.open or stream.record.state is StreamState.COMPLETE:
            self._close(stream, StreamState.ABORTED, reason, now)

    def stop(self, stream: Stream, reason: str, now: Micros) -> None:
        """The receiver wants no more."""
        if stream.open or stream.record.state is StreamState.COMPLETE:
            self._close(stream, StreamState.STOPPED, reason, now)

    def _close(self, stream: Stream, state: StreamState, reason: str, now: Micros) -> None:
        record = stream.record
        record.state = state
        record.reason = reason
        record.moved_at = now
        if state is not StreamState.COMPLETE:
            stream.drop()
        if not record.sender:
            record.sender_done = True
        if not record.receiver and (
            state is not StreamState.COMPLETE or record.taken == record.received
        ):
            record.receiver_done = True
        self._note(stream)
        self._deliveries.commits.when_durable(partial(self._ended, stream))
        delivery = self._announcement(stream)
        if delivery is not None and state is not StreamState.COMPLETE and delivery.revocable:
            self._deliveries.step(delivery, Step.CANCEL, now, f"its stream is {state}")
            record.receiver_done = True
        self._settle(stream, now)

    def _ended(self, stream: Stream, now: Micros) -> None:
        stream.ended = True
        self._stir(stream)

    def sender_done(self, stream: Stream, now: Micros) -> None:
        """The sender knows how it ended."""
        stream.record.sender_done = True
        self._settle(stream, now)

    def receiver_done(self, stream: Stream, now: Micros) -> None:
        """The receiver knows how it ended, and has everything if it ended well."""
        record = stream.record
        if record.state is StreamState.COMPLETE:
            self.taken(stream, record.received, now)
        record.receiver_done = True
        self._settle(stream, now)

    def _settle(self, stream: Stream, now: Micros) -> None:
        """When both ends are through with it, only its row is left."""
        record = stream.record
        if record.receiver_done and record.state is StreamState.COMPLETE and stream.ended:
            # What the sender says from now on is answered as for any stream that is over.
            record.sender_done = True
        self._note(stream)
        if stream.over and self._open.pop(stream.key, None) is not None:
            self._tell(stream, Kind.STREAM_ENDED, now)
            self._deliveries.commits.hurry()
            receiver = self._session(record.receiver)
            if receiver is not None and stream.key in receiver.transfers:
                del self._pump.transfers(receiver).outgoing[stream.key]
        self._stir(stream)

    def removed(self, session: Session, now: Micros) -> None:
        """A device is gone, and its streams with it."""
        self._uploads.removed(session)
        number = session.device.number
        for stream in list(self._open.values()):
            record = stream.record
            if number in (record.sender, record.receiver):
                record.sender_done = record.sender_done or record.sender == number
                record.receiver_done = record.receiver_done or record.receiver == number
                self.abort(stream, f"{session.device.name} was removed", now)
                self._settle(stream, now)

    # The message that opened it.

    def _announcement(self, stream: Stream) -> Delivery | None:
        session = self._session(stream.record.receiver)
        return None if session is None else session.mailbox.get(stream.key)

    def announced(self, stream: Stream, session: Session) -> bool:
        """Whether the device has the message that opened it."""
        delivery = session.mailbox.get(stream.key)
        if delivery is None:
            return (
                stream.key not in self._deliveries.items
            )  # Otherwise its delivery is still to begin.
        return delivery.state is State.RECEIVED

    def ended(self, delivery: Delivery) -> None:
        """The message that opened a stream has ended: if not well, the stream ends with it."""
        stream = self._open.get(delivery.item.message.key)
        if stream is None:
            return
        if delivery.state is DELIVERED or delivery.state is State.SENT:
            self._deliveries.touch(delivery.session)
            return
        now = delivery.changed_at
        stream.record.receiver_done = not delivery.attempts
        self.abort(stream, f"its message was {delivery.state.name.lower()}", now)
        self._settle(stream, now)

    # Within.

    def _note(self, stream: Stream) -> None:
        row = StreamRow(stream.key, not stream.over, msgspec.json.encode(stream.record))
        self._deliveries.commits.open.of(StreamChanges).rows[stream.key] = row

    def _tell(self, stream: Stream, kind: Kind, now: Micros) -> None:
        record = stream.record
        session = self._session(record.receiver) or self._session(record.sender)
        self._deliveries.commits.record(
            kind,
            now,
            session,
            app=record.app,
            msg=stream.key,
            source=record.source,
            target=record.target,
            size=record.received,
            bytes=record.taken,
            method=str(record.state),
            reason=record.reason,
            priority=record.priority,
        )

    def _stir(self, stream: Stream) -> None:
        """Something about it is different: whoever deals with it shall look."""
        for number in (stream.record.sender, stream.record.receiver):
            session = self._session(number)
            if session is not None:
                self._deliveries.touch(session)
        if stream.key in self._deliveries.watched:
            self._deliveries.effects.append(Changed(stream.key, 0, None))

    def _watch(self, stream: Stream) -> None:
        """Give it up when it has not moved for too long."""
        due = stream.record.moved_at + self._deliveries.limits.stream_patience
        self._deliveries.timers.add(due, _StreamPatience(self, stream))

    def woken(self, stream: Stream, now: Micros) -> None:
        """Has it moved?"""
        if self._open.get(stream.key) is not stream:
            return
        if now < stream.record.moved_at + self._deliveries.limits.stream_patience:
            self._watch(stream)
            return
        stream.record.sender_done = stream.record.receiver_done = True
        self.abort(stream, "it has not moved for too long", now)
        self._settle(stream, now)

    def finish(self, now: Micros) -> None:
        """Go on where we stopped: their messages are back."""
        restored, self.restored = self.restored, StreamsRestored()
        pieces: dict[int, list[PieceRow]] = {}
        for piece in restored.pieces:
            pieces.setdefault(piece.stream, []).append(piece)
        for row in restored.rows:
            record = _decode(row.record)
            if isinstance(record, UploadRecord):
                self._uploads.restore(row.key, record, pieces.get(row.key, []))
                continue
            stream = Stream(row.key, record)
            for piece in pieces.get(row.key, ()):
                stream.restore(piece.offset, piece.body)
            for number in (record.sender, record.receiver):
                if number and self._session(number) is None:
                    record.state = StreamState.ABORTED
                    record.sender_done = record.receiver_done = True
            self._add(stream)
            if stream.over:
                self._settle(stream, now)


class _StreamPatience:
    """Looks after a stream that may have been forgotten."""

    __slots__ = ("_stream", "_streams")

    def __init__(self, streams: Streams, stream: Stream) -> None:
        self._streams = streams
        self._stream = stream

    def woken(self, now: Micros) -> None:
        self._streams.woken(self._stream, now)


_decode = msgspec.json.Decoder(StreamRecord | UploadRecord).decode


def no_such_stream(key: int) -> NotFound:
    """The refusal to whoever names a stream that is not there, for him."""
    return NotFound("no such stream is open", id=f"{key:016x}")


def read_record(row: StreamRow) -> StreamRecord | None:
    """What the store keeps of a stream; `None` for a body that was coming in."""
    if not row.record:
        return None
    record = _decode(row.record)
    return record if isinstance(record, StreamRecord) else None
