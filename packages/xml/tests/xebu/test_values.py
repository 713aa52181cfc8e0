"""Every primitive value has bytes, and every byte string is a value or an error."""

import struct
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, strategies as st

from lasthop_xml.errors import XmlError
from lasthop_xml.xas.errors import InvalidValue, MalformedEvents
from lasthop_xml.xas.names import XSD_NS, Name
from lasthop_xml.xas.types.table import PRIMITIVES, lexical
from lasthop_xml.xebu.layout import compressed, read_compressed, short_string
from lasthop_xml.xebu.values import FORMS
from tests.xas.documents import VALUES
from tests.xas.strategies import typed_values

REFUSALS = (InvalidValue, MalformedEvents, IndexError, ValueError, OverflowError, struct.error)
"""What a form may raise; a decoder turns all of them into its own error."""


def of(local: str) -> Any:
    return FORMS[Name(XSD_NS, local)]


@pytest.mark.parametrize("local", VALUES)
def test_values_come_back_from_their_bytes(local: str) -> None:
    type_ = Name(XSD_NS, local)
    for value in VALUES[local]:
        data = FORMS[type_].write(value)
        again, pos = FORMS[type_].read(b"--" + data + b"--", 2)
        assert pos == 2 + len(data)
        assert type(again) is type(value)
        assert lexical(type_, again) == lexical(type_, value)


@given(typed_values())
def test_any_value_comes_back_from_its_bytes(case: tuple[Name, Any]) -> None:
    type_, value = case
    data = FORMS[type_].write(value)
    again, pos = FORMS[type_].read(data, 0)
    assert pos == len(data)
    assert lexical(type_, again) == lexical(type_, value)


@given(st.sampled_from(sorted(VALUES)), st.binary(max_size=24))
def test_any_bytes_are_a_value_or_an_error(local: str, data: bytes) -> None:
    type_ = Name(XSD_NS, local)
    try:
        value, pos = FORMS[type_].read(data, 0)
    except REFUSALS:
        return
    if pos <= len(data):
        again, _ = FORMS[type_].read(FORMS[type_].write(value), 0)
        assert lexical(type_, again) == lexical(type_, value)


@pytest.mark.parametrize(
    "local, value, data",
    [
        ("boolean", True, "74"),
        ("boolean", False, "66"),
        ("int", 5, "05"),
        ("int", 300, "812c"),
        ("int", 16383, "bfff"),
        ("int", 16384, "c000004000"),
        ("int", -1, "c0ffffffff"),
        ("string", "ä", "02c3a4"),
        ("long", 1141290193000, "00000109ba325068"),
        ("short", -2, "fffe"),
        ("byte", -2, "fe"),
        ("dateTime", datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC), "00000000000003e8"),
        ("dateTime", datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC), "fffffffffffffc18"),
        ("double", 8.0, "4020000000000000"),
        ("float", 0.5, "3f000000"),
        ("hexBinary", b"\x00\xff", "0200ff"),
    ],
)
def test_the_bytes_are_those_of_the_format(local: str, value: object, data: str) -> None:
    assert of(local).write(value).hex() == data
    assert of(local).read(bytes.fromhex(data), 0) == (value, len(data) // 2)


def test_types_check_what_they_write() -> None:
    for local in VALUES:
        with pytest.raises(InvalidValue):
            of(local).write(object())
    with pytest.raises(XmlError):
        of("string").write("\x00")
    assert set(FORMS) == set(PRIMITIVES)


@given(st.integers(0, 2**32 - 1) | st.integers(0, 20000))
def test_compressed_numbers_come_back(value: int) -> None:
    data = compressed(value)
    assert len(data) == (1 if value < 0x80 else 2 if value < 0x4000 else 5)
    assert read_compressed(data + b"x", 0) == (value, len(data))
    for cut in range(len(data)):
        with pytest.raises(IndexError):
            read_compressed(data[:cut], 0)


def test_a_number_has_three_forms_only() -> None:
    with pytest.raises(ValueError, match="unknown form"):
        read_compressed(b"\xc1\x00\x00\x00\x00", 0)


def test_a_short_string_can_be_long() -> None:
    assert short_string(b"x" * 254)[:2] == b"\xfex"
    assert short_string(b"x" * 255)[:4] == b"\xff\x80\xffx"
