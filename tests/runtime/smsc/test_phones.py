"""What phones show: texts, pushes, and what they cannot read."""

from __future__ import annotations

from lasthop.decision.routes import Route, Variant
from lasthop.delivery.carrier import Parcel
from lasthop.delivery.sms.composing import compose
from lasthop.delivery.sms.smpp_units import SmppForm, prepare
from lasthop.runtime.smsc.phones import Phones, Shown
from lasthop.wire.smpp.smpp_pdus import ShortMessage, phone_address
from tests.delivery.ota.test_unit import SI


def message(octets: bytes, coding: int = 0, esm_class: int = 0) -> ShortMessage:
    to, source = phone_address("+1555"), phone_address("2948")
    return ShortMessage(
        destination=to, source=source, message=octets, coding=coding, esm_class=esm_class
    )


def test_texts_in_every_alphabet() -> None:
    phones = Phones()
    for octets, coding, text in ((b"\0", 0, "@"), (b"\xe4", 3, "ä"), (b"\4\x16", 8, "Ж")):
        assert phones.take(message(octets, coding), 0) == Shown(to="1555", source="2948", text=text)


def test_octets_that_are_no_text() -> None:
    assert Phones().take(message(b"\xff", 4), 0) == Shown(to="1555", source="2948", octets="ff")
    assert Phones().take(message(b"\xff", 0), 0) == Shown(to="1555", source="2948", octets="ff")
    assert Phones().take(message(b"\x09\x01", 4, 0x40), 0) is None
    headed = message(bytes.fromhex("0605040b8423f0ff"), 4, 0x40)
    assert Phones().take(headed, 0) == Shown(to="1555", source="2948", port=2948, octets="ff")


def test_a_push_is_shown_with_its_content() -> None:
    route = Route(Variant.SMS, "+1555")
    parcel = Parcel(route=route, content_type="text/vnd.wap.si", headers=(), body=SI)
    (unit,) = prepare(compose(parcel, reference=1), SmppForm(), 0)
    shown = Phones().take(unit.message, 0)
    assert shown is not None
    assert (shown.port, shown.content_type) == (2948, "application/vnd.wap.sic")
    assert shown.application == "x-wap-application:wml.ua"
    assert "You have 4 new emails" in shown.content
