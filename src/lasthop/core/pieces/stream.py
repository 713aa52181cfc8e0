"""One stream: the window of it that the gateway holds, and how it ends.

Bytes come in order from one sender and go in order to one receiver; either is a device or somebody
at the REST door. The gateway holds what the receiver has not taken, and the sender waits when that
is a whole window. Every position is durable, so a stream goes on after any break.
"""

from __future__ import annotations

import zlib
from collections import deque
from enum import StrEnum

import msgspec

from lasthop.clock import Micros
from lasthop.errors import Conflict, InvalidRequest


class StreamState(StrEnum):
    """How far a stream is. Both ends may differ in what they know of it."""

    OPEN = "open"
    COMPLETE = "complete"
    """The sender has ended it; the receiver may not have all of it yet."""
    ABORTED = "aborted"
    """The sender, or the gateway, has given it up."""
    STOPPED = "stopped"
    """The receiver wants no more of it."""


class StreamRecord(msgspec.Struct, array_like=True, tag="stream"):
    """What the store keeps of a stream, besides its pieces. New fields go to the end."""

    app: str
    source: str
    target: str
    sender: int
    """Device number; 0: it comes in over REST."""
    theirs: int
    """The key that the sending device gave it."""
    receiver: int
    """Device number; 0: it is fetched over REST."""
    priority: int
    opened_at: Micros
    content_type: str = ""
    title: str | None = None
    received: int = 0
    taken: int = 0
    checksum: int = 0
    """CRC-32 of what was received."""
    state: StreamState = StreamState.OPEN
    reason: str = ""
    sender_done: bool = False
    receiver_done: bool = False
    moved_at: Micros = 0
    """When it last came any further."""
    queue: str | None = None


class Stream:
    """A stream that is not over."""

    __slots__ = ("_chunks", "durable", "ended", "key", "record", "watch_due")

    def __init__(self, key: int, record: StreamRecord) -> None:
        self.key = key
        self.record = record
        self.durable = record.received
        """Bytes that may be handed on."""
        self.ended = record.state is not StreamState.OPEN
        """Whether its end is durable."""
        self._chunks: deque[tuple[int, bytes]] = deque()
        self.watch_due: Micros = 0

    @property
    def open(self) -> bool:
        """Whether the sender may send."""
        return self.record.state is StreamState.OPEN

    @property
    def over(self) -> bool:
        """Whether both ends know how it ended."""
        return self.record.sender_done and self.record.receiver_done

    def restore(self, offset: int, body: bytes) -> None:
        """A piece that the store has."""
        self._chunks.append((offset, body))

    def fresh(self, offset: int, body: bytes, window: int) -> bytes:
        """What of these bytes is new and fits into the window."""
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
        """Take bytes that are new and fit; returns the offset of the first."""
        record = self.record
        offset = record.received
        record.received += len(body)
        record.checksum = zlib.crc32(body, record.checksum)
        record.moved_at = now
        self._chunks.append((offset, body))
        return offset

    def check_end(self, size: int | None, checksum: int | None) -> None:
        """Whether what the sender believes to have sent is what came."""
        record = self.record
        if size is not None and size != record.received:
            raise Conflict("not all of the stream has come", size=size, position=record.received)
        if checksum is not None and checksum != record.checksum:
            raise InvalidRequest(
                "the checksum is not that of what came",
                checksum=f"{checksum:08x}",
                expected=f"{record.checksum:08x}",
            )

    def read(self, offset: int, size: int) -> bytes:
        """Durable bytes from here on, at most so many; none if they were handed on."""
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
        """The receiver has what is below; returns where the first piece that is kept begins, if
        some are kept no longer."""
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
        """Nobody will have the rest."""
        self._chunks.clear()
