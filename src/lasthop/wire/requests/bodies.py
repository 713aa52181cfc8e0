"""Units in the body of an HTTP request or answer: each is preceded by its length."""

from __future__ import annotations

from collections import deque

from lasthop.errors import MalformedFrame
from lasthop.wire.varint import MAX_BYTES, encode_varint, read_varint

CONTENT_TYPE = "application/vnd.lasthop.hop"

BODY = 64 * 1024
"""The most bytes of units in one body; a longer unit is alone in its body. Enough to fill a link
for a moment, and little enough to be sent again."""

HEAD = MAX_BYTES
"""Bytes by which a body may be longer than the one unit in it."""


class UnitsToSend:
    """The units that wait for the next body."""

    __slots__ = ("_units", "size")

    def __init__(self) -> None:
        self._units: deque[bytes] = deque()
        self.size = 0
        """Bytes of the units that wait for a body."""

    def __bool__(self) -> bool:
        return bool(self._units)

    def add(self, units: list[bytes]) -> None:
        """Queue units behind those that wait."""
        self._units += units
        self.size += sum(map(len, units))

    def pack(self) -> bytes:
        """Return the next body and remove its units; empty when nothing waits."""
        body = bytearray()
        while self._units and (not body or len(body) + len(self._units[0]) <= BODY):
            unit = self._units.popleft()
            self.size -= len(unit)
            body += encode_varint(len(unit))
            body += unit
        return bytes(body)


def unpack(body: bytes) -> list[bytes]:
    """Return the units of a body; raise MalformedFrame when it is malformed."""
    units = []
    pos = 0
    while pos < len(body):
        length, pos = read_varint(body, pos)
        if pos + length > len(body):
            raise MalformedFrame("a body ends inside a unit")
        units.append(body[pos : pos + length])
        pos += length
    return units
