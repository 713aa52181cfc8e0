"""One stream: the window of its bytes that the gateway holds, and how it ends.

Bytes come in order from one sender and go in order to one receiver; either is a device or a client
of the REST interface. The gateway holds what the receiver has not taken, and the sender waits when
that is a whole window. Every position is durable, so a stream goes on after any break.
"""

from __future__ import annotations

import zlib
from collections import deque
from enum import StrEnum

import msgspec

from lasthop.clock import Micros
from lasthop.errors import Conflict, InvalidRequest


class StreamState(StrEnum):
    """The state of a stream. The two ends may know of it at different times."""

    OPEN = "open"
    COMPLETE = "complete"
    """The sender has ended the stream; the receiver may not have all of it yet."""
    ABORTED = "aborted"
    """The sender, or the gateway, has given the stream up."""
    STOPPED = "stopped"
    """The receiver wants no more of the stream."""


class StreamRecord(msgspec.Struct, array_like=True, tag="stream"):
    """What the store keeps of a stream, besides its pieces. New fields go to the end."""

    app: str
    source: str
    target: str
    sender: int
    """The number of the sending device; 0 if the stream comes in over REST."""
    theirs: int
    """The key that the sending device gave the stream."""
    receiver: int
    """The number of the receiving device; 0 if the stream is fetched over REST."""
    priority: int
    opened_at: Micros
    content_type: str = ""
    title: str | None = None
    received: int = 0
    taken: int = 0
    checksum: int = 0
    """CRC-32 of all bytes received so far."""
    state: StreamState = StreamState.OPEN
    reason: str = ""
    sender_done: bool = False
    receiver_done: bool = False
    moved_at: Micros = 0
    """When bytes of the stream last came in or were taken."""
    queue: str | None = None


class Stream:
    """A stream that is not over, with the bytes that the receiver has not taken."""

    __slots__ = ("_chunks", "durable", "ended", "key", "record", "watch_due")

    def __init__(self, key: int, record: StreamRecord) -> None:
        self.key = key
        self.record = record
        self.durable = record.received
        """Number of bytes that are durable, and may be handed on."""
        self.ended = record.state is not StreamState.OPEN
        """Whether the end of the stream is durable."""
        self._chunks: deque[tuple[int, bytes]] = deque()
        self.watch_due: Micros = 0

    @property
    def open(self) -> bool:
        """Whether the sender may send more."""
        return self.record.state is StreamState.OPEN

    @property
    def over(self) -> bool:
        """Whether both ends know how the stream ended."""
        return self.record.sender_done and self.record.receiver_done

    def restore(self, offset: int, body: bytes) -> None:
        """Add a piece that the store has."""
        self._chunks.append((offset, body))

    def fresh(self, offset: int, body: bytes, window: int) -> bytes:
        """Return the bytes among these that are new and fit into the window; raise an error if the
        stream has ended, or if bytes in between are missing."""
        record = self.record
        if not self.open:
            raise Conflict(
                f"the stream is {record.state}", reason=record.reason, position=record.received
            )
        if offset > record.received:
            raise Conflict(
                "the stream goes on at its position", offset=offset, position=record.received
            )
        room = max(0, record.taken + window - record.received)
        return body[record.received - offset :][:room]

    def append(self, body: bytes, now: Micros) -> int:
        """Append new bytes, and return the offset of the first."""
        record = self.record
        offset = record.received
        record.received += len(body)
        record.checksum = zlib.crc32(body, record.checksum)
        record.moved_at = now
        self._chunks.append((offset, body))
        return offset

    def check_end(self, size: int | None, checksum: int | None) -> None:
        """Raise an error if the size or checksum that the sender states is not that of the received
        bytes."""
        record = self.record
        if size is not None and size != record.received:
            raise Conflict(
                "some bytes of the stream are missing", size=size, position=record.received
            )
        if checksum is not None and checksum != record.checksum:
            raise InvalidRequest(
                "the checksum does not match the received bytes",
                checksum=f"{checksum:08x}",
                expected=f"{record.checksum:08x}",
            )

    def read(self, offset: int, size: int) -> bytes:
        """Return up to `size` durable bytes from `offset`; none if the gateway no longer has
        them."""
        size = min(size, self.durable - offset)
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

    def taken(self, offset: int, now: Micros) -> int | None:
        """Note that the receiver has all bytes below `offset`; return the offset of the first piece
        that is still kept, or None if no piece was dropped."""
        record = self.record
        if offset <= record.taken:
            return None
        record.taken = offset
        record.moved_at = now
        before = len(self._chunks)
        while self._chunks and self._chunks[0][0] + len(self._chunks[0][1]) <= offset:
            self._chunks.popleft()
        if len(self._chunks) == before:
            return None
        return self._chunks[0][0] if self._chunks else record.received

    def drop(self) -> None:
        """Drop the bytes that no receiver will take."""
        self._chunks.clear()
