"""The types of value that a field can have, each with its encoder and decoder.

Encoders raise ValueError to their caller; decoders raise MalformedFrame, which is the peer's error.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from typing import Any, NamedTuple

from lasthop.errors import MalformedFrame
from lasthop.message import Binding, Handling, Reliability
from lasthop.wire.hop.frames import MAX_LIST, MAX_RANGES, MIN_MAX_FRAME, Credit, Ranges
from lasthop.wire.varint import MAX_VALUE, encode_varint, read_varint


class HopKind(NamedTuple):
    """The encoder and decoder of one type of field value."""

    write: Callable[[Any], bytes]
    read: Callable[[bytes], Any]


def write_text(text: str) -> bytes:
    """Encode a text as its length in bytes and UTF-8."""
    content = text.encode()
    return encode_varint(len(content)) + content


def read_text(data: bytes, pos: int) -> tuple[str, int]:
    """Decode the text whose length starts at `pos`; return it and the position behind it."""
    length, start = read_varint(data, pos)
    end = start + length
    if end > len(data):
        raise MalformedFrame("a text is longer than its frame")
    return decode_text(data[start:end]), end


def decode_text(content: bytes) -> str:
    """Decode UTF-8; raise MalformedFrame when the bytes are not UTF-8."""
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise MalformedFrame("a text is not UTF-8") from None


def write_ranges(received: int, ranges: Ranges) -> bytes:
    """Encode ranges as pairs (gap, run), the first gap counted from `received`."""
    if len(ranges) > MAX_RANGES:
        raise ValueError(f"at most {MAX_RANGES} ranges may be acknowledged at once")
    out = bytearray()
    at = received
    for start, stop in ranges:
        if not at < start < stop:
            raise ValueError(
                "ranges must ascend from above the received count, with gaps between them"
            )
        out += encode_varint(start - at)
        out += encode_varint(stop - start)
        at = stop
    return bytes(out)


def absolute_ranges(received: int, numbers: list[int]) -> Ranges:
    """Turn pairs (gap, run), the first gap counted from `received`, into ranges (start, stop);
    raise MalformedFrame."""
    if len(numbers) % 2:
        raise MalformedFrame("an individual acknowledgement has a gap without a run")
    ranges = []
    at = received
    for index in range(0, len(numbers), 2):
        start = at + numbers[index]
        stop = start + numbers[index + 1]
        if not at < start < stop <= MAX_VALUE:
            raise MalformedFrame("an individual acknowledgement has an empty or endless gap or run")
        ranges.append((start, stop))
        at = stop
    return tuple(ranges)


def split_finished(received: int, numbers: list[int]) -> tuple[Ranges, list[int]]:
    """Return the ranges of an unordered lane's acknowledgement, and the pairs behind the zero that
    ends them; raise MalformedFrame."""
    for index in range(0, len(numbers), 2):
        if numbers[index] == 0:
            if index + 1 == len(numbers):
                raise MalformedFrame("a zero ends the pairs of an acknowledgement for nothing")
            return absolute_ranges(received, numbers[:index]), numbers[index + 1 :]
    return absolute_ranges(received, numbers), []


def read_numbers(data: bytes, most: int) -> list[int]:
    """Decode the numbers that fill `data`; raise MalformedFrame for more than `most`."""
    numbers: list[int] = []
    pos = 0
    while pos < len(data):
        if len(numbers) == most:
            raise MalformedFrame("there are more numbers than a list may have", most=most)
        number, pos = read_varint(data, pos)
        numbers.append(number)
    return numbers


def read_gaps(data: bytes) -> list[int]:
    """Decode pairs (gap, run) without resolving them, which takes the received count beside
    them."""
    return read_numbers(data, 2 * MAX_RANGES)


def _read_number(data: bytes) -> int:
    number, end = read_varint(data, 0)
    if end != len(data):
        raise MalformedFrame("bytes follow the number in a field")
    return number


def _read_frame_size(data: bytes) -> int:
    size = _read_number(data)
    if size < MIN_MAX_FRAME:
        raise MalformedFrame("a limit of frames is too low", least=MIN_MAX_FRAME, value=size)
    return size


def _read_credit(data: bytes) -> Credit:
    numbers = read_numbers(data, 2)
    if len(numbers) != 2:
        raise MalformedFrame("a window must be a number of messages and a number of bytes")
    return Credit(numbers[0], numbers[1])


def _write_credit(credit: Credit) -> bytes:
    return encode_varint(credit.messages) + encode_varint(credit.bytes)


def _read_texts(data: bytes, most: int = MAX_LIST) -> tuple[str, ...]:
    texts: list[str] = []
    pos = 0
    while pos < len(data):
        if len(texts) == most:
            raise MalformedFrame("there are more texts than a list may have", most=most)
        text, pos = read_text(data, pos)
        texts.append(text)
    return tuple(texts)


def _write_texts(texts: tuple[str, ...], most: int = MAX_LIST) -> bytes:
    if len(texts) > most:
        raise ValueError(f"a list may have at most {most} texts")
    return b"".join(map(write_text, texts))


def _read_pairs(data: bytes) -> tuple[tuple[str, str], ...]:
    texts = _read_texts(data, 2 * MAX_LIST)
    if len(texts) % 2:
        raise MalformedFrame("a header has a name without a value")
    return tuple(zip(texts[::2], texts[1::2], strict=True))


def _write_pairs(pairs: tuple[tuple[str, str], ...]) -> bytes:
    return _write_texts(tuple(text for pair in pairs for text in pair), 2 * MAX_LIST)


def _octet(name: str, most: int, make: Callable[[int], object] = int) -> HopKind:
    def write(value: int) -> bytes:
        if not 0 <= value <= most:
            raise ValueError(f"{name} must be 0 to {most}: {value}")
        return bytes((value,))

    def read(data: bytes) -> object:
        if len(data) != 1 or data[0] > most:
            raise MalformedFrame(f"{name} must be one byte, 0 to {most}", value=data[:8].hex())
        return make(data[0])

    return HopKind(write, read)


def _write_double(value: float) -> bytes:
    if not math.isfinite(value):
        raise ValueError("a rank must be a finite number")
    return struct.pack(">d", value)


def _read_double(data: bytes) -> float:
    if len(data) != 8:
        raise MalformedFrame("a rank must have eight bytes")
    (value,) = struct.unpack(">d", data)
    if not math.isfinite(value):
        raise MalformedFrame("a rank must be a finite number")
    return float(value)


def _read_incarnation(data: bytes) -> bytes:
    if len(data) != 8:
        raise MalformedFrame("an incarnation must have eight bytes")
    return data


def _write_incarnation(value: bytes) -> bytes:
    if len(value) != 8:
        raise ValueError("an incarnation must have eight bytes")
    return value


def _read_flag(data: bytes) -> bool:
    if data != b"\x01":
        raise MalformedFrame("a flag must be the byte 01 or absent", value=data[:8].hex())
    return True


def _read_mark(data: bytes) -> bool:
    if data:
        raise MalformedFrame("a mark must not have a value")
    return True


TEXT = HopKind(str.encode, decode_text)
NUMBER = HopKind(encode_varint, _read_number)
CREDIT = HopKind(_write_credit, _read_credit)
TEXTS = HopKind(_write_texts, _read_texts)
PAIRS = HopKind(_write_pairs, _read_pairs)
DOUBLE = HopKind(_write_double, _read_double)
INCARNATION = HopKind(_write_incarnation, _read_incarnation)
FLAG = HopKind(lambda _: b"\x01", _read_flag)
MARK = HopKind(lambda _: b"", _read_mark)
NUMBERS = HopKind(
    lambda ranges: write_ranges(-1, ranges), lambda data: absolute_ranges(-1, read_gaps(data))
)
FRAME_SIZE = HopKind(encode_varint, _read_frame_size)
GAPS = HopKind(lambda _: b"", read_gaps)
"""Individual acknowledgements; `FieldTable.write` encodes them, since they depend on the received
count."""
PRIORITY = _octet("priority", 9)
OPERATION = _octet("operation", 255)
HANDLING = _octet("handling", 3, Handling)
RELIABILITY = _octet("reliability", 3, Reliability)
BINDING = _octet("binding", 2, Binding)
