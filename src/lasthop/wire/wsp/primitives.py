"""The parts of header values and PDUs: integers, texts, lengths (WSP 8.1.2 and 8.4.2.1).

Writers return octets and raise ValueError for what has no encoding. `OctetCursor` reads, and raises
Malformed with the offset.
"""

from __future__ import annotations

import re

from lasthop.errors import Malformed
from lasthop.wire.uintvar import encode_uintvar, read_uintvar
from lasthop.wire.wsp.httpdate import format_http_date

Version = tuple[int, int]
"""A version of WSP's header encoding: major, minor."""

QUOTE = 0x7F
"""The octet before a text whose first octet would be taken for something else."""

LENGTH_QUOTE = 0x1F
"""The octet before a length that does not fit one octet."""

MAX_SHORT_LENGTH = 30

TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
"""The characters of an HTTP token."""

CONTROL = re.compile("[\x00-\x08\x0a-\x1f\x7f\ud800-\udfff]")
"""The characters that no header value can hold: they could end its line, or are no characters at
all."""

_FOLDED = re.compile(r"\r\n[ \t]+")


def short_integer(value: int) -> bytes:
    """Encode 0 to 127 in one octet; raise ValueError."""
    if not 0 <= value <= 0x7F:
        raise ValueError(f"a short integer must be 0 to 127: {value}")
    return bytes((value | 0x80,))


def long_integer(value: int) -> bytes:
    """Encode a number as a length and that many octets, at least one; raise ValueError."""
    size = max(1, (value.bit_length() + 7) // 8)
    if value < 0 or size > MAX_SHORT_LENGTH:
        raise ValueError(f"a long integer may have at most {MAX_SHORT_LENGTH} octets: {value}")
    return bytes((size,)) + value.to_bytes(size, "big")


def integer(value: int) -> bytes:
    """Encode a number as a short or else as a long integer; raise ValueError."""
    return short_integer(value) if 0 <= value <= 0x7F else long_integer(value)


def text_string(text: str) -> bytes:
    """Encode a text with the zero that ends it; raise ValueError."""
    if CONTROL.search(text) is not None:
        raise ValueError("a text must not have control characters")
    octets = text.encode()
    if octets and not 0x20 <= octets[0] < QUOTE:
        return b"\x7f" + octets + b"\0"
    return octets + b"\0"


def token_text(text: str) -> bytes:
    """Encode an HTTP token with the zero that ends it; raise ValueError."""
    if TOKEN.fullmatch(text) is None:
        raise ValueError(f"not a token: {text!r}")
    return text.encode() + b"\0"


def text_value(text: str) -> bytes:
    """Encode an empty value, a token or a quoted string (without its closing quotation mark); raise
    ValueError."""
    if not text:
        return b"\0"
    if TOKEN.fullmatch(text) is not None:
        return text.encode() + b"\0"
    return quoted_string(text)


def quoted_string(text: str) -> bytes:
    """Encode a text behind a quotation mark, which has no closing one; raise ValueError."""
    if CONTROL.search(text) is not None:
        raise ValueError("a text must not have control characters")
    return b'"' + text.encode() + b"\0"


def with_length(octets: bytes) -> bytes:
    """Put the length of the octets (Value-length) in front of them."""
    if len(octets) <= MAX_SHORT_LENGTH:
        return bytes((len(octets),)) + octets
    return bytes((LENGTH_QUOTE,)) + encode_uintvar(len(octets)) + octets


def q_value(text: str) -> bytes:
    """Encode a weight below 1 with at most three decimals; return nothing for 1 (WSP 8.4.2.3)."""
    if re.fullmatch(r"1(\.0{0,3})?", text):
        return b""
    found = re.fullmatch(r"0?(?:\.(\d{0,3}))?", text, re.ASCII)
    if found is None or not text:
        raise ValueError(f"not a weight: {text!r}")
    decimals = (found.group(1) or "").rstrip("0")
    if len(decimals) <= 2:
        return encode_uintvar(int(decimals.ljust(2, "0")) + 1)
    return encode_uintvar(int(decimals) + 100)


def version_value(text: str) -> bytes:
    """Encode a version such as `1.4` or `1` in one octet; anything else as text."""
    found = re.fullmatch(r"([1-7])(?:\.(\d|1[0-4]))?", text, re.ASCII)
    if found is None:
        return text_string(text)
    minor = 15 if found.group(2) is None else int(found.group(2))
    return short_integer(int(found.group(1)) << 4 | minor)


class OctetCursor:
    """Reads octets from a start to an end, and keeps the position."""

    __slots__ = ("data", "end", "pos")

    def __init__(self, data: bytes, pos: int = 0, end: int | None = None) -> None:
        self.data = data
        self.pos = pos
        self.end = len(data) if end is None else end

    @property
    def left(self) -> int:
        return self.end - self.pos

    def peek(self) -> int:
        if self.pos >= self.end:
            raise Malformed("the data ends where a value should be", offset=self.pos)
        return self.data[self.pos]

    def octet(self) -> int:
        octet = self.peek()
        self.pos += 1
        return octet

    def take(self, length: int) -> bytes:
        start = self.pos
        if length > self.end - start:
            raise Malformed(f"the data has fewer than the announced {length} octets", offset=start)
        self.pos += length
        return self.data[start : self.pos]

    def rest(self) -> bytes:
        return self.take(self.left)

    def uintvar(self) -> int:
        start = self.pos
        value, self.pos = read_uintvar(self.data, start)
        if self.pos > self.end:
            raise Malformed("the data ends inside a number", offset=start)
        return value

    def inside(self, length: int) -> OctetCursor:
        """Return a cursor for the next octets; this cursor moves behind them."""
        start = self.pos
        self.take(length)
        return OctetCursor(self.data, start, self.pos)

    def short_integer(self) -> int:
        octet = self.octet()
        if octet < 0x80:
            raise Malformed("not a short integer", offset=self.pos - 1)
        return octet & 0x7F

    def integer(self) -> int:
        return self.short_integer() if self.peek() >= 0x80 else self.long_integer()

    def long_integer(self) -> int:
        length = self.octet()
        if not 1 <= length <= MAX_SHORT_LENGTH:
            raise Malformed("not an integer", offset=self.pos - 1)
        return int.from_bytes(self.take(length), "big")

    def date(self) -> str:
        """Read seconds since 1970 as an HTTP date."""
        start = self.pos
        try:
            return format_http_date(self.integer())
        except ValueError:
            raise Malformed("a date must not lie beyond the year 9999", offset=start) from None

    def value_length(self) -> int:
        octet = self.octet()
        if octet == LENGTH_QUOTE:
            return self.uintvar()
        if octet > MAX_SHORT_LENGTH:
            raise Malformed("not a length", offset=self.pos - 1)
        return octet

    def text_string(self) -> str:
        start = self.pos
        end = self.data.find(b"\0", start, self.end)
        if end < 0:
            raise Malformed("the data ends inside a text", offset=start)
        self.pos = end + 1
        octets = self.data[start:end]
        if octets[:1] == b"\x7f":
            octets = octets[1:]
        return self._text(octets, start)

    def _text(self, octets: bytes, start: int) -> str:
        """Decode UTF-8, which lasthop writes, or else ISO-8859-1, the traditional charset of HTTP
        headers."""
        try:
            text = octets.decode()
        except UnicodeDecodeError:
            text = octets.decode("iso-8859-1")
        if CONTROL.search(text) is not None:
            text = _FOLDED.sub(" ", text)
            if CONTROL.search(text) is not None:
                raise Malformed(
                    "a text of a header must not contain control characters", offset=start
                )
        return text

    def text_value(self) -> str:
        text = self.text_string()
        return text[1:] if text.startswith('"') else text

    def q_value(self) -> str:
        start = self.pos
        value = self.uintvar()
        if 1 <= value <= 100:
            decimals = f"{value - 1:02}"
        elif 101 <= value <= 1099:
            decimals = f"{value - 100:03}"
        else:
            raise Malformed("not a weight", offset=start)
        return f"0.{decimals}".rstrip("0").rstrip(".")

    def version_value(self) -> str:
        if self.peek() < 0x80:
            return self.text_string()
        value = self.short_integer()
        major, minor = value >> 4, value & 0x0F
        return str(major) if minor == 15 else f"{major}.{minor}"

    def finish(self) -> None:
        """Raise Malformed unless everything was read."""
        if self.left:
            raise Malformed("there are octets behind the end of the value", offset=self.pos)

    def value(self) -> OctetCursor:
        """Return a cursor for the next header value as a whole, whatever it means (WSP 8.4.1.2)."""
        start = self.pos
        first = self.octet()
        if first == LENGTH_QUOTE:
            self.take(self.uintvar())
        elif first <= MAX_SHORT_LENGTH:
            self.take(first)
        elif first < 0x80:
            end = self.data.find(b"\0", start, self.end)
            if end < 0:
                raise Malformed("the data ends inside a text", offset=start)
            self.pos = end + 1
        return OctetCursor(self.data, start, self.pos)
