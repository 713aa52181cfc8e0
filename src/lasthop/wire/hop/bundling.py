"""Puts encoded frames into units: what goes out with one write.

On a stream bundling is free: frames follow one another. A datagram holds one frame without a length
or, marked by a leading zero, several with theirs. Either way the unsent part stays small, because
the owner asks `full` before it adds more: what lies here can no longer expire.
"""

from __future__ import annotations

from lasthop.wire.hop import layout
from lasthop.wire.hop.encoder import Encoder
from lasthop.wire.hop.frames import Frame
from lasthop.wire.hop.mapping import Mapping
from lasthop.wire.varint import read_varint

FLUSH_SIZE = 64 * 1024
"""Enough for one write to fill a fast link; little enough to throw away with a broken one."""


class StreamUnits:
    """Frames one behind the other, to be written at once."""

    __slots__ = ("_encoder", "_out")

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder
        self._out: bytearray | None = None

    @property
    def pending(self) -> int:
        """Bytes that wait to be taken."""
        return len(self._out) if self._out is not None else 0

    def add(self, frame: Frame) -> None:
        """Encode a frame behind the others."""
        if self._out is None:
            self._out = bytearray()
        self._encoder.encode(frame, self._out)

    def take(self) -> list[bytes]:
        """What to write, and forget it."""
        out, self._out = self._out, None
        return [bytes(out)] if out else []


class DatagramUnits:
    """Frames gathered into bundles of at most `max_frame` bytes; or, unbundled, one by one."""

    __slots__ = ("_bundled", "_done", "_encoder", "_frames", "_out")

    def __init__(self, encoder: Encoder, *, bundled: bool) -> None:
        self._encoder = encoder
        self._bundled = bundled
        self._out: bytearray | None = None
        self._frames = 0
        self._done: list[bytes] | None = None

    @property
    def pending(self) -> int:
        """Bytes that wait to be taken."""
        done = sum(map(len, self._done)) if self._done is not None else 0
        return done + (len(self._out) if self._out is not None else 0)

    def add(self, frame: Frame) -> None:
        """Encode a frame behind the others, in a unit of its own where it must."""
        if self._out is None:
            self._out = bytearray((layout.BUNDLE,))
        before = len(self._out)
        self._encoder.encode(frame, self._out)
        most = layout.MOST_BUNDLED if self._bundled else 1
        if self._frames and (self._frames == most or len(self._out) > self._encoder.max_frame):
            last = self._out[before:]
            del self._out[before:]
            self._finish()
            self._out = bytearray((layout.BUNDLE,)) + last
        self._frames += 1

    def take(self) -> list[bytes]:
        """The units to send, and forget them."""
        self._finish()
        done, self._done = self._done, None
        return done or []

    def _finish(self) -> None:
        out, self._out = self._out, None
        if out is None or not self._frames:
            return
        unit = bytes(out)
        if self._frames == 1:
            # Alone it needs neither the mark nor its length.
            unit = unit[read_varint(unit, 1)[1] :]
        self._frames = 0
        if self._done is None:
            self._done = []
        self._done.append(unit)


def units(encoder: Encoder, mapping: Mapping, *, bundled: bool) -> StreamUnits | DatagramUnits:
    """The packing that a mapping calls for."""
    return StreamUnits(encoder) if mapping.streamed else DatagramUnits(encoder, bundled=bundled)
