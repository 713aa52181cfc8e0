"""Which form a header gets, by the version of the client and by its value."""

import pytest

from lasthop.errors import Malformed, TooLarge
from lasthop.wire.wsp.content_types import CONTENT_TYPES
from lasthop.wire.wsp.fields import FIELDS
from lasthop.wire.wsp.headers import Header, RawHeader, decode_headers, encode_headers
from lasthop.wire.wsp.httpdate import format_http_date, parse_http_date
from lasthop.wire.wsp.lines import parse_line, parse_lines
from lasthop.wire.wsp.media import encode_content_type
from lasthop.wire.wsp.primitives import OctetCursor, integer, long_integer, q_value, text_string
from lasthop.wire.wsp.values import KINDS


@pytest.mark.parametrize(
    "media,version,octets",
    [
        ("application/vnd.wap.sic", (1, 2), "ae"),
        ("APPLICATION/VND.WAP.SIC", (1, 2), "ae"),
        ("application/vnd.wap.sic", (1, 1), b"application/vnd.wap.sic\0".hex()),
        ("application/vnd.wap.connectivity-wbxml", (1, 2), "b6"),
        ("application/vnd.wap.mms-message", (1, 2), "be"),
        ("text/css", (1, 2), b"text/css\0".hex()),
        ("text/css", (1, 4), "bd"),
        ("application/mikey", (1, 6), b"application/mikey\0".hex()),
        ("application/vnd.wap.emn+wbxml", (1, 2), "0302030a"),
        ("text/plain; charset=utf-8", (1, 2), "038381ea"),
        ('text/plain; charset="UTF-8"', (1, 2), "038381ea"),
        ("text/plain; charset=x-mars", (1, 2), "09838" + "1782d6d61727300"),
        ("text/plain; odd=5", (1, 2), "06836f64640085"),
        ("text/plain;", (1, 2), "83"),
    ],
)
def test_content_types(media: str, version: tuple[int, int], octets: str) -> None:
    assert encode_content_type(media, version).hex() == octets


@pytest.mark.parametrize(
    "text", ["", "text", "text/", "a/b; =c", 'a/b; c="d', "a b/c", "a/b;c=d e;\0"]
)
def test_what_is_not_a_content_type_is_refused(text: str) -> None:
    with pytest.raises(Malformed, match="content type"):
        encode_content_type(text, (1, 2))


@pytest.mark.parametrize("name", ["", "a b", "a:b", "é", "a\n"])
def test_a_name_is_a_token(name: str) -> None:
    with pytest.raises(Malformed, match="name of a header"):
        encode_headers([Header(name, "x")])


@pytest.mark.parametrize("value", ["a\nb", "a\0b", "\x7f", "a\ud800"])
def test_a_value_cannot_end_its_line(value: str) -> None:
    with pytest.raises(Malformed, match="control character"):
        encode_headers([Header("X-Foo", value)])


def test_every_known_field_is_read_and_written_under_its_name() -> None:
    assert set(KINDS) < {name for name, _ in FIELDS.values()}
    for code in FIELDS:
        (found,) = decode_headers(bytes((code | 0x80,)) + b"\x1f\x84\x00" + b"\xff" * 512)
        assert isinstance(found, RawHeader)
        assert found.field == code


def test_folded_text_becomes_one_line() -> None:
    assert decode_headers(b"X\0a\r\n b\0") == (Header("X", "a b"),)


def test_text_in_latin_1_is_read() -> None:
    assert decode_headers(b"X\0\x7f\xe9\0") == (Header("X", "é"),)


def test_too_long_a_block_is_refused() -> None:
    with pytest.raises(TooLarge):
        decode_headers(b"X\0y\0" * 20_000)
    with pytest.raises(TooLarge):
        encode_headers([Header("X", "y" * 70_000)])


@pytest.mark.parametrize(
    "value,octets", [(0, "80"), (127, "ff"), (128, "0180"), (0x9002, "029002")]
)
def test_integers_take_the_shorter_form(value: int, octets: str) -> None:
    assert integer(value).hex() == octets
    assert OctetCursor(bytes.fromhex(octets)).integer() == value


def test_a_long_integer_can_be_zero_and_has_a_limit() -> None:
    assert long_integer(0).hex() == "0100"
    with pytest.raises(ValueError, match="at most 30 octets"):
        long_integer(2**240)


@pytest.mark.parametrize(
    "text,octets", [("1", ""), ("1.000", ""), ("0", "01"), ("0.5", "33"), ("0.333", "8331")]
)
def test_weights(text: str, octets: str) -> None:
    assert q_value(text).hex() == octets


@pytest.mark.parametrize("text", ["", "2", "0.1234", "-1", "1.5", "x"])
def test_what_is_not_a_weight_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a weight"):
        q_value(text)


@pytest.mark.parametrize(
    "text,octets", [("", "00"), ("a", "6100"), ("é", "7fc3a900"), ("\ta", "7f096100")]
)
def test_a_text_that_could_be_mistaken_is_quoted(text: str, octets: str) -> None:
    assert text_string(text).hex() == octets


@pytest.mark.parametrize(
    "text",
    ["Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994"],
)
def test_dates_are_read_in_three_forms_and_written_in_one(text: str) -> None:
    assert parse_http_date(text) == 784111777
    assert format_http_date(784111777) == "Sun, 06 Nov 1994 08:49:37 GMT"


@pytest.mark.parametrize(
    "text", ["", "now", "Sun, 31 Feb 1994 08:49:37 GMT", "Sun, 06 Xxx 1994 08:49:37 GMT"]
)
def test_what_is_not_a_date_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"not a date|day is out of range"):
        parse_http_date(text)


def test_lines_are_read_as_people_write_them() -> None:
    assert parse_lines("A: b\r\n\n  C :d e \n@1.4B: 81") == (
        Header("A", "b"),
        Header("C", "d e"),
        RawHeader(1, 0x4B, b"\x81"),
    )


@pytest.mark.parametrize(
    "line,message",
    [
        ("nonsense", "not a header"),
        (": x", "not a header"),
        ("a b: c", "not a header"),
        ("@1.4b: zz", "not hexadecimal"),
        ("@1.4b: 05", "not a value"),
        ("@1.4b: 8181", "not a value"),
        ("@300.4b: 81", "not a header"),
    ],
)
def test_a_line_that_is_no_header_is_named(line: str, message: str) -> None:
    with pytest.raises(Malformed, match=f"{message}.*line=7"):
        parse_line(line, number=7)


def test_every_media_type_of_the_table_is_known_by_its_name() -> None:
    for code, (name, _) in CONTENT_TYPES.items():
        assert int.from_bytes(encode_content_type(f"x-wap-type/{code:#x}", (1, 2)), "big")
        assert encode_content_type(name, (9, 0))
