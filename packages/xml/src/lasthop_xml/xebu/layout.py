"""The bytes of Xebu: one for the type of an event and its flags, then strings or their tokens.

    byte    event                     followed by
    f1      DOCUMENT_START            nothing; f tells which strings get tokens
    f2      PREFIX_MAPPING            name (namespace, prefix)
    f3      ELEMENT_START             name
    04      ELEMENT_END
    f5      ATTRIBUTE                 name, value; or with C0 a token for both
    06      end of a start block, or of a text in several pieces
    f7      CONTENT                   text; 20 in f: a piece of a text
    0C      TYPED_CONTENT             a value of the type that xsi:type declares
    2C      several of them           length of all, values back to back
    fC | 10 TYPED_CONTENT             name of its type, value
    4C, 6C                            the same, of the types that a schema gives
    k8                                k of the events that a schema foresees come first
    09                                two bytes that identify the schema
    0F, 1F, 2F                        processing instruction, comment, entity reference: text

A name is a token (flag 80), or a namespace's token (flag 40) and a new local name, or two new
strings. A text is a token (flag C0; 80 in an instruction or an entity reference), or new. A new
string is its own token, its length in UTF-8 and its bytes; without tokens for its class the first
is missing. A string of more than LONGEST_KEPT bytes is sent with token 0 but not kept under it.

Only messages with 10 in the flags of their document have 4C, 6C, 08 and 09, and no 06 after start
blocks: the events that a schema foresees are left out of them (`omission`).

There is no event for the end: a message ends with its bytes. Sequence caching (0A, 0B) is not part
of the thesis and is refused. Three things are added to the code published with the thesis: strings
are UTF-8, a short length of 255 means that a compressed one follows, and a value can name its
type.
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
"""The most bytes of a string that gets a token. Long texts seldom repeat, and four full tables of
strings of this length take a megabyte, the most that one session may cost each end."""

MAX_MESSAGE: Final = 2**20
"""The most bytes of a message, unless both ends agree on more; as XML it would be four times as
long."""

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
