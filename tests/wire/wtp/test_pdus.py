"""Octets to PDUs and back: the worked examples, every field, and what is none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from lasthop.errors import Malformed, TooLarge
from lasthop.wire.wsp.pdus import (
    Connect,
    ConnectReply,
    Push,
    decode_pdu,
    encode_pdu as encode_wsp,
)
from lasthop.wire.wtp.pdus import (
    Abort,
    Ack,
    Invoke,
    NegativeAck,
    Pdu,
    Result,
    Segment,
    Tpi,
    Trailer,
    decode_datagram,
    encode_datagram,
    encode_pdu,
)

VECTORS: dict[str, Any] = json.loads(Path("vectors/wtp/pdus.json").read_text())

numbers = st.integers(0, 0xFFFF)
trailers = st.sampled_from(Trailer)
items = st.lists(st.builds(Tpi, st.integers(0, 15), st.binary(max_size=40)), max_size=3).map(tuple)
# A last item that is a packet's number is a field of the acknowledgement.
plain = items.filter(lambda found: not found or found[-1].identity != 3)
pdus: st.SearchStrategy[Pdu] = st.one_of(
    st.builds(
        Invoke,
        numbers,
        st.integers(0, 3),
        st.binary(max_size=50),
        trailers,
        st.booleans(),
        tid_new=st.booleans(),
        user_ack=st.booleans(),
        version=st.integers(0, 3),
        items=items,
    ),
    st.builds(Result, numbers, st.binary(max_size=50), trailers, st.booleans(), items),
    st.builds(
        Segment,
        numbers,
        st.integers(0, 255),
        st.binary(max_size=50),
        trailers,
        st.booleans(),
        st.booleans(),
        items,
    ),
    st.builds(Ack, numbers, st.booleans(), st.booleans(), st.none() | st.integers(0, 255), plain),
    st.builds(
        NegativeAck,
        numbers,
        st.lists(st.integers(0, 255), max_size=9).map(tuple),
        st.booleans(),
        items,
    ),
    st.builds(Abort, numbers, st.integers(0, 255), st.booleans(), items),
)


@pytest.mark.parametrize("case", VECTORS["cases"], ids=lambda case: str(case["name"]))
def test_a_vector_reads_and_writes_alike(case: dict[str, Any]) -> None:
    octets = bytes.fromhex(case["octets"])
    (pdu,) = decode_datagram(octets)
    assert type(pdu).__name__.lower() == case["type"]
    for name, value in case["fields"].items():
        found = getattr(pdu, name)
        assert (list(found) if isinstance(found, tuple) else found) == value, name
    assert encode_pdu(pdu) == octets
    if "session_pdu" in case:
        assert isinstance(pdu, Invoke | Result)
        inner = decode_pdu(pdu.data)
        assert type(inner).__name__ == case["session_pdu"]
        assert isinstance(inner, Push | Connect | ConnectReply)
        assert encode_wsp(inner) == pdu.data


@pytest.mark.parametrize("case", VECTORS["errors"], ids=lambda case: str(case["name"]))
def test_what_is_no_datagram_is_refused_with_the_place(case: dict[str, Any]) -> None:
    with pytest.raises(Malformed, match=case["error"]) as caught:
        decode_datagram(bytes.fromhex(case["octets"]))
    assert caught.value.fields["offset"] == case["offset"]


@given(st.lists(pdus, min_size=1, max_size=5))
def test_every_datagram_comes_back(several: list[Pdu]) -> None:
    assert decode_datagram(encode_datagram(several)) == several


@given(st.binary(max_size=60))
def test_any_octets_are_read_or_refused_and_what_is_read_is_written_again(data: bytes) -> None:
    try:
        found = decode_datagram(data)
    except (Malformed, TooLarge):
        return
    assert decode_datagram(encode_datagram(found)) == found


def test_a_datagram_has_a_limit() -> None:
    with pytest.raises(TooLarge, match="too many PDUs"):
        decode_datagram(b"\0" + b"\x03\x18\0\1" * 65)
