"""Streams on a device, and bodies that come in pieces: one class for each kind of transfer, without
I/O.

Incoming bytes are kept until the application has read them, outgoing ones until the gateway has
them. Received bytes are not acknowledged, and written bytes are not sent, before they are durable
on this device.
"""

from __future__ import annotations

import zlib
from collections import deque

from lasthop.device.change import DevicePieceRow, FlowState
from lasthop.errors import Conflict
from lasthop.wire.hop.frames import Ending, EndStatus, Piece
from lasthop.wire.hop.transfer import CORRUPT, FIRST_LIMIT, Receiving, Sending


class Chunks:
    """Consecutive bytes from some offset on, kept as chunks."""

    __slots__ = ("_chunks",)

    def __init__(self) -> None:
        self._chunks: deque[tuple[int, bytes]] = deque()

    def add(self, offset: int, body: bytes) -> None:
        """Append the chunk that begins at `offset`."""
        self._chunks.append((offset, body))

    def read(self, offset: int, size: int) -> bytes:
        """Return up to `size` bytes from `offset` on."""
        found: list[bytes] = []
        for start, chunk in self._chunks:
            if size <= 0:
                break
            if start <= offset < start + len(chunk):
                part = chunk[offset - start : offset - start + size]
                found.append(part)
                offset += len(part)
                size -= len(part)
        return found[0] if len(found) == 1 else b"".join(found)

    def drop_below(self, offset: int) -> int | None:
        """Drop the chunks that end at or below `offset`; return where the kept ones begin, None if
        none was dropped."""
        gone = None
        while self._chunks and self._chunks[0][0] + len(self._chunks[0][1]) <= offset:
            start, chunk = self._chunks.popleft()
            gone = start + len(chunk)
        return gone

    def all(self) -> bytes:
        """Return the bytes of all chunks together."""
        return b"".join(chunk for _, chunk in self._chunks)

    @property
    def parts(self) -> list[bytes]:
        """The chunks in the order of their offsets."""
        return [chunk for _, chunk in self._chunks]


class Body:
    """A body that comes in pieces: ahead of its message, or because the application fetches it."""

    def __init__(self, key: int, *, window: int, most: int) -> None:
        self.key = key
        self.receiving = Receiving(limit=FIRST_LIMIT)
        self.chunks = Chunks()
        self.complete = False
        self.answer: Ending | None = None
        self._window = window
        self._most = most
        self._end: Ending | None = None
        self._checksum = 0
        self.grow()

    def restore(self, row: DevicePieceRow) -> None:
        """Restore a piece that was stored before a restart."""
        self._take(row.body, row.offset)
        self.receiving.received = self.receiving.durable = row.offset + len(row.body)
        self.grow()

    def _take(self, body: bytes, offset: int) -> None:
        self.chunks.add(offset, body)
        self._checksum = zlib.crc32(body, self._checksum)

    def take(self, piece: Piece) -> DevicePieceRow | None:
        """Handle a piece that the gateway sends; return a row with its new bytes to store, None if
        it has no new bytes."""
        offset = self.receiving.received
        body = self.receiving.take(piece)
        if not body:
            return None
        if self.receiving.received > self._most:
            reason = f"a body has at most {self._most} bytes on this device"
            self.answer = Ending(self.key, EndStatus.STOPPED, reason=reason)
            return None
        self._take(body, offset)
        return DevicePieceRow(self.key, True, offset, body)

    def spoil(self) -> None:
        """Refuse the body because its pieces do not fit together: the gateway may have sent another
        body for the same message before."""
        self.complete = False
        self.answer = Ending(self.key, EndStatus.STOPPED, reason=CORRUPT)

    def durable(self, offset: int) -> None:
        """Note that the bytes below `offset` are durable."""
        self.receiving.durable = max(self.receiving.durable, offset)
        self.grow()
        if self._end is not None:
            self.end(self._end)

    def grow(self) -> None:
        """Allow the gateway to send more of the body."""
        # One byte above the limit, so that a body that is too large can be recognised and stopped.
        self.receiving.grant(min(self.receiving.durable + self._window, self._most + 1))

    def end(self, ending: Ending) -> None:
        """Handle the frame with which the gateway ends the body: it has the size and checksum of
        the whole body."""
        receiving = self.receiving
        if receiving.received < ending.size and not self.complete:
            self._end = ending  # The ending has overtaken some of the pieces.
            receiving.again()
        elif (receiving.received, self._checksum) != (ending.size, ending.checksum):
            self.spoil()
        elif receiving.durable == ending.size:
            self.complete = True
            self.answer = Ending(self.key, EndStatus.CONFIRMED)
        else:
            self._end = ending


class Inflow:
    """A stream that this device receives."""

    def __init__(self, key: int, state: FlowState, *, window: int) -> None:
        self.key = key
        self.position = state.position
        """The number of bytes that the application has read."""
        self.checksum = state.checksum
        self.size = state.size
        self.end_checksum = state.end_checksum
        self.failed = state.failed
        self.reason = state.reason
        self.receiving = Receiving(received=state.position)
        self.answer: Ending | None = None
        """The frame that answers the end of the stream; None until the end is durable or the
        application stops the stream."""
        self.early: Ending | None = None
        """The frame that ends the stream, if it came before some of the pieces."""
        self._window = window
        self._chunks = Chunks()
        self.grow()

    def state(self) -> FlowState:
        """Return the progress of the stream, for the inbox."""
        return FlowState(
            self.position, self.checksum, self.size, self.end_checksum, self.failed, self.reason
        )

    def restore(self, row: DevicePieceRow) -> None:
        """Restore a piece that was stored before a restart; the checksum already covers it."""
        self._chunks.add(row.offset, row.body)
        self.receiving.received = self.receiving.durable = row.offset + len(row.body)

    def take(self, piece: Piece) -> DevicePieceRow | None:
        """Handle a piece that the gateway sends; return a row with its new bytes to store, None if
        it has no new bytes."""
        offset = self.receiving.received
        body = self.receiving.take(piece)
        if not body:
            return None
        self._chunks.add(offset, body)
        self.checksum = zlib.crc32(body, self.checksum)
        return DevicePieceRow(self.key, True, offset, body)

    def durable(self, offset: int) -> None:
        """Note that the bytes below `offset` are durable."""
        self.receiving.durable = max(self.receiving.durable, offset)

    def grow(self) -> None:
        """Allow the gateway to send a window beyond what the application has read."""
        self.receiving.grant(self.position + self._window)

    def end(self, ending: Ending) -> bool:
        """Handle the frame with which the gateway ends the stream; return False if there is nothing
        to store."""
        if self.size >= 0 or self.failed:
            return False
        if ending.status == EndStatus.ABORTED:
            self.failed, self.reason = True, ending.reason or "the sender aborted the stream"
        elif self.receiving.received < ending.size:
            self.early = ending
            self.receiving.again()
            return False
        elif (self.receiving.received, self.checksum) != (ending.size, ending.checksum):
            self.failed, self.reason = True, CORRUPT
        else:
            self.size, self.end_checksum = ending.size, ending.checksum
        return True

    def settle(self) -> None:
        """Prepare the answer to the stream's end, which is durable now: the gateway may forget the
        stream."""
        if self.size >= 0 or self.failed:
            status = EndStatus.CONFIRMED
            if self.reason == CORRUPT:
                status = EndStatus.STOPPED
            self.answer = Ending(self.key, status, reason=self.reason, stream=True)

    def stop(self, reason: str) -> None:
        """End the stream because the application wants no more of it."""
        self.failed, self.reason = True, reason
        self.answer = Ending(self.key, EndStatus.STOPPED, reason=reason, stream=True)

    def read(self, most: int) -> bytes:
        """Return the next durable bytes for the application, at most `most`."""
        size = min(most, self.receiving.durable - self.position)
        return self._chunks.read(self.position, size) if size > 0 else b""

    def consume(self, position: int) -> int | None:
        """Note that the application has read everything below `position`; return the offset below
        which pieces need not be stored, or None."""
        if not self.position < position <= self.receiving.durable:
            return None
        self.position = position
        self.grow()
        return self._chunks.drop_below(position)

    @property
    def at_end(self) -> bool:
        """Whether the application has read the whole stream, and its end is durable."""
        return self.answer is not None and self.size == self.position


class OutgoingFlow:
    """A stream that this device sends."""

    def __init__(self, key: int, state: FlowState, *, window: int, announced: bool) -> None:
        self.key = key
        self.written = self.available = state.position
        """The number of bytes that the application has written (`written`), and the number of them
        that are durable (`available`)."""
        self.checksum = state.checksum
        self.size = state.size
        self.failed = state.failed
        self.reason = state.reason
        self.target = state.target
        self.content_type = state.content_type
        self.title = state.title
        self.priority = state.priority
        self.queue = state.queue
        self.ended = state.size >= 0 or state.failed
        """Whether the end of the stream is durable."""
        self.announced = announced
        """Whether the gateway has the message that opens the stream."""
        self.sending = Sending(key, stream=True, taken=state.position)
        self._window = window
        self.chunks = Chunks()

    def state(self) -> FlowState:
        """Return the progress of the stream, for the inbox."""
        return FlowState(
            self.written,
            self.checksum,
            self.size,
            0,
            self.failed,
            self.reason,
            self.target,
            self.content_type,
            self.title,
            self.priority,
            self.queue,
        )

    def restore(self, row: DevicePieceRow) -> None:
        """Restore a piece that was stored before a restart and that the gateway may not have."""
        self.chunks.add(row.offset, row.body)
        self.sending.taken = self.sending.cursor = min(self.sending.taken, row.offset)

    @property
    def room(self) -> int:
        """The number of bytes that the application may write now."""
        return max(0, self.sending.taken + self._window - self.written)

    def write(self, body: bytes) -> DevicePieceRow | None:
        """Accept as many bytes from the application as fit; return a row with them to store, None
        if there is no room. Raises Conflict if the stream is over."""
        if self.failed:
            raise Conflict("the stream has been given up", reason=self.reason)
        if self.size >= 0:
            raise Conflict("the stream has ended")
        body = body[: self.room]
        if not body:
            return None
        row = DevicePieceRow(self.key, False, self.written, body)
        self.chunks.add(self.written, body)
        self.checksum = zlib.crc32(body, self.checksum)
        self.written += len(body)
        return row

    def last_word(self) -> Ending | None:
        """Return the frame that ends the stream, once its end is durable; None before."""
        if not self.ended:
            return None
        if self.failed:
            return Ending(self.key, EndStatus.ABORTED, reason=self.reason, stream=True)
        return Ending(self.key, EndStatus.COMPLETE, self.size, self.checksum, stream=True)
