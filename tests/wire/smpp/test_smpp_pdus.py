"""Octets to PDUs of SMPP and back: the worked examples, every field, and what is none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from lasthop.errors import Malformed, TooLarge
from lasthop.wire.smpp.commands import SmppCommand, SmsState
from lasthop.wire.smpp.delivery_receipts import read_receipt
from lasthop.wire.smpp.smpp_pdus import (
    MAX_PDU,
    BadBody,
    Bind,
    BindAnswer,
    Cancel,
    DataMessage,
    Empty,
    MessageAnswer,
    Outbind,
    Pdu,
    PduReader,
    QueryAnswer,
    Replace,
    ShortMessage,
    SmppAddress,
    SmppQuery,
    UnknownCommand,
    decode_pdu,
    encode_pdu,
    phone_address,
)

VECTORS: list[dict[str, Any]] = json.loads(Path("vectors/smpp/pdus.json").read_text())["cases"]

octet = st.integers(0, 255)


def texts(most: int) -> st.SearchStrategy[str]:
    return st.text(st.characters(min_codepoint=1, max_codepoint=255), max_size=most - 1)


def addresses(most: int) -> st.SearchStrategy[SmppAddress]:
    return st.builds(SmppAddress, texts(most), octet, octet)


tlvs = st.lists(st.tuples(st.integers(0, 0xFFFF), st.binary(max_size=20)), max_size=4).map(tuple)
messages = st.builds(
    ShortMessage,
    source=addresses(21),
    destination=addresses(21),
    service_type=texts(6),
    esm_class=octet,
    protocol_id=octet,
    priority=octet,
    schedule=texts(17),
    validity=texts(17),
    registered=octet,
    replace=octet,
    coding=octet,
    default_id=octet,
    message=st.binary(max_size=254),
    tlvs=tlvs,
)
data = st.builds(
    DataMessage,
    source=addresses(65),
    destination=addresses(65),
    service_type=texts(6),
    esm_class=octet,
    registered=octet,
    coding=octet,
    tlvs=tlvs,
)
binds = st.builds(Bind, texts(16), texts(9), texts(13), octet, addresses(41))
answers = st.builds(MessageAnswer, texts(65), tlvs)
C = SmppCommand
bodies = st.one_of(
    st.tuples(st.sampled_from((C.BIND_RECEIVER, C.BIND_TRANSMITTER, C.BIND_TRANSCEIVER)), binds),
    st.tuples(st.just(C.BIND_TRANSCEIVER_RESP), st.builds(BindAnswer, texts(16), tlvs)),
    st.tuples(st.just(C.OUTBIND), st.builds(Outbind, texts(16), texts(9))),
    st.tuples(st.sampled_from((C.SUBMIT_SM, C.DELIVER_SM)), messages),
    st.tuples(st.just(C.DATA_SM), data),
    st.tuples(st.sampled_from((C.SUBMIT_SM_RESP, C.DELIVER_SM_RESP, C.DATA_SM_RESP)), answers),
    st.tuples(st.just(C.QUERY_SM), st.builds(SmppQuery, texts(65), addresses(21))),
    st.tuples(st.just(C.QUERY_SM_RESP), st.builds(QueryAnswer, texts(65), texts(17), octet, octet)),
    st.tuples(
        st.just(C.CANCEL_SM),
        st.builds(Cancel, texts(65), addresses(21), addresses(21), texts(6)),
    ),
    st.tuples(
        st.just(C.REPLACE_SM),
        st.builds(
            Replace,
            message_id=texts(65),
            source=addresses(21),
            schedule=texts(17),
            validity=texts(17),
            registered=octet,
            default_id=octet,
            message=st.binary(max_size=254),
        ),
    ),
    st.tuples(st.sampled_from((C.UNBIND, C.ENQUIRE_LINK, C.GENERIC_NACK)), st.just(Empty())),
)
pdus = st.builds(
    lambda pair, sequence: Pdu(pair[0], sequence, pair[1]), bodies, st.integers(0, 0xFFFF_FFFF)
)


@pytest.mark.parametrize("case", VECTORS, ids=lambda case: str(case["name"]))
def test_worked_examples_are_read_and_written(case: dict[str, Any]) -> None:
    octets = bytes.fromhex(case["octets"])
    pdu = decode_pdu(octets)
    assert (pdu.command.name, pdu.sequence, pdu.status) == (case["command"], case["sequence"], 0)
    message = pdu.body
    assert isinstance(message, ShortMessage)
    assert message.source.text == case["source"]
    assert message.destination.text == case["destination"]
    assert (message.esm_class, message.coding) == (case["esm_class"], case["coding"])
    assert message.validity == case["validity"]
    assert message.content.hex() == case["message"]
    assert encode_pdu(pdu) == octets
    receipt = read_receipt(message)
    assert (receipt is not None) == ("receipt" in case)
    if receipt is not None:
        assert receipt.message_id == case["receipt"]["message_id"]
        assert receipt.state is SmsState[case["receipt"]["state"]]


@pytest.mark.parametrize("case", VECTORS, ids=lambda case: str(case["name"]))
def test_a_stream_is_cut_however_it_arrives(case: dict[str, Any]) -> None:
    octets = bytes.fromhex(case["octets"])
    reader = PduReader()
    found = [unit for byte in octets + octets[:9] for unit in reader.feed(bytes((byte,)))]
    assert found == [octets]
    assert reader.feed(octets[9:] + octets) == [octets, octets]


@given(pdus)
def test_every_pdu_comes_back(pdu: Pdu) -> None:
    octets = encode_pdu(pdu)
    assert int.from_bytes(octets[:4], "big") == len(octets)
    assert decode_pdu(octets) == pdu


@given(st.lists(pdus, max_size=4), st.lists(st.integers(0, 400), max_size=8))
def test_streams_are_cut_anywhere(several: list[Pdu], cuts: list[int]) -> None:
    stream = b"".join(map(encode_pdu, several))
    reader, found, at = PduReader(), [], 0
    for cut in (*sorted(cuts), len(stream)):
        found += reader.feed(stream[at : max(at, cut)])
        at = max(at, min(cut, len(stream)))
    assert list(map(decode_pdu, found)) == several


@given(st.binary(max_size=80), st.sampled_from(sorted(SmppCommand)))
def test_nothing_else_is_raised(rest: bytes, command: SmppCommand) -> None:
    octets = (
        (16 + len(rest)).to_bytes(4, "big") + command.to_bytes(4, "big") + bytes(7) + b"\1" + rest
    )
    try:
        pdu = decode_pdu(octets)
    except (Malformed, TooLarge):
        return
    assert decode_pdu(encode_pdu(pdu)) == pdu


def test_an_answer_that_refuses_needs_no_body() -> None:
    octets = bytes.fromhex("00000010800000040000005800000005")
    assert decode_pdu(octets) == Pdu(SmppCommand.SUBMIT_SM_RESP, 5, Empty(), 0x58)


def test_an_unknown_command_can_be_answered() -> None:
    with pytest.raises(UnknownCommand) as unknown:
        decode_pdu(bytes.fromhex("00000010000000990000000000000007"))
    assert unknown.value.sequence == 7


def test_a_bad_body_can_be_answered() -> None:
    with pytest.raises(BadBody) as bad:
        decode_pdu(bytes.fromhex("00000012000000040000000000000007") + b"ab")
    assert (bad.value.sequence, bad.value.command) == (7, SmppCommand.SUBMIT_SM)


@pytest.mark.parametrize("size", [0, 15, MAX_PDU + 1, 0xFFFF_FFFF])
def test_a_length_that_no_pdu_has_is_refused_before_it_is_read(size: int) -> None:
    with pytest.raises((Malformed, TooLarge)):
        PduReader().feed(size.to_bytes(4, "big") + bytes(12))


def test_what_has_no_room_is_refused() -> None:
    to = SmppAddress("1")
    for body in (
        ShortMessage(destination=to, message=bytes(255)),
        ShortMessage(destination=to, service_type="123456"),
        Bind("x" * 16),
        Replace(message_id="1", message=bytes(255)),
        DataMessage(destination=to, tlvs=((0x424, bytes(65_000)), (0x424, bytes(65_000)))),
    ):
        with pytest.raises(TooLarge):
            encode_pdu(Pdu(SmppCommand.SUBMIT_SM, 1, body))
    with pytest.raises(Malformed):
        encode_pdu(Pdu(SmppCommand.BIND_RECEIVER, 1, Bind("a\0b")))


def test_there_is_a_limit_to_parameters() -> None:
    body = ShortMessage(destination=SmppAddress("1"), tlvs=((1, b""),) * 65)
    with pytest.raises(BadBody, match="too many"):
        decode_pdu(encode_pdu(Pdu(SmppCommand.SUBMIT_SM, 1, body)))


def test_numbers_have_their_types() -> None:
    assert phone_address("+15551999") == SmppAddress("15551999", 1, 1)
    assert phone_address("2948") == SmppAddress("2948", 0, 1)
    assert phone_address("Lasthop") == SmppAddress("Lasthop", 5, 0)
