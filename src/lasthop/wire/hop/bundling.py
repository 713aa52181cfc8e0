"""Packs encoded frames into units; a unit is what one write sends.

On a stream bundling is free: frames follow one another. A datagram holds one frame without a length
or, marked by a leading zero, several with their lengths (docs/hop-protocol.md, "Frames and
mappings"). The unsent part stays small, because the owner asks `full` before it adds more: a frame
that is encoded can no longer expire.
"""

from __future__ import annotations

from lasthop.wire.hop import checksums, layout
from lasthop.wire.hop.checksums import checksum
from lasthop.wire.hop.encoder import Encoder
from lasthop.wire.hop.frames import Frame
from lasthop.wire.hop.mapping import Mapping
from lasthop.wire.varint import read_varint

FLUSH_SIZE = 64 * 1024
"""Bytes after which to write: enough to fill a fast link, and little enough to lose with a broken
one."""


class StreamUnits:
    """The frames to be written next on a stream, one behind the other."""

    __slots__ = ("_checked_from", "_encoder", "_out")

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder
        self._out: bytearray | None = None
        self._checked_from: int | None = None
        """Where the bytes begin that the next checksum is of; None: there are no checksums."""

    def add_checksums(self) -> None:
        """Follow everything from here on by checksums."""
        self._checked_from = self.pending

    @property
    def pending(self) -> int:
        """Bytes of encoded frames that `take` would return now."""
        return len(self._out) if self._out is not None else 0

    def add(self, frame: Frame) -> None:
        """Encode a frame behind those that wait."""
        if self._out is None:
            self._out = bytearray()
        self._encoder.encode(frame, self._out)
        start = self._checked_from
        if start is not None and len(self._out) - start > checksums.MOST_HELD:
            self._checked_from = self._add_checksum(self._out, start)

    def take(self) -> list[bytes]:
        """Return the bytes to write and forget them."""
        out, self._out = self._out, None
        if not out:
            return []
        if self._checked_from is not None:
            self._add_checksum(out, self._checked_from)
            self._checked_from = 0
        return [bytes(out)]

    def _add_checksum(self, out: bytearray, start: int) -> int:
        """Add the checksum of what follows `start`, if anything does; return the new end."""
        if len(out) > start:
            out += bytes((checksums.MARK,)) + checksum(out[start:] if start else out)
        return len(out)


class DatagramUnits:
    """The frames to be sent next as datagrams: bundles of at most `max_frame` bytes, or one frame
    each."""

    __slots__ = ("_bundled", "_checked", "_done", "_encoder", "_frames", "_out")

    def __init__(self, encoder: Encoder, *, bundled: bool) -> None:
        self._encoder = encoder
        self._bundled = bundled
        self._checked = False
        self._out: bytearray | None = None
        self._frames = 0
        self._done: list[bytes] | None = None

    def add_checksums(self) -> None:
        """End every unit from here on with its checksum."""
        self._finish()
        self._checked = True

    @property
    def pending(self) -> int:
        """Bytes of encoded frames that `take` would return now."""
        done = sum(map(len, self._done)) if self._done is not None else 0
        return done + (len(self._out) if self._out is not None else 0)

    def add(self, frame: Frame) -> None:
        """Encode a frame into the current bundle, or into a new one when the current bundle is
        full."""
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
        """Return the units to send and forget them."""
        self._finish()
        done, self._done = self._done, None
        return done or []

    def _finish(self) -> None:
        out, self._out = self._out, None
        if out is None or not self._frames:
            return
        unit = bytes(out)
        if self._frames == 1:
            # A frame alone in its unit needs neither the mark of a bundle nor its length.
            unit = unit[read_varint(unit, 1)[1] :]
        self._frames = 0
        if self._done is None:
            self._done = []
        self._done.append(unit + checksum(unit) if self._checked else unit)


def units(encoder: Encoder, mapping: Mapping, *, bundled: bool) -> StreamUnits | DatagramUnits:
    """Return the packing of frames that suits a mapping."""
    return StreamUnits(encoder) if mapping.streamed else DatagramUnits(encoder, bundled=bundled)
