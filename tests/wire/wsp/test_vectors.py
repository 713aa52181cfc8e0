"""The octets that every implementation agrees on, in both directions.

About `wire/wsp/headers.py` and `wire/wsp/pdus.py`.
"""

from collections.abc import Callable
from typing import Any

import pytest

from lasthop.errors import Malformed
from lasthop.wire.wsp.headers import decode_headers, encode_headers
from lasthop.wire.wsp.lines import format_line, parse_line
from lasthop.wire.wsp.multipart import decode_multipart, encode_multipart
from lasthop.wire.wsp.pdus import (
    Disconnect,
    Push,
    Reply,
    Suspend,
    decode_pdu,
    decode_unit,
    encode_pdu,
    encode_unit,
)
from lasthop.wire.wsp.sir import decode_sir, encode_sir
from tests.wire.wsp.vectors import Case, cases, pdu_to_json, sir_to_json, version_of


@pytest.mark.parametrize("case", cases("headers.json"))
class TestHeaders:
    def test_text_becomes_octets(self, case: Case) -> None:
        headers = tuple(map(parse_line, case["text"]))
        assert encode_headers(headers, version=version_of(case)).hex() == case["octets"]

    def test_octets_become_text(self, case: Case) -> None:
        headers = decode_headers(bytes.fromhex(case["octets"]))
        assert [format_line(each) for each in headers] == case.get("decoded", case["text"])

    def test_a_part_of_the_octets_is_refused_or_has_fewer_headers(self, case: Case) -> None:
        data = bytes.fromhex(case["octets"])
        whole = decode_headers(data)
        for end in range(len(data)):
            try:
                part = decode_headers(data[:end])
            except Malformed:
                continue
            assert part == whole[: len(part)]

    def test_what_follows_is_read_on_its_own(self, case: Case) -> None:
        data = bytes.fromhex(case["octets"])
        assert decode_headers(data + b"X\0y\0")[:-1] == decode_headers(data)


@pytest.mark.parametrize("case", cases("pdus.json"))
class TestPdus:
    def test_octets_become_a_pdu_and_octets_again(self, case: Case) -> None:
        data = bytes.fromhex(case["octets"])
        expected = case.get("encoded", case["octets"])
        if "transaction" in case:
            transaction, pdu = decode_unit(data)
            assert transaction == case["transaction"]
            assert encode_unit(transaction, pdu, version=version_of(case)).hex() == expected
        else:
            pdu = decode_pdu(data)
            assert encode_pdu(pdu, version=version_of(case)).hex() == expected
        assert pdu_to_json(pdu) == case["pdu"]

    def test_a_part_of_the_octets_is_refused_or_has_less_of_its_end(self, case: Case) -> None:
        data = bytes.fromhex(case["octets"])[1 if "transaction" in case else 0 :]
        whole = decode_pdu(data)
        for end in range(len(data)):
            try:
                part = decode_pdu(data[:end])
            except Malformed:
                continue
            if isinstance(whole, Push | Reply):
                assert isinstance(part, Push | Reply)
                assert part.headers == whole.headers
                assert whole.data.startswith(part.data)
            else:
                # Headers and addresses at the end of a PDU have no length.
                assert case["pdu"]["type"] in ("redirect", "resume")

    def test_trailing_octets_belong_to_the_content_or_are_refused(self, case: Case) -> None:
        data = bytes.fromhex(case["octets"])[1 if "transaction" in case else 0 :]
        whole = decode_pdu(data)
        if isinstance(whole, Push | Reply):
            longer = decode_pdu(data + b"x")
            assert isinstance(longer, Push | Reply)
            assert longer.data == whole.data + b"x"
        elif isinstance(whole, Disconnect | Suspend) or case["pdu"]["type"].startswith("connect"):
            with pytest.raises(Malformed, match="octets behind the end"):
                decode_pdu(data + b"x")

    def test_the_parts_of_a_multipart_body(self, case: Case) -> None:
        if "parts" not in case:
            return
        body = bytes.fromhex(case["pdu"]["data"])
        entries = decode_multipart(body)
        assert [
            {
                "content_type": entry.content_type,
                "headers": [format_line(each) for each in entry.headers],
                "data": entry.data.hex(),
            }
            for entry in entries
        ] == case["parts"]
        assert encode_multipart(entries, version=(1, 3)) == body


@pytest.mark.parametrize("case", cases("sir.json"))
def test_session_initiation_requests_both_ways(case: Case) -> None:
    data = bytes.fromhex(case["octets"])
    sir = decode_sir(data)
    assert sir_to_json(sir) == case["sir"]
    assert encode_sir(sir).hex() == case.get("encoded", case["octets"])
    for end in range(len(data)):
        with pytest.raises(Malformed):
            decode_sir(data[:end])
    with pytest.raises(Malformed, match="octets behind the end"):
        decode_sir(data + b"\0")


DECODERS: dict[str, Callable[[bytes], Any]] = {
    "headers": decode_headers,
    "pdu": decode_pdu,
    "unit": decode_unit,
    "sir": decode_sir,
    "multipart": decode_multipart,
}


@pytest.mark.parametrize("case", cases("errors.json"))
def test_what_is_wrong_is_refused_with_its_place(case: Case) -> None:
    with pytest.raises(Malformed) as refused:
        DECODERS[case["format"]](bytes.fromhex(case["octets"]))
    assert case["says"] in str(refused.value)
    assert refused.value.fields["offset"] == case["offset"]
