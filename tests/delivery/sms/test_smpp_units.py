"""Pushes as messages of SMPP, in the form that each SMSC wants."""

from __future__ import annotations

import pytest

from lasthop.clock import SECOND
from lasthop.delivery.sms.composing import PUSH_PORTS
from lasthop.delivery.sms.smpp_units import LongForm, NoOneShot, OneShot, SmppForm, prepare
from lasthop.delivery.sms.sms_link import MAX_SMS_PARTS, OutgoingSms
from lasthop.errors import TooLarge
from lasthop.runtime.smsc.phones import Phones, Shown
from lasthop.wire.smpp.commands import Tag
from lasthop.wire.smpp.smpp_pdus import DataMessage, ShortMessage, phone_address
from lasthop.wire.smpp.tlvs import tlv
from lasthop.wire.wsp.pdus import Push, encode_unit

UNIT = encode_unit(5, Push("application/x-test", (), bytes(range(200)) * 2))


def push(datagram: bytes = UNIT, **fields: object) -> OutgoingSms:
    return OutgoingSms(to="+15551999", datagram=datagram, ports=PUSH_PORTS, reference=300, **fields)  # type: ignore[arg-type]


def shown(units: list[ShortMessage | DataMessage]) -> list[Shown]:
    phones = Phones()
    found = [phones.take(unit, 0) for unit in units]
    return [each for each in found if each is not None]


@pytest.mark.parametrize("long", LongForm)
@pytest.mark.parametrize("size", [20, 133, 134, 400])
def test_a_phone_reads_every_form(long: LongForm, size: int) -> None:
    datagram = encode_unit(5, Push("application/x-test", (), bytes(size)))
    form = SmppForm(long=long, sender=phone_address("2948"))
    units = prepare(push(datagram), form, 0)
    (got,) = shown([unit.message for unit in units])
    assert (got.to, got.source, got.port) == ("15551999", "2948", 2948)
    assert got.content_type == "application/x-test"
    assert sum(unit.count for unit in units) == len(push(datagram).segments())


@pytest.mark.parametrize("long", LongForm)
@pytest.mark.parametrize("text", ["short", "x" * 200, "ж" * 100, "😀€" * 50])
def test_a_text_is_read_in_every_form(long: LongForm, text: str) -> None:
    sms = OutgoingSms(to="+15551999", text=text, reference=9)
    units = prepare(sms, SmppForm(long=long), 0)
    (got,) = shown([unit.message for unit in units])
    assert got.text == text


def test_fields_are_filled_in() -> None:
    sms = push(b"x", deliver_before=90 * SECOND, priority=7)
    (unit,) = prepare(sms, SmppForm(receipts=True, service_type="WAP", octets_coding=4), 0)
    message = unit.message
    assert isinstance(message, ShortMessage)
    assert (message.priority, message.registered, message.coding) == (2, 1, 4)
    assert (message.service_type, message.validity) == ("WAP", "000000000130000R")
    assert [_priority(n) for n in (0, 1, 4, 7, 9)] == [0, 0, 1, 2, 2]


def _priority(priority: int) -> int:
    message = prepare(push(b"x", priority=priority), SmppForm(), 0)[0].message
    assert isinstance(message, ShortMessage)
    return message.priority


def test_once_goes_in_the_mode_that_the_smsc_has() -> None:
    once = push(b"x", once=True, deliver_before=90 * SECOND)
    with pytest.raises(NoOneShot):
        prepare(once, SmppForm(), 0)
    datagram = prepare(once, SmppForm(one_shot=OneShot.DATAGRAM), 0)[0].message
    assert isinstance(datagram, ShortMessage)
    assert datagram.esm_class == 0x41
    transaction = prepare(once, SmppForm(one_shot=OneShot.TRANSACTION), 0)[0].message
    assert isinstance(transaction, DataMessage)
    assert transaction.esm_class == 0x42
    assert tlv(transaction.tlvs, Tag.SET_DPF) == b"\0"
    assert tlv(transaction.tlvs, Tag.QOS_TIME_TO_LIVE) == (90).to_bytes(4, "big")
    assert len(shown([transaction])) == 1


def test_there_is_a_limit_to_parts() -> None:
    assert len(prepare(push(bytes(128 * MAX_SMS_PARTS)), SmppForm(), 0)) == MAX_SMS_PARTS
    with pytest.raises(TooLarge):
        prepare(push(bytes(128 * MAX_SMS_PARTS + 1)), SmppForm(), 0)
