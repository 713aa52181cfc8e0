"""Checksums over what is written to a link without TLS (docs/hop-protocol.md, "Checksums").

TCP's own checksum has 16 bits and ends at every proxy: what a bad link or machine changes behind it
arrives as if it had been sent. With the feature `checksums` each write is followed by its CRC-32,
as zlib computes it, and nothing of a write is decoded before its checksum has been found to fit.
"""

from __future__ import annotations

from zlib import crc32

from lasthop.clock import SECOND, Micros
from lasthop.errors import DamagedWrite, FrameTooLarge
from lasthop.wire.varint import MAX_BYTES, read_varint

SIZE = 4
"""The size of a checksum, in bytes."""

MARK = 0
"""On a stream and in the body of an HTTP request a checksum stands where a length would, and no
frame or unit has the length 0."""

TRAILER = 1 + SIZE
"""Bytes of a checksum with its mark."""

FIELD = b"\x1d\x04"
"""Tag 29 and the length of its value: the checksum of a HELLO or WELCOME, its last field."""

MOST_HELD = 64 * 1024
"""Bytes of a stream after which a checksum has to follow the frame that is being written: what is
not checked yet is held in memory, and has arrived in vain if the link breaks."""

STALLED: Micros = 10 * SECOND
"""How long the rest of a write may stay away while nothing arrives at all. A write leaves in one
piece; where its length was changed, the receiver would wait for bytes that nobody sends."""

CHANGED = "a checksum does not fit: the link has changed what was written"


def checksum(data: bytes | bytearray, label: bytes = b"") -> bytes:
    """Return the four bytes of the checksum of `data`; `label` counts as if it came before."""
    return crc32(data, crc32(label) if label else 0).to_bytes(SIZE, "big")


def sealed(payload: bytes) -> bytes:
    """Return the payload of a HELLO or WELCOME with its checksum as one more field."""
    return payload + FIELD + checksum(payload)


def check_seal(payload: bytes) -> bool:
    """Whether the payload of a HELLO or WELCOME ends with its checksum; raise DamagedWrite if that
    does not fit."""
    if payload[-SIZE - 2 : -SIZE] != FIELD:
        return False
    if checksum(payload[: -SIZE - 2]) != payload[-SIZE:]:
        raise DamagedWrite(CHANGED)
    return True


class CheckedUnits:
    """Checks and removes the checksums of datagrams."""

    __slots__ = ()

    partial = False

    def feed(self, unit: bytes | bytearray | memoryview, *, max_frame: int) -> bytes:
        """Return a unit without its checksum; raise DamagedWrite if that does not fit."""
        content, found = bytes(unit[:-SIZE]), bytes(unit[-SIZE:])
        if checksum(content) != found:
            raise DamagedWrite(CHANGED)
        return content


class CheckedStream:
    """The bytes of a stream that wait for the checksum of their write."""

    __slots__ = ("_at", "_buffer")

    def __init__(self) -> None:
        self._buffer: bytearray | None = None
        self._at = 0
        """Where the first frame begins that has not been looked at."""

    @property
    def partial(self) -> bool:
        """Whether a write has begun whose checksum is not here yet."""
        return self._buffer is not None

    def feed(self, data: bytes | bytearray | memoryview, *, max_frame: int) -> bytes:
        """Return the frames of all writes that are complete with these bytes; raise HopError if a
        checksum does not fit."""
        if self._buffer is None and len(data) > TRAILER and data[-TRAILER] == MARK:
            # Mostly exactly one write arrives, and its frames need not be looked for.
            write = bytes(data[:-TRAILER])
            if checksum(write) == data[-SIZE:]:
                return write
        buffer = self._buffer if self._buffer is not None else bytearray()
        buffer += data
        start, at, size = 0, self._at, len(buffer)
        done: list[bytes] = []
        while at < size:
            length = buffer[at]
            if length == MARK:
                if at + TRAILER > size:
                    break
                write = bytes(buffer[start:at])
                if checksum(write) != buffer[at + 1 : at + TRAILER]:
                    raise DamagedWrite(CHANGED)
                done.append(write)
                start = at = at + TRAILER
                continue
            after = at + 1
            if length >= 0x80:
                if size - at < MAX_BYTES and min(buffer[at:]) >= 0x80:
                    break
                length, after = read_varint(bytes(buffer[at : at + MAX_BYTES]), 0)
                after += at
            if length > max_frame:
                raise FrameTooLarge("a frame is too large", size=length, most=max_frame)
            if at - start > MOST_HELD:
                raise DamagedWrite("no checksum follows what was written")
            if after + length > size:
                break
            at = after + length
        del buffer[:start]
        self._buffer = buffer or None
        self._at = at - start
        return b"".join(done)
