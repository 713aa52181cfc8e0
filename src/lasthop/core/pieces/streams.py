"""All streams: how they are opened, grow and end, and the events about them.

A stream is opened by a message and has the key of that message: the receiving device gets the
message like any other, in order, and then the pieces. The log has an event when a stream opens, few
on the way and one when it ends.
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
"""Bytes after which one more event records the progress of a stream."""

NO_ROOM_YET = 30
"""Seconds after which a sender may try again to open a stream."""


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
        """The rows of streams and uploads from the store, kept while the gateway is restored."""

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
        """Open a stream to a device, or to a publisher that fetches it over REST."""
        target = submission.target
        if target.kind not in (TargetKind.DEVICE, TargetKind.PUBLISHER):
            raise InvalidRequest(
                "a stream must go to one device or to a publisher: device:NAME or publisher:",
                target=str(target),
            )
        self._acceptance.check_right(app, source, target)
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

    # Looking up.

    def find(self, app: str, key: int) -> Stream:
        """Return an open stream of an app; raise an error if there is none."""
        stream = self._open.get(key)
        if stream is None or stream.record.app != app:
            raise no_such_stream(key)
        return stream

    def get(self, key: int) -> Stream | None:
        """Return an open stream of any app; None if there is none."""
        return self._open.get(key)

    def of(self, app: str) -> list[Stream]:
        """Return the open streams of an app, oldest first."""
        return [stream for stream in self._open.values() if stream.record.app == app]

    @property
    def window(self) -> int:
        """The largest number of bytes of a stream that the gateway holds."""
        return self._deliveries.limits.stream_window

    # Growing.

    def append(self, stream: Stream, offset: int, body: bytes, now: Micros) -> int:
        """Add those of the bytes that are new and fit, and return the position, which is durable
        with the open commit.

        Bytes that came before are ignored; a gap is refused.
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
        """Note that the receiver has all bytes below `offset`."""
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
        """End a stream after the sender has sent everything. A repeated call changes nothing."""
        if stream.record.state is StreamState.COMPLETE:
            stream.check_end(size, checksum)
            return
        if not stream.open:
            # Raises the error that says how the stream ended.
            stream.fresh(0, b"", 0)
        stream.check_end(size, checksum)
        self._close(stream, StreamState.COMPLETE, "", now)

    def abort(self, stream: Stream, reason: str, now: Micros) -> None:
        """Abort a stream because its sender, or the gateway, gives it up."""
        if stream.open or stream.record.state is StreamState.COMPLETE:
            self._close(stream, StreamState.ABORTED, reason, now)

    def stop(self, stream: Stream, reason: str, now: Micros) -> None:
        """Stop a stream because its receiver wants no more of it."""
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
        # The receiver never heard of the stream, and need not.
        if delivery is not None and state is not StreamState.COMPLETE and delivery.revocable:
            self._deliveries.step(delivery, Step.CANCEL, now, f"its stream is {state}")
            record.receiver_done = True
        self._settle(stream, now)

    def _ended(self, stream: Stream, now: Micros) -> None:
        stream.ended = True
        self._stir(stream)

    def sender_done(self, stream: Stream, now: Micros) -> None:
        """Note that the sender knows how the stream ended."""
        stream.record.sender_done = True
        self._settle(stream, now)

    def receiver_done(self, stream: Stream, now: Micros) -> None:
        """Note that the receiver knows how the stream ended, and has everything if it is
        complete."""
        record = stream.record
        if record.state is StreamState.COMPLETE:
            self.taken(stream, record.received, now)
        record.receiver_done = True
        self._settle(stream, now)

    def _settle(self, stream: Stream, now: Micros) -> None:
        """Forget a stream of which both ends know how it ended; only its row is left."""
        record = stream.record
        if record.receiver_done and record.state is StreamState.COMPLETE and stream.ended:
            # The receiver has everything: whatever the sender says from now on needs no stream.
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
        """Abort the streams of a device that is removed, and drop its uploads."""
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
        """Return whether the device has the message that opened the stream."""
        delivery = session.mailbox.get(stream.key)
        if delivery is None:
            # As long as the message is open, its delivery is still to begin.
            return stream.key not in self._deliveries.items
        return delivery.state is State.RECEIVED

    def ended(self, delivery: Delivery) -> None:
        """Abort a stream if the delivery of the message that opened it has failed."""
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

    # Rows, events and timers.

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
        """Let the sessions at both ends, and those who watch the stream, look at it again."""
        for number in (stream.record.sender, stream.record.receiver):
            session = self._session(number)
            if session is not None:
                self._deliveries.touch(session)
        if stream.key in self._deliveries.watched:
            self._deliveries.effects.append(Changed(stream.key, 0, None))

    def _watch(self, stream: Stream) -> None:
        """Set a timer that gives a stream up when it has not moved for too long."""
        due = stream.record.moved_at + self._deliveries.limits.stream_patience
        self._deliveries.timers.add(due, _StreamPatience(self, stream))

    def woken(self, stream: Stream, now: Micros) -> None:
        """Give up a stream that has not moved for too long; otherwise keep waiting."""
        if self._open.get(stream.key) is not stream:
            return
        if now < stream.record.moved_at + self._deliveries.limits.stream_patience:
            self._watch(stream)
            return
        stream.record.sender_done = stream.record.receiver_done = True
        self.abort(stream, "no bytes moved for too long", now)
        self._settle(stream, now)

    def finish(self, now: Micros) -> None:
        """Restore the streams and uploads, after the messages that opened them were restored."""
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
    """The timer target that checks whether a stream still moves."""

    __slots__ = ("_stream", "_streams")

    def __init__(self, streams: Streams, stream: Stream) -> None:
        self._streams = streams
        self._stream = stream

    def woken(self, now: Micros) -> None:
        self._streams.woken(self._stream, now)


_decode = msgspec.json.Decoder(StreamRecord | UploadRecord).decode


def no_such_stream(key: int) -> NotFound:
    """Return the error for a stream that does not exist, or that this caller may not use."""
    return NotFound("no such stream is open", id=f"{key:016x}")


def read_record(row: StreamRow) -> StreamRecord | None:
    """Return what the store has of a stream; None if the row is of an upload."""
    if not row.record:
        return None
    record = _decode(row.record)
    return record if isinstance(record, StreamRecord) else None
