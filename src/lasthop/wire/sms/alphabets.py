"""The alphabets of short messages: GSM 7-bit with its extension table, Latin-1, UCS-2, and octets.

A text travels in the cheapest alphabet that has all of its characters. Between gateway and SMSC
each septet of GSM 7-bit has an octet of its own; over the air, and to a modem, eight septets share
seven octets.
"""

from __future__ import annotations

from enum import Enum

from lasthop.errors import Malformed, NotTransformable

_BASIC = (
    "@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞ\x1bÆæßÉ !\"#¤%&'()*+,-./0123456789:;<=>?"
    "¡ABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÑÜ§¿abcdefghijklmnopqrstuvwxyzäöñüà"
)
"""The default alphabet, by septet (3GPP 23.038, 6.2.1)."""

_EXTENSION = {
    0x0A: "\f",
    0x14: "^",
    0x28: "{",
    0x29: "}",
    0x2F: "\\",
    0x3C: "[",
    0x3D: "~",
    0x3E: "]",
    0x40: "|",
    0x65: "€",
}
"""The extension table, by the septet after an escape (3GPP 23.038, 6.2.1.1)."""

ESCAPE = 0x1B

_SEPTETS = {letter: bytes((n,)) for n, letter in enumerate(_BASIC) if n != ESCAPE}
_SEPTETS |= {letter: bytes((ESCAPE, n)) for n, letter in _EXTENSION.items()}


class Alphabet(Enum):
    """How the characters of a short message are written."""

    GSM = "gsm"
    """GSM 7-bit: 160 characters in one message."""
    LATIN = "latin-1"
    """ISO 8859-1, which only the SMSC's interface knows: it converts it for the phone."""
    UCS2 = "ucs-2"
    """UCS-2, with surrogates as UTF-16 has them: 70 units in one message."""
    OCTETS = "octets"
    """Octets that are no text, such as those of a push."""


def alphabet_of(text: str) -> Alphabet:
    """Return the cheapest alphabet of phones that has every character of a text."""
    return Alphabet.GSM if all(letter in _SEPTETS for letter in text) else Alphabet.UCS2


def encode_text(text: str, alphabet: Alphabet) -> bytes:
    """Return a text in an alphabet, with septets in octets of their own; raise NotTransformable if
    the alphabet lacks a character."""
    try:
        if alphabet is Alphabet.GSM:
            return b"".join([_SEPTETS[letter] for letter in text])
        if alphabet is Alphabet.LATIN:
            return text.encode("latin-1")
        if alphabet is Alphabet.UCS2:
            return text.encode("utf-16-be")
    except (KeyError, UnicodeEncodeError):
        pass
    raise NotTransformable("the text has characters that the alphabet lacks", of=alphabet.value)


def decode_text(octets: bytes, alphabet: Alphabet) -> str:
    """Return the text that `encode_text` wrote, or any other sender; raise Malformed if it is
    none."""
    if alphabet is Alphabet.GSM:
        return _decode_septets(octets)
    if alphabet is Alphabet.LATIN:
        return octets.decode("latin-1")
    if alphabet is Alphabet.UCS2:
        try:
            return octets.decode("utf-16-be")
        except UnicodeDecodeError as error:
            raise Malformed("the text is not UCS-2", offset=error.start) from None
    raise Malformed("octets are no text", offset=0)


def _decode_septets(octets: bytes) -> str:
    letters: list[str] = []
    escaped = False
    for at, septet in enumerate(octets):
        if septet > 0x7F:
            raise Malformed("a septet has seven bits", offset=at)
        if escaped:
            # What a phone does not know in the extension table it shows from the basic one.
            letters.append(_EXTENSION.get(septet) or ("" if septet == ESCAPE else _BASIC[septet]))
            escaped = False
        elif septet == ESCAPE:
            escaped = True
        else:
            letters.append(_BASIC[septet])
    return "".join(letters)


def pack(septets: bytes, *, fill: int = 0) -> bytes:
    """Put eight septets into seven octets, as they travel over the air; `fill` bits come first, so
    that the septets begin at a boundary of seven bits after a user data header."""
    bits = 0
    for at, septet in enumerate(septets):
        bits |= septet << (fill + 7 * at)
    return bits.to_bytes((fill + 7 * len(septets) + 7) // 8, "little")


def unpack(octets: bytes, count: int, *, fill: int = 0) -> bytes:
    """Return `count` septets out of octets, after `fill` bits; raise Malformed if there are not so
    many."""
    if fill + 7 * count > 8 * len(octets):
        raise Malformed("the text is shorter than it says", offset=len(octets))
    bits = int.from_bytes(octets, "little") >> fill
    return bytes([(bits >> 7 * at) & 0x7F for at in range(count)])
