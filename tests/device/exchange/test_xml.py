"""XML messages in exchanges: pairs, negotiated forms, SOAP's rules, and real devices."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from lasthop.device.client import Device
from lasthop.device.exchange.binding import Content
from lasthop.device.exchange.declining import Declined
from lasthop.device.exchange.exchange import Exchange
from lasthop.device.exchange.received import Received
from lasthop.device.exchange.xml import (
    ACCEPT_HEADER,
    DEFAULT_ACCEPT,
    MOST_PEERS,
    SOAP_XML,
    WEFT,
    WEFT_DEFLATE,
    WEFT_MAX,
    XEBU,
    Xml,
)
from lasthop.device.exchange.xml_message import MAX_LEVELS, XmlMessage
from lasthop.errors import InvalidRequest, Rejected
from lasthop_xml.soap.envelope import block
from lasthop_xml.soap.fault import FaultCode, SoapFault
from lasthop_xml.weft.profile import Profile
from lasthop_xml.weft.snapshot import train
from lasthop_xml.xas.errors import MalformedXml
from lasthop_xml.xas.names import Name
from lasthop_xml.xas.xmlparse import parse_xml
from tests.device.gateway import APP, LiveGateway, live_gateway

ORDER: dict[str, Any] = {"order.goods": "tea", "order.count": 2, "when": date(2006, 3, 1)}
STAMP = Name("urn:example", "stamp")
PEER = "device:shop"


# Messages.


def test_names_and_values_are_hierarchical_xml() -> None:
    message = XmlMessage.from_pairs(ORDER, name=Name("urn:example", "m"))
    assert message.xml() == (
        '<m:m xmlns:xsd="http://www.w3.org/2001/XMLSchema" '
        'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xmlns:m="urn:example">'
        '<m:order><m:goods>tea</m:goods><m:count xsi:type="xsd:integer">2</m:count></m:order>'
        '<m:when xsi:type="xsd:date">2006-03-01</m:when></m:m>'
    )
    assert message.pairs() == ORDER


VALUES = st.one_of(
    st.text(st.characters(categories=["L", "N", "P", "S", "Zs"])),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False),
    st.decimals(allow_nan=False, allow_infinity=False, places=3),
    st.datetimes(timezones=st.just(UTC)).map(lambda t: t.replace(microsecond=0)),
    st.dates(),
    st.binary(max_size=40),
)
NAMES = st.sampled_from(["a", "b", "c.a", "c.b", "d.e.f", "größe"])


@settings(max_examples=30)
@given(st.dictionaries(NAMES, VALUES | st.lists(VALUES, min_size=2, max_size=4)))
@pytest.mark.parametrize("kind", [SOAP_XML, XEBU, WEFT, WEFT_DEFLATE, WEFT_MAX])
def test_pairs_travel_in_every_form(kind: str, pairs: dict[str, Any]) -> None:
    message = XmlMessage.from_pairs(pairs)
    sender, receiver = Xml(accept=[kind], assume=[kind]), Xml()
    content = sender.encode(message, PEER)
    assert content.content_type == kind
    read = receiver.decode(content, "device:phone").pairs()
    assert {name: _plain(value) for name, value in read.items()} == {
        name: _plain(value) for name, value in pairs.items()
    }


def _plain(value: Any) -> Any:
    """Types and values, with numbers that are written alike taken for the same."""
    if isinstance(value, list):
        return [_plain(one) for one in value]
    if isinstance(value, Decimal):
        return value.normalize()
    return type(value), value


def test_messages_come_from_xml() -> None:
    message = XmlMessage.from_xml("<a x='1'><b>text</b><b>more</b></a>")
    assert message.xml() == '<a x="1"><b>text</b><b>more</b></a>'
    assert message.pairs() == {"b": ["text", "more"]}
    assert message.root.name == Name("", "a")
    with pytest.raises(MalformedXml):
        XmlMessage.from_xml(b"<a>")


@pytest.mark.parametrize(
    "pairs, told",
    [
        ({"two words": 1}, "this cannot be the name of an element"),
        ({"a..b": 1}, "this cannot be the name of an element"),
        ({"a": 1, "a.b": 2}, "a name cannot stand for both a value and a level"),
        ({"a.b": 1, "a": 2}, "a name cannot stand for both a value and a level"),
        ({"a": object()}, "a value of this type has no form in XML"),
        ({".".join("a" * (MAX_LEVELS + 1)): 1}, "a name has too many levels"),
    ],
)
def test_pairs_that_have_no_form_are_refused(pairs: dict[str, Any], told: str) -> None:
    with pytest.raises(InvalidRequest, match=told):
        XmlMessage.from_pairs(pairs)


def test_an_empty_body_has_no_root() -> None:
    binding = Xml()
    empty = XmlMessage(XmlMessage.from_pairs({}).body[:0])  # type: ignore[arg-type]
    message = binding.decode(binding.encode(empty, PEER), PEER)
    with pytest.raises(InvalidRequest, match="the message has an empty body"):
        message.pairs()


# Forms.


def talk(one: Xml, other: Xml, count: int) -> list[tuple[str, bool]]:
    """Let two peers say something in turn: in which form, and whether with what they read."""
    said = []
    message = XmlMessage.from_pairs(ORDER)
    for number in range(count):
        sender, receiver = (one, other) if number % 2 == 0 else (other, one)
        content = sender.encode(message, "device:peer")
        assert receiver.decode(content, "device:peer").pairs() == ORDER
        said.append((content.content_type, bool(content.headers)))
    return said


def test_peers_find_the_best_form_that_both_read_and_then_say_no_more_of_it() -> None:
    assert talk(Xml(), Xml(accept=[XEBU, SOAP_XML]), 6) == [
        (SOAP_XML, True),
        (XEBU, True),
        (XEBU, False),
        (XEBU, False),
        (XEBU, False),
        (XEBU, False),
    ]
    assert talk(Xml(), Xml(), 4)[1:] == [(WEFT, True), (WEFT, False), (WEFT, False)]


def test_a_peer_that_has_forgotten_everything_is_told_again() -> None:
    one, other = Xml(), Xml()
    talk(one, other, 4)
    assert talk(Xml(), other, 4) == [(SOAP_XML, True), (WEFT, True), (WEFT, False), (WEFT, False)]


def test_what_both_know_beforehand_makes_messages_small() -> None:
    samples = [XmlMessage.from_pairs(ORDER | {"order.count": n}) for n in range(5)]
    plain = Xml(accept=[WEFT], assume=[WEFT])
    trained = train(parse_xml(Xml().encode(s, "").body) for s in samples)
    known = Xml(accept=[WEFT, SOAP_XML], assume=[WEFT], profile=Profile(trained.data))
    content = known.encode(samples[3], PEER)
    assert content.content_type.startswith(f"{WEFT}; profile=")
    assert len(content.body) < len(plain.encode(samples[3], PEER).body) / 4
    assert Xml(profile=Profile(trained.data)).decode(content, PEER).pairs() == samples[3].pairs()
    with pytest.raises(InvalidRequest, match="the message needs a profile that is not known here"):
        plain.decode(content, PEER)
    # Who has another profile, or none, gets what everybody reads.
    other = Xml(accept=[WEFT, SOAP_XML], profile=Profile(trained.data))
    assert {kind for kind, _ in talk(other, Xml(), 4)} == {SOAP_XML}


def test_only_so_many_peers_are_remembered() -> None:
    binding = Xml()
    message = XmlMessage.from_pairs({})
    for number in range(MOST_PEERS + 5):
        binding.encode(message, f"device:{number}")
    assert len(binding._peers) == MOST_PEERS


def test_what_a_peer_says_it_reads_has_bounds() -> None:
    binding = Xml()
    content = binding.encode(XmlMessage.from_pairs({}), PEER)
    endless = Content(SOAP_XML, content.body, ((ACCEPT_HEADER, ",".join(["x" * 500] * 500)),))
    binding.decode(endless, PEER)
    assert sum(map(len, binding._peers[PEER].accepts)) < 2000
    assert binding.encode(XmlMessage.from_pairs({}), PEER).content_type == SOAP_XML


@pytest.mark.parametrize("kind", [SOAP_XML, XEBU, WEFT])
def test_what_is_no_message_is_refused(kind: str) -> None:
    for body in (b"", b"\xff" * 20, b"<a/>"):
        with pytest.raises(Rejected):
            Xml().decode(Content(kind, body), PEER)


def test_types_that_are_none_of_ours_are_refused() -> None:
    with pytest.raises(InvalidRequest, match="not a content type of XML messages"):
        Xml(accept=["image/png"])
    with pytest.raises(InvalidRequest, match="not a content type of XML messages"):
        Xml().decode(Content("image/png", b""), PEER)
    assert Xml().takes("text/xml; charset=utf-8")
    assert not Xml().takes("application/json")
    assert len(DEFAULT_ACCEPT) == 3


# SOAP.


def test_header_blocks_travel_and_must_be_understood_where_they_say_so() -> None:
    message = XmlMessage(
        XmlMessage.from_pairs(ORDER).body, (block(STAMP, "7", must_understand=True),)
    )
    content = Xml().encode(message, PEER)
    (header,) = Xml(understands={STAMP}).decode(content, PEER).headers
    assert header.text == "7"
    with pytest.raises(SoapFault, match="must be understood"):
        Xml().decode(content, PEER)


def test_addressing_headers_are_written_and_read() -> None:
    message = XmlMessage.from_pairs(ORDER, action="urn:order", to="urn:shop")
    read = Xml().decode(Xml().encode(message, PEER), PEER)
    assert read.addressing == message.addressing
    assert read.headers == ()
    with pytest.raises(InvalidRequest, match="needs an action"):
        XmlMessage.from_pairs(ORDER, to="urn:shop")


# Between devices.


@pytest.fixture
async def gateway() -> AsyncIterator[LiveGateway]:
    async with live_gateway() as gateway:
        yield gateway


def device(gateway: LiveGateway, name: str) -> Device:
    return Device(gateway.tcp_url, app=APP, name=name, learn_heartbeat=False)


@pytest.mark.timeout(30)
async def test_devices_talk_in_xml(gateway: LiveGateway) -> None:
    async with device(gateway, "phone") as phone, device(gateway, "shop") as shop:
        await shop.contact(timeout=5)
        types: list[str] = []

        def sell(received: Received[XmlMessage]) -> XmlMessage:
            assert received.message is not None
            types.append(received.message.content_type)
            goods = received.value.pairs()["goods"]
            if goods == "coffee":
                raise SoapFault(FaultCode.RECEIVER, "no coffee today")
            if goods == "milk":
                raise Declined("sold_out", "no milk today")
            return XmlMessage.from_pairs({"price": Decimal("3.50"), "at": datetime.now(UTC)})

        Exchange(shop, Xml(understands={STAMP})).on_message(sell)
        exchange = Exchange(phone, Xml(), timeout=5)
        for _ in range(3):
            answer = await exchange.call(PEER, XmlMessage.from_pairs({"goods": "tea"}))
            assert answer.pairs()["price"] == Decimal("3.50")
        assert types == [SOAP_XML, WEFT, WEFT]
        with pytest.raises(SoapFault, match="no coffee today") as caught:
            await exchange.call(PEER, XmlMessage.from_pairs({"goods": "coffee"}))
        assert caught.value.fault_code is FaultCode.RECEIVER
        with pytest.raises(SoapFault, match="no milk today"):
            await exchange.call(PEER, XmlMessage.from_pairs({"goods": "milk"}))
        strange = XmlMessage(
            XmlMessage.from_pairs({"goods": "tea"}).body,
            (block(Name("urn:x", "strange"), must_understand=True),),
        )
        with pytest.raises(SoapFault, match="must be understood"):
            await exchange.call(PEER, strange)
