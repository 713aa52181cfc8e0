"""The user data header of a short message: application ports and concatenation (3GPP 23.040,
9.2.3.24).

The header is a length and then elements of a kind, a length and data. `UserHeader` has the two
elements that pushes use; other elements are kept as they came.
"""

from __future__ import annotations

import msgspec

from lasthop.errors import Malformed, TooLarge

CONCATENATED_8, CONCATENATED_16 = 0x00, 0x08
PORTS_8, PORTS_16 = 0x04, 0x05
"""The kinds of the elements: with a reference of 8 or 16 bits, with ports of 8 or 16 bits."""

MAX_HEADER = 140
"""The largest header in octets: a short message has no more room."""


class Ports(msgspec.Struct, frozen=True):
    """The application at each end: a push goes from 9200 to 2948."""

    destination: int
    source: int


class Part(msgspec.Struct, frozen=True):
    """The place of a short message among the parts of a longer one."""

    reference: int
    """The number that all parts of the message share."""
    total: int
    number: int
    """The part's own number, from 1 to `total`."""
    wide: bool = False
    """Whether the reference has 16 bits."""


class UserHeader(msgspec.Struct, frozen=True):
    """The header in front of the content of a short message."""

    part: Part | None = None
    ports: Ports | None = None
    others: tuple[tuple[int, bytes], ...] = ()
    """The elements of other kinds, in their order."""

    def encode(self) -> bytes:
        """Return the header with its length in front; nothing if it has no element."""
        elements = b"".join(_element(kind, data) for kind, data in self._elements())
        if not elements:
            return b""
        if len(elements) >= MAX_HEADER:
            raise TooLarge("the header has no room in a short message", size=len(elements) + 1)
        return bytes((len(elements),)) + elements

    def _elements(self) -> list[tuple[int, bytes]]:
        found: list[tuple[int, bytes]] = []
        if (part := self.part) is not None:
            width = 2 if part.wide else 1
            octets = part.reference.to_bytes(width, "big") + bytes((part.total, part.number))
            found.append((CONCATENATED_16 if part.wide else CONCATENATED_8, octets))
        if (ports := self.ports) is not None:
            octets = ports.destination.to_bytes(2, "big") + ports.source.to_bytes(2, "big")
            found.append((PORTS_16, octets))
        return [*found, *self.others]


def _element(kind: int, data: bytes) -> bytes:
    if len(data) > MAX_HEADER:
        raise TooLarge("the header has no room in a short message", size=len(data))
    return bytes((kind, len(data))) + data


def decode_header(octets: bytes) -> tuple[UserHeader, int]:
    """Return the header at the beginning of user data, and the number of octets that it takes;
    raise Malformed."""
    if not octets or len(octets) <= octets[0]:
        raise Malformed("the user data ends within its header", offset=len(octets))
    end = 1 + octets[0]
    part: Part | None = None
    ports: Ports | None = None
    others: list[tuple[int, bytes]] = []
    at = 1
    while at < end:
        if at + 2 > end or at + 2 + octets[at + 1] > end:
            raise Malformed("an element ends after its header", offset=at)
        kind, data = octets[at], octets[at + 2 : at + 2 + octets[at + 1]]
        at += 2 + len(data)
        found = _read_part(kind, data)
        # Of several elements of a kind the last one counts (3GPP 23.040, 9.2.3.24).
        if found is not None:
            part = found
        elif kind == PORTS_16 and len(data) == 4:
            ports = Ports(int.from_bytes(data[:2], "big"), int.from_bytes(data[2:], "big"))
        elif kind == PORTS_8 and len(data) == 2:
            ports = Ports(data[0], data[1])
        elif kind not in (CONCATENATED_8, CONCATENATED_16):
            others.append((kind, data))
    return UserHeader(part, ports, tuple(others)), end


def _read_part(kind: int, data: bytes) -> Part | None:
    """Return the place that an element gives to a message; None for an element of another kind, and
    for one whose numbers are impossible, which is ignored (3GPP 23.040, 9.2.3.24.1)."""
    width = {CONCATENATED_8: 1, CONCATENATED_16: 2}.get(kind)
    if width is None or len(data) != width + 2:
        return None
    total, number = data[-2:]
    if not 1 <= number <= total:
        return None
    return Part(int.from_bytes(data[:width], "big"), total, number, kind == CONCATENATED_16)
