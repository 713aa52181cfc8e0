"""The fields of SMPP's bodies: numbers, texts that end with a zero, octets with their length, and
optional parameters."""

from __future__ import annotations

from typing import TypeAlias

from lasthop.errors import Malformed, TooLarge

Tlvs: TypeAlias = tuple[tuple[int, bytes], ...]
"""Optional parameters in their order: tag and value."""

MAX_TLVS = 64
"""The most optional parameters of one PDU; a peer sends a handful."""


class Cursor:
    """A place in the body of a PDU from which fields are read; every read may raise Malformed."""

    def __init__(self, data: bytes, at: int = 0) -> None:
        self.data = data
        self.at = at

    @property
    def over(self) -> bool:
        """Whether the body has no more octets."""
        return self.at >= len(self.data)

    def number(self, octets: int) -> int:
        """Read a number of so many octets."""
        return int.from_bytes(self.octets(octets), "big")

    def octets(self, count: int) -> bytes:
        """Read this number of octets from the body."""
        end = self.at + count
        if end > len(self.data):
            raise Malformed("the PDU ends within a field", offset=self.at)
        found = self.data[self.at : end]
        self.at = end
        return found

    def text(self, most: int) -> str:
        """Read a text of at most `most` octets, counted with the zero at its end."""
        end = self.data.find(0, self.at, self.at + most)
        if end < 0:
            raise Malformed("a text has no end where it should be", offset=self.at, limit=most)
        found = self.data[self.at : end].decode("latin-1")
        self.at = end + 1
        return found

    def tlvs(self) -> Tlvs:
        """Read the optional parameters up to the end of the body."""
        found: list[tuple[int, bytes]] = []
        while not self.over:
            if len(found) == MAX_TLVS:
                raise TooLarge("too many optional parameters", limit=MAX_TLVS)
            tag, size = self.number(2), self.number(2)
            found.append((tag, self.octets(size)))
        return tuple(found)


def write_text(text: str, most: int) -> bytes:
    """Return a text with a zero at its end; raise TooLarge, or Malformed for a zero in it."""
    octets = text.encode("latin-1", "replace")
    if len(octets) >= most:
        raise TooLarge("a text is too long for its field", size=len(octets), limit=most - 1)
    if 0 in octets:
        raise Malformed("a text with a zero in it", offset=octets.index(0))
    return octets + b"\0"


def write_tlvs(tlvs: Tlvs) -> bytes:
    """Return optional parameters in the form of octets."""
    return b"".join(
        tag.to_bytes(2, "big") + len(value).to_bytes(2, "big") + value for tag, value in tlvs
    )


def tlv(tlvs: Tlvs, tag: int) -> bytes | None:
    """Return the value of an optional parameter; None if it is not there."""
    for found, value in tlvs:
        if found == tag:
            return value
    return None


def tlv_number(tlvs: Tlvs, tag: int) -> int | None:
    """Return the number that an optional parameter holds; None if it is not there."""
    value = tlv(tlvs, tag)
    return None if value is None else int.from_bytes(value, "big")
