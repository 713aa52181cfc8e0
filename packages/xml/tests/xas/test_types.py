"""Values and their lexical forms: the canonical comes back the same, the wrong is refused."""

import math
import struct
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, strategies as st

from lasthop_xml.xas.errors import InvalidValue, UnknownType
from lasthop_xml.xas.names import XSD_NS, Name
from lasthop_xml.xas.types.primitive import Primitive
from lasthop_xml.xas.types.table import ALL, PRIMITIVES, lexical
from lasthop_xml.xas.types.texts import QName
from lasthop_xml.xas.types.times import Duration
from tests.xas.documents import VALUES
from tests.xas.strategies import typed_values


def of(local: str) -> Primitive:
    return PRIMITIVES[Name(XSD_NS, local)]


@pytest.mark.parametrize("primitive", ALL, ids=lambda primitive: primitive.name.local)
def test_a_canonical_form_is_read_exactly(primitive: Primitive) -> None:
    for value in VALUES[primitive.name.local]:
        text = primitive.format(value)
        again = primitive.exactly(text)
        assert type(again) is type(value)
        assert primitive.format(again) == text


@given(typed_values())
def test_every_value_comes_back_from_its_text(case: tuple[Name, Any]) -> None:
    type_, value = case
    text = lexical(type_, value)
    again = PRIMITIVES[type_].exactly(text)
    assert again == value or again != again  # noqa: PLR0124 - a NaN
    assert lexical(type_, again) == text


@pytest.mark.parametrize(
    "local, text, value",
    [
        ("boolean", "1", True),
        ("boolean", " false ", False),
        ("int", "+7", 7),
        ("int", "007", 7),
        ("int", " 7\n", 7),
        ("decimal", ".5", Decimal("0.5")),
        ("decimal", "+1.", Decimal(1)),
        ("decimal", "-0", Decimal(0)),
        ("double", "1E3", 1000.0),
        ("double", "8.0E0", 8.0),
        ("double", "+INF", math.inf),
        ("float", "0.1", struct.unpack(">f", struct.pack(">f", 0.1))[0]),
        ("float", "1e39", math.inf),
        ("hexBinary", "ff0A", b"\xff\x0a"),
        ("base64Binary", "AP /+ ", b"\x00\xff\xfe"),
        ("dateTime", "2006-03-01T09:00:00.500Z", datetime(2006, 3, 1, 9, 0, 0, 500000, UTC)),
        ("dateTime", "2006-03-01T09:00:00+00:00", datetime(2006, 3, 1, 9, tzinfo=UTC)),
        ("time", "09:00:00.10", time(9, 0, 0, 100000)),
        ("date", " 1813-05-22 ", date(1813, 5, 22)),
        ("duration", "P1Y", Duration(12, 0)),
        ("duration", "P0Y14M", Duration(14, 0)),
        ("duration", "PT36H", Duration(0, 36 * 3600 * 10**9)),
        ("QName", " p:a ", QName("p", "a")),
    ],
)
def test_other_forms_are_understood_and_known_to_be_other(
    local: str, text: str, value: object
) -> None:
    assert of(local).parse(text) == value
    if of(local).format(value) != text:
        assert of(local).exactly(text) is None


@pytest.mark.parametrize(
    "local, texts",
    [
        ("boolean", ["", "TRUE", "yes", "2"]),
        ("int", ["", "1_000", "1.0", "٣", "2147483648", "-2147483649", "1e3", "0x1", "9" * 5000]),
        ("byte", ["128", "-129"]),
        ("unsignedByte", ["256", "-1"]),
        ("positiveInteger", ["0"]),
        ("integer", ["9" * 1001, "--1"]),
        ("decimal", ["", ".", "1e3", "INF", "NaN", "1,5", "9" * 1003]),
        ("double", ["", "inf", "nan", "infinity", "1_0", "0x1p3", "1e"]),
        ("hexBinary", ["f", "0g", "00 00"]),
        ("base64Binary", ["A", "====", "ä"]),
        (
            "dateTime",
            ["", "2006-03-01", "2006-02-30T00:00:00", "2006-03-01T25:00:00", "06-03-01T00:00:00"],
        ),
        ("dateTime", ["2006-03-01T09:00:00+15:00", "2006-03-01T09:00:00.1234567", "x"]),
        ("date", ["2006-13-01", "20060301", "2006-02-30", "2006-03-01Z"]),
        ("time", ["24:00:01", "9:00:00", "09:00", "09:00:60"]),
        ("duration", ["", "P", "PT", "P1", "1Y", "P1YT", "P1S", "-P", "P1.5Y"]),
        ("QName", ["", ":a", "a:", "a:b:c", "1a", "a b"]),
    ],
)
def test_what_is_no_value_is_refused(local: str, texts: list[str]) -> None:
    for text in texts:
        with pytest.raises(InvalidValue):
            of(local).parse(text)
        assert of(local).exactly(text) is None


@pytest.mark.parametrize(
    "local, values",
    [
        ("string", [1, None, b"x"]),
        ("boolean", [1, 0, "true"]),
        ("int", [True, 1.0, "1", 2**31]),
        ("integer", [10**1000]),
        ("decimal", [1, 1.5, Decimal("NaN"), Decimal("Infinity"), Decimal("1E+5000")]),
        ("double", [1, "1.0"]),
        ("float", [0.1, 1e300]),
        ("date", [datetime(2006, 3, 1, tzinfo=UTC), "2006-03-01"]),
        ("time", ["09:00:00"]),
        ("dateTime", [date(2006, 3, 1)]),
        ("duration", [(1, 1), Duration(1, -1), Duration(10**11, 0)]),
        ("hexBinary", ["00", bytearray(b"x")]),
        ("base64Binary", ["AA=="]),
        ("QName", ["a", QName("1", "a"), QName("", "a b")]),
    ],
)
def test_what_is_of_another_type_is_refused(local: str, values: list[object]) -> None:
    for value in values:
        with pytest.raises(InvalidValue):
            of(local).format(value)


def test_the_double_with_most_digits_and_the_single_with_fewest() -> None:
    assert of("double").format(5e-324) == "5e-324"
    assert of("float").format(of("float").parse("3.4028235e38")) == "3.4028235e+38"
    assert of("float").format(of("float").parse("0.1")) == "0.1"
    assert of("double").format(math.nan) == "NaN"


@given(st.floats(width=32))
def test_a_short_float_is_the_same_single(value: float) -> None:
    text = of("float").format(value)
    again = of("float").parse(text)
    assert struct.pack(">f", again) == struct.pack(">f", value) or math.isnan(value)
    assert len(text.partition("e")[0].replace("-", "").replace(".", "").strip("0")) <= 9


def test_a_type_that_does_not_exist_is_said() -> None:
    with pytest.raises(UnknownType):
        lexical(Name("", "int"), 1)
    with pytest.raises(UnknownType):
        lexical(None, 1)
