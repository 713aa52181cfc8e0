"""The bytes of values that were not guessed, by the shape of their column.

The code of a value that is known is the number of its entry, shifted left by the column's `shift`.
Otherwise its lower bits are not all 0:

    text        count of words << 1 | 1, the words; 0 words: a string
    number      step from the last number: multiple of the scale << 1 | 1; any << 2 | 2, which
                changes the scale; 2: a text
    fraction    sign << 5 | scale << 1 | 1, digits; 61: a text; 63: eight bytes
    bytes       length << 1 | 1, themselves

A word is its number << 1, or its length << 3 | 1 and itself, or a count of hexadecimal digits << 3
| 3 and the digits, or a count of such groups joined by hyphens << 3 | 5. On the wire a code is
written one higher, since 0 means there that a run comes first, or that the value was guessed
(`writing`).
"""

from __future__ import annotations

import re
import struct
from datetime import UTC, datetime, timedelta
from math import gcd
from typing import Any, Final

from lasthop_xml.weft.engine.columns import Column
from lasthop_xml.weft.engine.octets import ByteSource, put_number
from lasthop_xml.weft.errors import WeftFormatError, WeftLimitError
from lasthop_xml.weft.exact import LARGEST, Lexical, exact
from lasthop_xml.weft.runs import BOOLEAN, BYTES, FRACTION, NAME, NUMBER, TEXT, TIME
from lasthop_xml.xas.names import check_text, is_ncname
from lasthop_xml.xas.types.table import PRIMITIVES, lexical

MAX_WORDS: Final = 512
"""The largest number of words that a column remembers; further new words are written in full."""
MOST_WORDS: Final = 31
"""The largest number of words of a text that is written word by word."""
LONGEST_SPLIT: Final = 256
"""The largest number of characters of a text that is written word by word."""

_FRACTION_TEXT: Final = 61
_FRACTION_BYTES: Final = 63
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_EPOCH_DAY: Final = _EPOCH.toordinal()
FRACTION_POWERS: Final[tuple[int, ...]] = tuple(10**scale for scale in range(16))
_DIGITS: Final = re.compile(r"(?=[a-f-]*[0-9])[0-9a-f-]{4,}").fullmatch


def is_digits(word: str) -> bool:
    """Return whether a word is hexadecimal digits, perhaps in groups: an id, hardly ever seen
    again."""
    return not word.isalpha() and _DIGITS(word) is not None


def seconds_of(value: datetime) -> int:
    """Return the whole seconds since 1970 of an instant in UTC; this is faster than a subtraction
    of two instants."""
    minutes = (value.toordinal() - _EPOCH_DAY) * 1440 + value.hour * 60 + value.minute
    return minutes * 60 + value.second


def write_value(column: Column, out: bytearray, value: Any) -> int:
    """Write a value that has no entry: its code + 1, and what follows. Return the value's size."""
    shape = column.shape
    text: str
    if shape == NUMBER:
        if type(value) is not Lexical:
            _write_step(column, out, value)
            return 8
        out.append(3)
        text = value
    elif shape == TEXT:
        text = value
    elif shape == FRACTION:
        if type(value) is not Lexical:
            _write_fraction(column, out, value)
            return 8
        out.append(_FRACTION_TEXT + 1)
        text = value
    elif shape == TIME:
        if type(value) is not Lexical and not value.microsecond:
            _write_step(column, out, seconds_of(value))
            return 8
        out.append(3)
        text = value if type(value) is Lexical else lexical(column.type, value)
    elif shape == BOOLEAN:
        _write_step(column, out, 1 if value else 0)
        return 8
    elif shape == BYTES:
        put_number(out, (len(value) << 1) + 2)
        out += value
        return len(value)
    elif shape == NAME or type(value) is Lexical:
        text = value
    else:
        text = lexical(column.type, value)
    _write_text(column, out, text)
    return len(text)


def _write_text(column: Column, out: bytearray, text: str) -> None:
    words = text.split(" ") if len(text) <= LONGEST_SPLIT else []
    count = len(words)
    if count == 0 or count > MOST_WORDS:
        data = text.encode()
        out.append(2)
        put_number(out, len(data))
        out += data
        return
    out.append((count << 1) + 2)
    known = column.words
    for word in words:
        index = known.get(word)
        if index is None:
            _write_word(known, out, word)
        elif index < 0x40:
            out.append(index << 1)
        else:
            put_number(out, index << 1)


def _write_word(known: dict[str, int], out: bytearray, word: str) -> None:
    if word.isalpha() or _DIGITS(word) is None:
        data = word.encode()
        put_number(out, len(data) << 3 | 1)
        out += data
        if len(known) < MAX_WORDS:
            known[word] = len(known)
        return
    groups = word.split("-")
    if len(groups) > 1:
        put_number(out, len(groups) << 3 | 5)
    for group in groups:
        size = len(group)
        put_number(out, size << 3 | 3)
        out += bytes.fromhex(group if size & 1 == 0 else group + "0")


def _write_step(column: Column, out: bytearray, number: int) -> None:
    base = column.base
    step = number - base.number
    base.number = number
    scale = column.scale
    if step == 0:
        code = 2
    elif scale and step % scale == 0:
        step //= scale
        code = (step << 2) + 2 if step >= 0 else -step << 2
    else:
        code = (step << 3) + 3 if step >= 0 else (-step << 3) - 1
        column.scale = gcd(scale, step)
    if code < 0x80:
        out.append(code)
    elif code < 0x4000:
        out.append(code & 0x7F | 0x80)
        out.append(code >> 7)
    else:
        put_number(out, code)


def _write_fraction(column: Column, out: bytearray, value: float) -> None:
    size = value if value >= 0.0 else -value
    scale = column.scale
    digits = fraction_digits(size, scale)
    if digits < 0:
        scale = -1
        while digits < 0 and scale < 15:
            scale += 1
            digits = fraction_digits(size, scale)
        if digits < 0:
            out.append(_FRACTION_BYTES + 1)
            out += struct.pack(">d", value)
            return
        column.scale = scale
    out.append((0 if value >= 0.0 else 32) + (scale << 1) + 2)
    put_number(out, digits)


def fraction_digits(size: float, scale: int) -> int:
    """Return the digits of a number with `scale` of them after the point, or -1 if they do not give
    the value back."""
    power = FRACTION_POWERS[scale]
    if size * power < 9e15:
        digits: int = round(size * power)
        if digits / power == size:
            return digits
    return -1


def read_value(column: Column, source: ByteSource, code: int) -> Any:
    """Read the rest of a value from `source`, after its `code`, and return the value; its size is
    put into `source.size`."""
    shape = column.shape
    source.size = 8
    if shape == NUMBER:
        if code != 2:
            number = _read_step(column, source, code)
            if not column.lowest <= number <= column.highest:
                raise WeftFormatError("a number is out of range", offset=source.pos)
            return number
    elif shape == TEXT:
        text = _read_text(column, source, code)
        source.size = len(text)
        return text
    elif shape == FRACTION:
        if code != _FRACTION_TEXT:
            return _read_fraction(column, source, code)
    elif shape == TIME:
        if code != 2:
            return _EPOCH + timedelta(0, _read_step(column, source, code))
    elif shape == BOOLEAN:
        number = _read_step(column, source, code)
        if number not in {0, 1}:
            raise WeftFormatError("a number is out of range", offset=source.pos)
        return number == 1
    elif shape == BYTES:
        source.size = code >> 1
        return source.octets(code >> 1)
    elif shape == NAME:
        text = _read_text(column, source, code)
        if not is_ncname(text.partition(" ")[0]):
            raise WeftFormatError("a name is malformed", offset=source.pos)
        source.size = len(text)
        return text
    else:
        return _from_text(column, source, code)
    return _from_text(column, source, source.number() - 1)


def _from_text(column: Column, source: ByteSource, code: int) -> Any:
    text = _read_text(column, source, code)
    value = PRIMITIVES[column.type].exactly(text)
    if value is None:
        raise WeftFormatError("a value is not in its canonical form", offset=source.pos)
    source.size = len(text)
    return exact(column.type, value)


def _read_text(column: Column, source: ByteSource, code: int) -> str:
    count = code >> 1
    if count == 0:
        return check_text(source.octets(source.number()).decode())
    if count > MOST_WORDS:
        raise WeftFormatError("a text has too many words", offset=source.pos)
    known = column.word_list
    words: list[str] = []
    for _ in range(count):
        code = source.number()
        if code & 1 == 0:
            words.append(known[code >> 1])
            continue
        form = code & 7
        if form == 1:
            word = source.octets(code >> 3).decode()
            if not word.isprintable():
                check_text(word)
            if len(known) < MAX_WORDS:
                known.append(word)
            words.append(word)
        elif form == 3:
            words.append(source.digits(code >> 3))
        elif form == 5:
            words.append("-".join(source.groups(code >> 3)))
        else:
            raise WeftFormatError("a word has an unknown form", offset=source.pos)
    text = " ".join(words)
    source.room -= len(text)
    if source.room < 0:
        raise WeftLimitError("a message expands to too much text")
    return text


def _read_step(column: Column, source: ByteSource, code: int) -> int:
    base = column.base
    scale = column.scale
    if code & 1:
        step = code >> 1
        step = -(step >> 1) - 1 if step & 1 else step >> 1
        if scale > 1 and (step if step >= 0 else -step) > 2 * LARGEST // scale:
            raise WeftFormatError("a number is out of range", offset=source.pos)
        step *= scale
    else:
        step = code >> 2
        step = -(step >> 1) - 1 if step & 1 else step >> 1
        column.scale = gcd(scale, step)
    number = base.number + step
    if number <= -LARGEST or number >= LARGEST:
        raise WeftFormatError("a number is out of range", offset=source.pos)
    base.number = number
    return number


def _read_fraction(column: Column, source: ByteSource, code: int) -> Any:
    if code == _FRACTION_BYTES:
        return exact(column.type, struct.unpack(">d", source.octets(8))[0])
    scale = code >> 1 & 15
    digits = source.number()
    if code > _FRACTION_BYTES or digits > 2**53:
        raise WeftFormatError("a fraction has an unknown form", offset=source.pos)
    column.scale = scale
    value = digits / FRACTION_POWERS[scale]
    return exact(column.type, -value if code & 32 else value)
