"""The two ends of a stream that are devices, as the piece pump uses them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lasthop.clock import Micros
from lasthop.core.pieces.stream import Stream, StreamState
from lasthop.core.session import Session
from lasthop.errors import LasthopError
from lasthop.wire.hop.frames import Ending, EndStatus, Piece
from lasthop.wire.hop.transfer import Receiving

if TYPE_CHECKING:
    from lasthop.core.pieces.streams import Streams


class FromDevice:
    """The end of a stream at which a device sends."""

    stream = True

    def __init__(self, streams: Streams, stream: Stream, session: Session) -> None:
        self._streams = streams
        self._stream = stream
        self._session = session
        record = stream.record
        self._end: Ending | None = None
        self.receiving = Receiving(received=record.received, limit=record.taken + streams.window)

    @property
    def over(self) -> bool:
        return self._stream.record.sender_done

    def piece(self, piece: Piece, now: Micros) -> None:
        offset = self.receiving.received
        body = self.receiving.take(piece)
        if body and self._stream.open:
            self._streams.append(self._stream, offset, body, now)
            if self._end is not None:
                self.ending(self._end, now)

    def ending(self, ending: Ending, now: Micros) -> None:
        stream, streams = self._stream, self._streams
        if ending.status == EndStatus.ABORTED:
            streams.abort(stream, ending.reason or "the device gave it up", now)
            streams.sender_done(stream, now)
        elif self.receiving.received < ending.size:
            self._end = ending  # The end has overtaken some of the pieces.
            self.receiving.again()
        else:
            try:
                streams.end(stream, now, size=ending.size, checksum=ending.checksum)
            except LasthopError as error:
                streams.stop(stream, str(error), now)

    def answer(self) -> Ending | None:
        """Return how the stream ended, once that is durable; None before, after updating the
        position."""
        stream = self._stream
        record = stream.record
        receiving = self.receiving
        receiving.durable = stream.durable
        receiving.grant(record.taken + self._streams.window)
        if not stream.ended:
            return None
        status = EndStatus.CONFIRMED
        if record.state is not StreamState.COMPLETE and not record.sender_done:
            status = EndStatus.STOPPED
        return Ending(record.theirs, status, reason=record.reason, stream=True)


class ToDevice:
    """The end of a stream at which a device receives."""

    def __init__(self, streams: Streams, stream: Stream, session: Session) -> None:
        self._streams = streams
        self._stream = stream
        self._session = session

    @property
    def priority(self) -> int:
        return self._stream.record.priority

    @property
    def queue(self) -> str | None:
        return self._stream.record.queue

    @property
    def quality(self) -> None:
        return None

    @property
    def deadline(self) -> None:
        return None

    @property
    def available(self) -> int:
        return self._stream.durable

    def read(self, offset: int, size: int) -> bytes | None:
        return self._stream.read(offset, size)

    def refusal(self, now: Micros) -> str | None:
        return None

    def announced(self) -> bool:
        return self._streams.announced(self._stream, self._session)

    @property
    def floor(self) -> int:
        return self._stream.record.taken

    def lost(self, now: Micros) -> None:
        self._streams.abort(self._stream, "the gateway or the device has lost bytes of it", now)

    def taken(self, offset: int, now: Micros) -> None:
        self._streams.taken(self._stream, offset, now)

    def last_word(self) -> Ending | None:
        stream = self._stream
        record = stream.record
        if not stream.ended:
            return None
        if record.state is StreamState.COMPLETE:
            return Ending(
                stream.key, EndStatus.COMPLETE, record.received, record.checksum, stream=True
            )
        return Ending(stream.key, EndStatus.ABORTED, reason=record.reason, stream=True)

    def confirmed(self, now: Micros) -> None:
        self._streams.receiver_done(self._stream, now)

    def stopped(self, reason: str, now: Micros) -> None:
        self._streams.stop(self._stream, reason or "the device wants no more", now)
