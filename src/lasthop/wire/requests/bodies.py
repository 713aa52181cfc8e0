"""Units in the body of an HTTP request or answer: each is preceded by its length."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from lasthop.errors import DamagedWrite, MalformedFrame
from lasthop.wire.hop.checksums import CHANGED, MARK, TRAILER, checksum
from lasthop.wire.varint import MAX_BYTES, encode_varint, read_varint

CONTENT_TYPE = "application/vnd.lasthop.hop"

BODY = 64 * 1024
"""The largest number of bytes of units in one body; a longer unit is alone in its body. Enough to
fill a link for a moment, and little enough to be sent again."""

HEAD = MAX_BYTES + TRAILER
"""Bytes by which a body may be longer than the one unit in it: its length, and a checksum."""


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


class Unpacked(NamedTuple):
    """The content of the body of a request or an answer."""

    units: list[bytes]
    checked: bool
    """Whether the body had a checksum, which fits."""


def request_label(number: int, seen: int) -> bytes:
    """Return what the checksum of a request covers beside its body: a damaged number or count would
    make the gateway forget an answer that the device never saw."""
    return f"{number}?seen={seen}".encode()


def answer_label(number: int) -> bytes:
    """Return what the checksum of an answer covers beside its body."""
    return str(number).encode()


def with_checksum(body: bytes, label: bytes) -> bytes:
    """Return a body with its checksum, which covers the `label` too."""
    return body + bytes((MARK,)) + checksum(body, label)


def unpack(body: bytes) -> list[bytes]:
    """Return the units of a body, as `unpack_checked` does."""
    return unpack_checked(body, b"").units


def unpack_checked(body: bytes, label: bytes) -> Unpacked:
    """Return the units of a body; raise MalformedFrame when it is malformed, and DamagedWrite when
    it has a checksum that does not fit."""
    units: list[bytes] = []
    pos = 0
    while pos < len(body):
        start = pos
        length, pos = read_varint(body, pos)
        if length == MARK:
            if checksum(body[:start], label) != body[pos:]:
                raise DamagedWrite(CHANGED)
            return Unpacked(units, checked=True)
        if pos + length > len(body):
            raise MalformedFrame("a body ends inside a unit")
        units.append(body[pos : pos + length])
        pos += length
    return Unpacked(units, checked=False)
