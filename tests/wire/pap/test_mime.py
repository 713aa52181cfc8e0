"""Headers and media types are read liberally and written strictly."""

import pytest
from hypothesis import given, strategies as st

from lasthop.errors import LasthopError, PapMalformed, TooLarge
from lasthop.wire.pap.mime import (
    MAX_HEADER_BLOCK,
    MAX_HEADERS,
    MAX_PARAMETERS,
    format_headers,
    header,
    parse_headers,
    parse_media_type,
    quote,
)


@pytest.mark.parametrize(
    "text, essence, parameters",
    [
        ("text/plain", "text/plain", {}),
        (" Text/VND.wap.SI ; ", "text/vnd.wap.si", {}),
        ("a/b;c=d", "a/b", {"c": "d"}),
        ('a/b; C="d e"; f = g ;', "a/b", {"c": "d e", "f": "g"}),
        (r'a/b; c="d\"e\\f;=" ', "a/b", {"c": 'd"e\\f;='}),
        ("a/b; c=; d=", "a/b", {"c": "", "d": ""}),
        ("a/b; c=1; C=2", "a/b", {"c": "1"}),
        ("a/b; type=application/xml", "a/b", {"type": "application/xml"}),
        ("a/b; boundary=x=y:z?", "a/b", {"boundary": "x=y:z?"}),
    ],
)
def test_media_types(text: str, essence: str, parameters: dict[str, str]) -> None:
    assert parse_media_type(text) == (essence, parameters)


@pytest.mark.parametrize("text", ["", "text", "/x", "a/b c", 'a/b; c="d', "a/b; c", 'a/b; c="d"e'])
def test_what_is_no_media_type(text: str) -> None:
    with pytest.raises(PapMalformed, match="media type"):
        parse_media_type(text)


def test_a_media_type_has_few_parameters() -> None:
    with pytest.raises(TooLarge):
        parse_media_type("a/b" + "".join(f";p{n}=1" for n in range(MAX_PARAMETERS + 1)))


@given(st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=20))
def test_quoted_parameters_come_back(value: str) -> None:
    found = parse_media_type(f"a/b; c={quote(value)}; d=e").parameters
    assert found == {"c": value.rstrip(" "), "d": "e"}


@given(st.text(max_size=60))
def test_any_text_is_a_media_type_or_an_error(text: str) -> None:
    try:
        parse_media_type("a/b;" + text)
    except LasthopError:
        return


def test_headers_in_all_shapes() -> None:
    block = b"Content-Type:text/plain\r\nX-A : 1\nX-B: a\r\n\t b\n  c\r\nX-C:\r\nX-D: \xc3\xa9"
    assert parse_headers(block) == (
        ("Content-Type", "text/plain"),
        ("X-A", "1"),
        ("X-B", "a b c"),
        ("X-C", ""),
        ("X-D", "é"),
    )
    assert parse_headers(b"X-D: \xe9") == (("X-D", "é"),)
    assert header((("A", "1"), ("a", "2")), "a") == "1"
    assert header((), "a") is None


@pytest.mark.parametrize("block", [b"no colon", b": x", b"a b: c", b"A: 1\n\nB: 2", b" A: 1"])
def test_what_is_no_header(block: bytes) -> None:
    with pytest.raises(PapMalformed, match="not a header"):
        parse_headers(block)


@pytest.mark.parametrize("block", [b"A: b\rc", b"A: b\0c", b"A: b\x94c", b"A: b\x1b"])
def test_control_characters_do_not_pass(block: bytes) -> None:
    with pytest.raises(PapMalformed, match="control characters"):
        parse_headers(block)


def test_headers_have_limits() -> None:
    with pytest.raises(TooLarge):
        parse_headers(b"A: " + b"x" * MAX_HEADER_BLOCK)
    with pytest.raises(TooLarge):
        parse_headers(b"\n".join([b"A: 1"] * (MAX_HEADERS + 1)))


def test_headers_are_written_one_a_line() -> None:
    assert format_headers((("A", "1"), ("B", ""))) == b"A: 1\r\nB: \r\n"
    for wrong in [
        ("A B", "1"),
        ("", "1"),
        ("A", "1\r\nB: 2"),
        ("A", "\n"),
        ("A", " 1"),
        ("A:", ""),
    ]:
        with pytest.raises(ValueError, match="of a header"):
            format_headers((wrong,))
