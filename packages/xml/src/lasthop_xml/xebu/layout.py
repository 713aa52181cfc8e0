"""The bytes of Xebu: one for the type of an event and its flags, then strings or their tokens.

All bytes are hexadecimal here. The second digit of an event's first byte is the type of the event.
The first digit holds flags; it is written as f where it varies.

    byte    event              what follows the byte
    f1      DOCUMENT_START     nothing; f says which strings get tokens
    f2      PREFIX_MAPPING     a name: namespace and prefix
    f3      ELEMENT_START      a name
    04      ELEMENT_END        nothing
    f5      ATTRIBUTE          a name and a value; with flag C0 one token for both
    06      none               nothing; a start block, or a text in several pieces, ends here
    f7      CONTENT            a text; with flag 20 a piece of a text
    0C      TYPED_CONTENT      a value of the type that xsi:type declares
    2C      TYPED_CONTENT, several events: the length of all values in bytes, and the values
    fC | 10 TYPED_CONTENT      the name of a type, and a value of it
    4C, 6C  TYPED_CONTENT      the same as after 0C and 2C, for a type that the schema gives
    k8      none               nothing; k left-out events come before the next event that was sent
    F8      none               the number of these events, if it is 15 or more
    09      none               two bytes that identify the schema
    0F      PROCESSING_INSTRUCTION, 1F COMMENT, 2F ENTITY_REFERENCE: a text

A name is a token (flag 80), or the token of its namespace (flag 40) and a new local name, or two
new strings. A text is a token (flag C0; 80 in an instruction or an entity reference) or a new
string. A new string is the token that it gets, its length in UTF-8 and its bytes; the token is
missing if strings of this sort get none. A string of more than LONGEST_KEPT bytes is sent with
token 0, and neither end keeps it.

A message whose first byte has flag 10 leaves out the events that a schema foresees (`omission`).
Only such a message has 4C, 6C, k8 and 09, and it has no 06 after start blocks. No message has an
event for the end of the document, which is where its bytes end.

`docs/xebu.md` lists the differences from the code that was published with the thesis. One of them
is that 0A and 0B are refused: the published code caches whole sequences of events with them, of
which the thesis says nothing.
"""

from __future__ import annotations

from typing import Final

DOCUMENT: Final = 0x1
PREFIX: Final = 0x2
START: Final = 0x3
END: Final = 0x4
ATTRIBUTE: Final = 0x5
BLOCK_END: Final = 0x6
CONTENT: Final = 0x7
TYPED: Final = 0xC
SPECIAL: Final = 0xF
FORESEEN: Final = 0x8
SCHEMA: Final = 0x9

NAMESPACE_TOKEN: Final = 0x40
NAME_TOKEN: Final = 0x80
VALUE_TOKEN: Final = 0xC0

ITEM_TOKENS: Final = 0x80
CONTENT_TOKENS: Final = 0x40
SEQUENCE_CACHING: Final = 0x20
OMISSION: Final = 0x10

PIECE: Final = 0x20
SEVERAL: Final = 0x20
NAMED_TYPE: Final = 0x10
SCHEMA_TYPE: Final = 0x40

INSTRUCTION: Final = SPECIAL
COMMENT: Final = SPECIAL | 0x10
ENTITY: Final = SPECIAL | 0x20
SPECIAL_TOKEN: Final = 0x80

TOKENS: Final = 256
"""The number of tokens in each of the four tables: a token is one byte."""

LONGEST_KEPT: Final = 1024
"""The largest number of bytes of a string that gets a token. Long texts seldom repeat, and four
full tables of strings of this length take a megabyte, the most that one session may cost each
end."""

MAX_MESSAGE: Final = 2**20
"""The largest number of bytes of a message, unless both ends agree on more; the same message in XML
is about four times as long."""

ONE_BYTE: Final = tuple(bytes((value,)) for value in range(256))


def compressed(value: int) -> bytes:
    """Encode a number of up to 32 bits in 1, 2 or 5 bytes; a negative number takes 5.

    >>> compressed(300).hex()
    '812c'
    """
    if 0 <= value < 0x80:
        return ONE_BYTE[value]
    if 0 <= value < 0x4000:
        return bytes((0x80 | value >> 8, value & 0xFF))
    return b"\xc0" + (value & 0xFFFFFFFF).to_bytes(4, "big")


def short_string(data: bytes) -> bytes:
    """Encode a name or an attribute's value: the length in one byte if it is below 255, then the
    bytes."""
    size = len(data)
    return (ONE_BYTE[size] if size < 255 else b"\xff" + compressed(size)) + data


def long_string(data: bytes) -> bytes:
    """Encode a text: its compressed length, then its bytes."""
    return compressed(len(data)) + data


def read_compressed(data: bytes, pos: int) -> tuple[int, int]:
    """Return an unsigned number and the position after it; raise IndexError if `data` ends
    first."""
    first = data[pos]
    if first < 0x80:
        return first, pos + 1
    if first < 0xC0:
        return (first & 0x3F) << 8 | data[pos + 1], pos + 2
    if first != 0xC0:
        raise ValueError("a number has an unknown form")
    high, middle, low, last = data[pos + 1], data[pos + 2], data[pos + 3], data[pos + 4]
    return high << 24 | middle << 16 | low << 8 | last, pos + 5


def read_bytes(data: bytes, pos: int, size: int) -> tuple[bytes, int]:
    """Return `size` bytes and the position after them; raise IndexError if `data` ends first."""
    end = pos + size
    if end > len(data):
        raise IndexError("a string is longer than its message")
    return data[pos:end], end
