from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from lasthop.wire.tracecontext import TraceContext, of_message, of_request, parse, without

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
WHOLE = f"00-{TRACE}-{SPAN}-01"


@given(
    st.integers(1, (1 << 128) - 1).map(lambda n: n.to_bytes(16)),
    st.integers(1, (1 << 64) - 1).map(lambda n: n.to_bytes(8)),
    st.booleans(),
)
def test_what_is_written_is_read(trace: bytes, span: bytes, sampled: bool) -> None:
    context = TraceContext(trace, span, sampled)
    assert parse(str(context)) == context


@pytest.mark.parametrize(
    "value",
    [
        "",
        "traced",
        WHOLE.upper(),
        WHOLE[:-1],
        WHOLE + "0",
        WHOLE + "-more",
        f"ff-{TRACE}-{SPAN}-01",
        f"00-{'0' * 32}-{SPAN}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"00-{TRACE}-{SPAN}-0g",
        f"00-{TRACE[:-1]}-{SPAN}-01",
        f"0-{TRACE}-{SPAN}-01",
        f"00-{TRACE}-{SPAN}-٠١",
        f"00_{TRACE}_{SPAN}_01",
    ],
)
def test_what_makes_no_sense_is_as_if_it_were_not_there(value: str) -> None:
    assert parse(value) is None
    assert of_request({b"traceparent": value.encode()}) == ()
    assert of_message((("traceparent", value),)) == ""


@pytest.mark.parametrize(
    "flags,sampled", [("00", False), ("01", True), ("02", False), ("ff", True)]
)
def test_only_the_first_flag_says_whether_it_is_recorded(flags: str, sampled: bool) -> None:
    found = parse(f"00-{TRACE}-{SPAN}-{flags}")
    assert found is not None
    assert found.sampled is sampled


def test_of_later_versions_we_read_what_we_know() -> None:
    assert parse(f"01-{TRACE}-{SPAN}-01") == parse(WHOLE)
    assert parse(f"cc-{TRACE}-{SPAN}-01-what-comes") == parse(WHOLE)
    assert parse(f"cc-{TRACE}-{SPAN}-01what") is None


def test_a_request_gives_its_messages_one_header() -> None:
    assert of_request({b"traceparent": b" " + WHOLE.encode()}) == (("traceparent", WHOLE),)
    assert of_request({b"traceparent": b"\xff"}) == ()
    assert of_request({}) == ()


def test_a_messages_context_is_found_and_taken_out_by_name() -> None:
    headers = (("colour", "red"), ("TraceParent", WHOLE))
    assert of_message(headers) == WHOLE
    assert of_message(headers[:1]) == ""
    assert without(headers) == headers[:1]
