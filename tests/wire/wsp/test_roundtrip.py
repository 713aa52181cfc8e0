"""Every header, PDU and request comes back, and nothing but our errors escapes.

About `wire/wsp/headers.py`, `wire/wsp/pdus.py` and `wire/wsp/sir.py`.
"""

import contextlib
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from lasthop.errors import LasthopError
from lasthop.wire.wsp.headers import Field, decode_headers, encode_headers
from lasthop.wire.wsp.lines import format_lines, parse_lines
from lasthop.wire.wsp.media import decode_content_type, encode_content_type
from lasthop.wire.wsp.multipart import MultipartEntry, decode_multipart, encode_multipart
from lasthop.wire.wsp.pdus import Pdu, decode_pdu, decode_unit, encode_pdu, encode_unit
from lasthop.wire.wsp.primitives import OctetCursor, Version
from lasthop.wire.wsp.sir import Sir, decode_sir, encode_sir
from tests.wire.wsp.strategies import content_types, header, headers, pdus, sirs, versions


@settings(max_examples=200)
@given(header, versions)
def test_a_header_comes_back(one: Field, version: Version) -> None:
    assert decode_headers(encode_headers([one], version=version)) == (one,)


@given(headers, versions)
def test_a_block_comes_back_from_octets_and_from_lines(
    block: tuple[Field, ...], version: Version
) -> None:
    assert decode_headers(encode_headers(block, version=version)) == block
    assert parse_lines(format_lines(block)) == block


@given(content_types, versions)
def test_a_content_type_comes_back(text: str, version: Version) -> None:
    data = encode_content_type(text, version)
    cursor = OctetCursor(data + b"\xff")
    assert decode_content_type(cursor) == text
    assert cursor.pos == len(data)


@given(pdus, versions, st.integers(0, 255))
def test_a_pdu_comes_back(pdu: Pdu, version: Version, transaction: int) -> None:
    assert decode_pdu(encode_pdu(pdu, version=version)) == pdu
    assert decode_unit(encode_unit(transaction, pdu, version=version)) == (transaction, pdu)


@given(sirs)
def test_a_session_initiation_request_comes_back(sir: Sir) -> None:
    assert decode_sir(encode_sir(sir)) == sir


@given(
    st.lists(st.builds(MultipartEntry, content_types, headers, st.binary(max_size=20)), max_size=3),
    versions,
)
def test_a_multipart_body_comes_back(entries: list[MultipartEntry], version: Version) -> None:
    assert decode_multipart(encode_multipart(entries, version=version)) == tuple(entries)


def _headers_again(data: bytes) -> None:
    decode_headers(encode_headers(decode_headers(data)))


def _pdu_again(data: bytes) -> None:
    decode_pdu(encode_pdu(decode_pdu(data)))


def _sir_again(data: bytes) -> None:
    decode_sir(data)


FUZZED: list[Callable[[bytes], Any]] = [_headers_again, _pdu_again, _sir_again, decode_multipart]


@settings(max_examples=300)
@given(
    st.one_of(
        st.binary(max_size=100),
        st.tuples(st.integers(0x80, 0xCF), st.binary(max_size=30)).map(
            lambda parts: bytes((parts[0], len(parts[1]))) + parts[1]
        ),
        st.binary(max_size=60).map(lambda rest: b"\x06" + bytes((len(rest),)) + rest),
    )
)
def test_no_octets_make_anything_but_our_errors(data: bytes) -> None:
    for decode in FUZZED:
        with contextlib.suppress(LasthopError):
            decode(data)


@given(st.text(max_size=60), st.text(max_size=60))
def test_no_text_makes_anything_but_our_errors(name: str, value: str) -> None:
    with contextlib.suppress(LasthopError):
        encode_headers(parse_lines(f"{name}: {value}"))
    for known in ("Accept", "Cache-Control", "Content-Disposition", "X-Wap-Application-Id"):
        with contextlib.suppress(LasthopError):
            encode_headers(parse_lines(f"{known}: {value}"))


@pytest.mark.parametrize(
    "data",
    [
        b"\x85\x81" * 40_000,
        b"\x06\x8f\xff\xff\xff\x7f",
        b"\x03\x00" + b"\x00" * 70_000,
        b"\x01" * 100_000,
    ],
)
def test_hostile_octets_cost_little(data: bytes) -> None:
    tracemalloc.start()
    try:
        for decode in (decode_headers, decode_pdu, decode_sir, decode_multipart):
            with contextlib.suppress(LasthopError):
                decode(data)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 16 * 1024 * 1024


@pytest.mark.parametrize(
    "line",
    [
        "Accept: text/plain;" + " " * 60_000 + '"',
        "Accept: text/plain; a=" + " " * 60_000 + '"',
        'Accept: "' + "a," * 30_000,
        "Content-Disposition: x" + ';a="\\' * 10_000,
        "X-Wap-Application-Id: a:" + " ;" * 30_000,
        "Warning: 1 " + "a" * 60_000,
    ],
)
def test_hostile_text_is_read_in_one_pass(line: str) -> None:
    encode_headers(parse_lines(line))
