"""The binary forms of typed values.

A value has no length of its own unless its type needs one: the reader knows the type (thesis,
section 5.4.2). The forms down to dateTime are those of the code published with the thesis, which
had none for the other types.

    boolean                     `t` or `f`
    byte, short, long           1, 2, 8 bytes, big endian; the unsigned ones likewise
    int, unsignedInt            compressed; negative numbers take 5 bytes
    string, hexBinary, base64Binary, QName
                                compressed length, bytes
    dateTime                    8 bytes: milliseconds since 1970 in UTC. Other instants do not fit
                                into the upper byte: see `write_datetime`
    float, double               IEEE 754, big endian
    integer and its kind        compressed length, two's complement
    decimal                     compressed number of fractional digits, then an integer
    date                        3 bytes: days since 1970, signed
    time                        5 bytes: zone in the top 2 bits, microseconds; minutes of the zone
    duration                    months and nanoseconds, as integers
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any, Final, NamedTuple, TypeAlias

from lasthop_xml.xas.errors import InvalidValue
from lasthop_xml.xas.names import Name, check_text
from lasthop_xml.xas.types.numbers import MAX_DIGITS
from lasthop_xml.xas.types.primitive import Primitive
from lasthop_xml.xas.types.table import ALL
from lasthop_xml.xas.types.texts import QName
from lasthop_xml.xas.types.times import Duration
from lasthop_xml.xebu.layout import compressed, long_string, read_bytes, read_compressed

Write: TypeAlias = Callable[[Any], bytes]
Read: TypeAlias = Callable[[bytes, int], tuple[Any, int]]
"""A function that returns the value at a position and the position after it. Bytes that are not
such a value raise InvalidValue, IndexError, ValueError, OverflowError or struct.error."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LOCAL_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - a clock reading without a zone
_EPOCH_DAY = date(1970, 1, 1).toordinal()
_MICROSECOND = timedelta(microseconds=1)
_MINUTE = timedelta(minutes=1)

# The first byte of a dateTime that is not in milliseconds in UTC. Milliseconds of the years 1 to
# 9999 have 49 bits, so their first byte is 00 or FF.
_LOCAL, _OFFSET, _UTC = 0x41, 0x42, 0x43


class BinaryForm(NamedTuple):
    """The binary form of one type: how its values are written and read."""

    write: Write
    read: Read


def write_string(value: str) -> bytes:
    if type(value) is not str:
        raise InvalidValue("this is not a value of the type", type="string", value=str(value)[:80])
    data = (value if value.isprintable() else check_text(value)).encode()
    size = len(data)
    return (bytes((size,)) if size < 0x80 else compressed(size)) + data


def read_string(data: bytes, pos: int) -> tuple[str, int]:
    size = data[pos]
    if size < 0x80:
        pos += 1
    else:
        size, pos = read_compressed(data, pos)
    end = pos + size
    if end > len(data):
        raise IndexError("a string is longer than its message")
    text = data[pos:end].decode()
    return text if text.isprintable() else check_text(text), end


def _read_boolean(data: bytes, pos: int) -> tuple[bool, int]:
    match data[pos]:
        case 0x74:
            return True, pos + 1
        case 0x66:
            return False, pos + 1
        case _:
            raise ValueError("a boolean is neither t nor f")


def _read_int(data: bytes, pos: int) -> tuple[int, int]:
    value, pos = read_compressed(data, pos)
    return (value if value < 2**31 else value - 2**32), pos


def _fixed(layout: str) -> BinaryForm:
    form = struct.Struct(layout)

    def read(data: bytes, pos: int) -> tuple[Any, int]:
        return form.unpack_from(data, pos)[0], pos + form.size

    return BinaryForm(form.pack, read)


def _write_bytes(value: bytes) -> bytes:
    return long_string(value)


def _read_bytes(data: bytes, pos: int) -> tuple[bytes, int]:
    size, pos = read_compressed(data, pos)
    return read_bytes(data, pos, size)


def _write_integer(value: int) -> bytes:
    return long_string(value.to_bytes(value.bit_length() // 8 + 1, "big", signed=True))


def _read_integer(data: bytes, pos: int) -> tuple[int, int]:
    raw, pos = _read_bytes(data, pos)
    if not 0 < len(raw) <= MAX_DIGITS // 2:
        raise ValueError("an integer has no digits, or too many")
    return int.from_bytes(raw, "big", signed=True), pos


def _write_decimal(value: Decimal) -> bytes:
    sign, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):
        raise ValueError("this is not a finite number")
    if exponent > 0:
        digits, exponent = (*digits, *(0,) * exponent), 0
    unscaled = int("".join(map(str, digits)))
    return compressed(-exponent) + _write_integer(-unscaled if sign else unscaled)


def _read_decimal(data: bytes, pos: int) -> tuple[Decimal, int]:
    scale, pos = read_compressed(data, pos)
    unscaled, pos = _read_integer(data, pos)
    if scale > MAX_DIGITS:
        raise ValueError("a decimal has too many digits")
    digits = tuple(map(int, str(abs(unscaled))))
    return Decimal((int(unscaled < 0), digits, -scale)), pos


def write_datetime(value: datetime) -> bytes:
    """Encode a dateTime: milliseconds if it is in UTC and has no microseconds; otherwise a mark,
    microseconds and the zone."""
    offset = value.utcoffset()
    if offset is None:
        return struct.pack(">Bq", _LOCAL, (value - _LOCAL_EPOCH) // _MICROSECOND)
    if offset:
        local = (value.replace(tzinfo=None) - _LOCAL_EPOCH) // _MICROSECOND
        return struct.pack(">Bqh", _OFFSET, local, offset // _MINUTE)
    microseconds = (value - _EPOCH) // _MICROSECOND
    if microseconds % 1000:
        return struct.pack(">Bq", _UTC, microseconds)
    return (microseconds // 1000).to_bytes(8, "big", signed=True)


def read_datetime(data: bytes, pos: int) -> tuple[datetime, int]:
    mark = data[pos]
    if mark in {0x00, 0xFF}:
        raw, pos = read_bytes(data, pos, 8)
        ms = int.from_bytes(raw, "big", signed=True)
        return _EPOCH + timedelta(milliseconds=ms), pos
    (microseconds,) = struct.unpack_from(">q", data, pos + 1)
    local = _LOCAL_EPOCH + timedelta(microseconds=microseconds)
    if mark == _LOCAL:
        return local, pos + 9
    if mark == _UTC:
        return local.replace(tzinfo=UTC), pos + 9
    if mark != _OFFSET:
        raise ValueError("a dateTime has an unknown form")
    (minutes,) = struct.unpack_from(">h", data, pos + 9)
    return local.replace(tzinfo=_zone(minutes)), pos + 11


def _zone(minutes: int) -> timezone:
    if not minutes or abs(minutes) > 14 * 60:
        raise ValueError("no time zone has this offset")
    return timezone(timedelta(minutes=minutes))


def _write_date(value: date) -> bytes:
    return (value.toordinal() - _EPOCH_DAY).to_bytes(3, "big", signed=True)


def _read_date(data: bytes, pos: int) -> tuple[date, int]:
    raw, pos = read_bytes(data, pos, 3)
    return date.fromordinal(int.from_bytes(raw, "big", signed=True) + _EPOCH_DAY), pos


def _write_time(value: time) -> bytes:
    seconds = (value.hour * 60 + value.minute) * 60 + value.second
    offset = value.utcoffset()
    zone = 0 if offset is None else 2 if offset else 1
    packed = (zone << 38 | seconds * 1_000_000 + value.microsecond).to_bytes(5, "big")
    return packed + (struct.pack(">h", offset // _MINUTE) if offset else b"")


def _read_time(data: bytes, pos: int) -> tuple[time, int]:
    raw, pos = read_bytes(data, pos, 5)
    packed = int.from_bytes(raw, "big")
    seconds, microsecond = divmod(packed & 2**38 - 1, 1_000_000)
    minutes, second = divmod(seconds, 60)
    hour, minute = divmod(minutes, 60)
    value = time(hour, minute, second, microsecond)
    match packed >> 38:
        case 0:
            return value, pos
        case 1:
            return value.replace(tzinfo=UTC), pos
        case 2:
            (offset,) = struct.unpack_from(">h", data, pos)
            return value.replace(tzinfo=_zone(offset)), pos + 2
        case _:
            raise ValueError("a time has an unknown zone")


def _write_duration(value: Duration) -> bytes:
    return _write_integer(value.months) + _write_integer(value.nanoseconds)


def _read_duration(data: bytes, pos: int) -> tuple[Duration, int]:
    months, pos = _read_integer(data, pos)
    nanoseconds, pos = _read_integer(data, pos)
    return Duration(months, nanoseconds), pos


def _read_qname(data: bytes, pos: int) -> tuple[QName, int]:
    text, pos = read_string(data, pos)
    prefix, _, local = text.rpartition(":")
    return QName(prefix, local), pos


_INTEGER = BinaryForm(_write_integer, _read_integer)
_BINARY = BinaryForm(_write_bytes, _read_bytes)
_BY_LOCAL: Final[Mapping[str, BinaryForm]] = {
    "string": BinaryForm(write_string, read_string),
    "boolean": BinaryForm(lambda value: b"t" if value else b"f", _read_boolean),
    "byte": _fixed(">b"),
    "short": _fixed(">h"),
    "int": BinaryForm(compressed, _read_int),
    "long": _fixed(">q"),
    "integer": _INTEGER,
    "nonNegativeInteger": _INTEGER,
    "positiveInteger": _INTEGER,
    "nonPositiveInteger": _INTEGER,
    "negativeInteger": _INTEGER,
    "unsignedByte": _fixed(">B"),
    "unsignedShort": _fixed(">H"),
    "unsignedInt": BinaryForm(compressed, read_compressed),
    "unsignedLong": _fixed(">Q"),
    "decimal": BinaryForm(_write_decimal, _read_decimal),
    "float": _fixed(">f"),
    "double": _fixed(">d"),
    "date": BinaryForm(_write_date, _read_date),
    "time": BinaryForm(_write_time, _read_time),
    "dateTime": BinaryForm(write_datetime, read_datetime),
    "duration": BinaryForm(_write_duration, _read_duration),
    "hexBinary": _BINARY,
    "base64Binary": _BINARY,
    "QName": BinaryForm(lambda value: write_string(str(value)), _read_qname),
}

# Types whose bytes can encode something that is not a value of the type.
_CHECKED = frozenset(
    {
        "integer",
        "nonNegativeInteger",
        "positiveInteger",
        "nonPositiveInteger",
        "negativeInteger",
        "decimal",
        "duration",
        "QName",
    }
)


def _checked(primitive: Primitive, form: BinaryForm) -> BinaryForm:
    """Return a form that writes and reads only values of the type."""
    check = primitive.check

    def write(value: Any) -> bytes:
        check(value)
        try:
            return form.write(value)
        except (ValueError, OverflowError, struct.error) as error:
            raise InvalidValue(
                "this is not a value of the type", type=primitive.name.local
            ) from error

    def read(data: bytes, pos: int) -> tuple[Any, int]:
        value, pos = form.read(data, pos)
        check(value)
        return value, pos

    if primitive.name.local == "string":
        return form
    return BinaryForm(write, read if primitive.name.local in _CHECKED else form.read)


FORMS: Final[Mapping[Name, BinaryForm]] = {
    primitive.name: _checked(primitive, _BY_LOCAL[primitive.name.local]) for primitive in ALL
}
"""The binary form of every primitive type; writing refuses what is not a value of the type."""
