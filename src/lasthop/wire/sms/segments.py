"""How a datagram or a text becomes short messages, and how they become one again.

A short message has 140 octets, of which a header takes some. A push has ports and, if it needs
several messages, concatenation; a text has only the latter.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable

import msgspec

from lasthop.clock import HOUR, Micros
from lasthop.errors import TooLarge
from lasthop.wire.sms.alphabets import ESCAPE, Alphabet, alphabet_of, encode_text
from lasthop.wire.sms.header import Part, Ports, UserHeader, decode_header

ROOM = 140
"""The octets of user data in one short message, header included."""

SEPTETS = 160
"""The characters of GSM 7-bit in one short message without a header."""

MAX_PARTS = 255
"""The most parts of one message: their number has one octet."""

MAX_WAITING = 1000
"""The most unfinished messages that wait for their other parts; the oldest is dropped."""

WAITS_FOR = HOUR
"""How long an unfinished message waits: a part that was lost is not sent again after that."""


class SmsSegment(msgspec.Struct, frozen=True):
    """One short message: its header and its content, in which each septet has an octet."""

    alphabet: Alphabet
    content: bytes
    header: UserHeader = UserHeader()

    @property
    def user_data(self) -> bytes:
        """The octets as an SMSC takes them: the header, if there is one, and then the content."""
        return self.header.encode() + self.content


def split_datagram(
    datagram: bytes, ports: Ports, reference: int, *, wide: bool = False, most: int = MAX_PARTS
) -> list[SmsSegment]:
    """Return the short messages of a datagram for an application of a phone, at most `most`."""
    alone = UserHeader(ports=ports)
    if len(datagram) <= ROOM - len(alone.encode()):
        return [SmsSegment(Alphabet.OCTETS, datagram, alone)]
    room = ROOM - len(UserHeader(Part(0, 1, 1, wide), ports).encode())
    pieces = [datagram[at : at + room] for at in range(0, len(datagram), room)]
    return _numbered(Alphabet.OCTETS, pieces, ports, reference, wide=wide, most=most)


def split_text(
    text: str,
    reference: int,
    *,
    alphabet: Alphabet | None = None,
    wide: bool = False,
    most: int = MAX_PARTS,
) -> list[SmsSegment]:
    """Return the short messages of a text for people, in the cheapest alphabet unless one is
    named."""
    chosen = alphabet or alphabet_of(text)
    octets = encode_text(text, chosen)
    header = len(UserHeader(Part(0, 1, 1, wide)).encode())
    if chosen is Alphabet.GSM:
        # After a header the septets begin at the next boundary of seven bits.
        alone, room = SEPTETS, SEPTETS - (8 * header + 6) // 7
    else:
        alone, room = ROOM, ROOM - header
    if len(octets) <= alone:
        return [SmsSegment(chosen, octets)]
    pieces = _cut(octets, room, _CUTS.get(chosen, _anywhere))
    return _numbered(chosen, pieces, None, reference, wide=wide, most=most)


def _numbered(
    alphabet: Alphabet,
    pieces: list[bytes],
    ports: Ports | None,
    reference: int,
    *,
    wide: bool,
    most: int,
) -> list[SmsSegment]:
    total = len(pieces)
    if total > min(most, MAX_PARTS):
        raise TooLarge("too many short messages", messages=total, limit=min(most, MAX_PARTS))
    kept = reference & (0xFFFF if wide else 0xFF)
    return [
        SmsSegment(alphabet, piece, UserHeader(Part(kept, total, number, wide), ports))
        for number, piece in enumerate(pieces, 1)
    ]


def _cut(octets: bytes, room: int, good: Callable[[bytes, int], int]) -> list[bytes]:
    pieces: list[bytes] = []
    at = 0
    while at < len(octets):
        end = good(octets, min(at + room, len(octets)))
        pieces.append(octets[at:end])
        at = end
    return pieces


def _anywhere(_octets: bytes, end: int) -> int:
    return end


def _after_escapes(octets: bytes, end: int) -> int:
    """Return where to cut so that no escape is parted from what it escapes."""
    escaped = end < len(octets) and octets[end - 1] == ESCAPE
    return end - 1 if escaped else end


def _after_units(octets: bytes, end: int) -> int:
    """Return where to cut so that no character is parted: a unit has two octets, and two surrogates
    are one character."""
    end -= end % 2
    high = end < len(octets) and 0xD8 <= octets[end - 2] <= 0xDB
    return end - 2 if high else end


_CUTS = {Alphabet.GSM: _after_escapes, Alphabet.UCS2: _after_units}


class _Waiting(msgspec.Struct):
    """A message of which some parts have come."""

    total: int
    since: Micros
    parts: dict[int, bytes]


class Reassembly:
    """Puts the parts of long messages together again, whatever their order, each message once."""

    def __init__(self) -> None:
        self._waiting: dict[Hashable, _Waiting] = {}

    def __len__(self) -> int:
        """Return the number of unfinished messages."""
        return len(self._waiting)

    def add(
        self, sender: Hashable, header: UserHeader, content: bytes, now: Micros
    ) -> bytes | None:
        """Add a short message, and return the whole that it completes; None if parts are missing.

        `sender` is whatever else ties parts together: both addresses and the alphabet.
        """
        part = header.part
        if part is None:
            return content
        key = (sender, header.ports, part.reference, part.wide)
        known = self._waiting.get(key)
        if known is None or known.total != part.total or now >= known.since + WAITS_FOR:
            self._waiting.pop(key, None)
            known = self._waiting[key] = _Waiting(part.total, now, {})
            self._forget(now)
        known.parts[part.number] = content
        if len(known.parts) < part.total:
            return None
        del self._waiting[key]
        return b"".join(known.parts[n] for n in range(1, part.total + 1))

    def _forget(self, now: Micros) -> None:
        """Drop the messages that have waited too long, and the oldest of too many."""
        while self._waiting:
            oldest = next(iter(self._waiting))
            late = now >= self._waiting[oldest].since + WAITS_FOR
            if not late and len(self._waiting) <= MAX_WAITING:
                return
            del self._waiting[oldest]


def read_segment(user_data: bytes, alphabet: Alphabet, *, headed: bool) -> SmsSegment:
    """Return the segment in the user data that an SMSC hands over; raise Malformed."""
    if not headed:
        return SmsSegment(alphabet, user_data)
    header, end = decode_header(user_data)
    return SmsSegment(alphabet, user_data[end:], header)
