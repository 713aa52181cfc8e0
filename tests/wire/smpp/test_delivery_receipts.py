"""Receipts of SMSCs in both forms."""

from __future__ import annotations

import pytest

from lasthop.wire.smpp.commands import SmsState, Tag
from lasthop.wire.smpp.delivery_receipts import (
    DeliveryReceipt,
    id_spellings,
    read_receipt,
    receipt_text,
)
from lasthop.wire.smpp.smpp_pdus import ShortMessage, SmppAddress


def receipt(text: bytes = b"", *, kind: int = 4, **tlvs: bytes) -> DeliveryReceipt | None:
    found = tuple((Tag[name].value, value) for name, value in tlvs.items())
    to = SmppAddress("1")
    return read_receipt(ShortMessage(destination=to, esm_class=kind, message=text, tlvs=found))


@pytest.mark.parametrize("state", SmsState)
def test_the_text_of_a_receipt_comes_back(state: SmsState) -> None:
    sent = DeliveryReceipt("a1", state, "012")
    text = receipt_text(sent, submitted="2402290800", done="2402290801", text="Hello id:9")
    assert receipt(text) == sent


def test_parameters_win_over_the_text() -> None:
    found = receipt(
        b"id:7 stat:UNDELIV err:001", RECEIPTED_MESSAGE_ID=b"0a7\0", MESSAGE_STATE=b"\2"
    )
    assert found == DeliveryReceipt("0a7", SmsState.DELIVERED, "001")


def test_either_form_is_enough() -> None:
    assert receipt(RECEIPTED_MESSAGE_ID=b"7", MESSAGE_STATE=b"\3") == DeliveryReceipt(
        "7", SmsState.EXPIRED
    )
    assert receipt(b"ID: 7 STAT: delivrd") == DeliveryReceipt("7", SmsState.DELIVERED)


def test_an_intermediate_notification_is_one_too() -> None:
    assert receipt(b"id:7 stat:ENROUTE", kind=0x20) == DeliveryReceipt("7", SmsState.ENROUTE)


@pytest.mark.parametrize(
    "text, kind",
    [(b"id:7 stat:DELIVRD", 0), (b"id:7", 4), (b"stat:DELIVRD", 4), (b"id:7 stat:WHAT", 4)],
)
def test_other_messages_are_no_receipts(text: bytes, kind: int) -> None:
    assert receipt(text, kind=kind) is None


def test_an_id_may_be_written_otherwise() -> None:
    assert "10" in id_spellings("a")
    assert "a" in id_spellings("10") or "16" in id_spellings("10")
    assert "7" in id_spellings("0007")
    assert "1a2b" in id_spellings("1A2B")
    assert id_spellings("msg-x") == ()
