"""What a fuzzer may do with each codec, and what must hold whatever it does.

A target takes bytes. It returns, or raises one of the errors that the codec declares; anything else
is a bug, as is an assertion that fails: what was understood must survive being written again.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any, Final, NamedTuple

from lasthop_xml.errors import InvalidInput, Malformed, TooLarge, XmlError
from lasthop_xml.orl.generator import generate
from lasthop_xml.orl.parser import parse as parse_orl
from lasthop_xml.relaxng.schema import read_schema
from lasthop_xml.relaxng.validate import Validator
from lasthop_xml.soap.addressing import UNDERSTOOD, Addressing, read_addressing
from lasthop_xml.soap.envelope import Envelope, block as soap_block, read_envelope, write_envelope
from lasthop_xml.soap.fault import FaultCode, SoapFault, read_fault
from lasthop_xml.soap.names import NEXT
from lasthop_xml.soap.node import SoapNode, fault_envelope
from lasthop_xml.weft.engines import PURE
from lasthop_xml.weft.session import FRESH, Level, WeftDecoder, WeftEncoder
from lasthop_xml.xas.canonical import canonical
from lasthop_xml.xas.names import Name
from lasthop_xml.xas.sequence import EventList
from lasthop_xml.xas.transform import coalesced, untyped
from lasthop_xml.xas.tree import Tree
from lasthop_xml.xas.typed import typed_sequence
from lasthop_xml.xas.xmlparse import parse_xml
from lasthop_xml.xas.xmlserialize import serialize_xml
from lasthop_xml.xebu.decoder import Decoder as XebuDecoder
from lasthop_xml.xebu.encoder import Encoder as XebuEncoder
from lasthop_xml.xebu.omission.decoder import SchemaDecoder
from lasthop_xml.xebu.omission.encoder import SchemaEncoder
from lasthop_xml.xebu.omission.knowledge import Knowledge
from lasthop_xml.xmlsecurity.encryption import decrypt, encrypt
from lasthop_xml.xmlsecurity.keys import Secret, SharedKey
from lasthop_xml.xmlsecurity.signing import sign
from lasthop_xml.xmlsecurity.verifying import verify
from lasthop_xml.xpath.subscriptions import Subscriptions
from tests.places import PACKAGE, SAMPLES, VECTORS
from tests.xas.documents import exact
from tests.xebu.omission.schemas import SCHEMAS

MESSAGES: Final = SAMPLES / "messages"


class Target(NamedTuple):
    """One codec under test."""

    run: Callable[[bytes], None]
    refuses: tuple[type[XmlError], ...]
    """What it may raise."""
    seeds: Callable[[], Iterator[bytes]]
    """What it understands, for the fuzzer to start from."""


def _messages() -> Iterator[bytes]:
    for number in (0, 1, 7):
        yield (MESSAGES / f"{number:04}.xml").read_bytes()


def _octets(codec: str) -> Iterator[bytes]:
    """Everything hexadecimal in the vectors of a codec."""
    for file in sorted((VECTORS / codec).glob("*.json")):
        yield from _hexadecimal(json.loads(file.read_text()))


def _hexadecimal(value: Any) -> Iterator[bytes]:
    if isinstance(value, str):
        try:
            yield bytes.fromhex(value)
        except ValueError:
            return
    elif isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _hexadecimal(part)


def xml(data: bytes) -> None:
    events = parse_xml(data)
    written = serialize_xml(events)
    again = parse_xml(written)
    assert list(coalesced(again)) == list(coalesced(events))
    assert serialize_xml(again) == written
    assert canonical(again) == canonical(events)
    typed = list(typed_sequence(events))
    assert list(coalesced(untyped(typed))) == list(coalesced(events))
    Tree(events)


def _xml_seeds() -> Iterator[bytes]:
    yield from _messages()
    yield b"<?xml version='1.0' encoding='utf-16'?><a>\xc3\xa4</a>"
    yield b"<!DOCTYPE a SYSTEM 'x' [<!ATTLIST b c CDATA 'd'>]><a k='&amp;'>&e;<b/><![CDATA[x]]></a>"
    yield b"<p:a xmlns:p='urn:p' xmlns='urn:q'><!--c--><?go now?><p:b p:k='&#10;'/></p:a>"


def xebu(data: bytes) -> None:
    """A session: each message starts with its length in two bytes."""
    decoder, encoder, peer = XebuDecoder(), XebuEncoder(), XebuDecoder()
    while data:
        size = int.from_bytes(data[:2], "big")
        events = decoder.decode(data[2 : 2 + size])
        assert exact(peer.decode(encoder.encode(events))) == exact(events)
        data = data[2 + size :]


def _xebu_seeds() -> Iterator[bytes]:
    encoder = XebuEncoder()
    session = b""
    for document in _messages():
        message = encoder.encode(typed_sequence(parse_xml(document)))
        session += len(message).to_bytes(2, "big") + message
        yield session
    for message in _octets("xebu"):
        yield len(message).to_bytes(2, "big") + message


_EVENT_SCHEMA: Final = SAMPLES / "event.rnc"


@cache
def _knowledge() -> tuple[Knowledge, ...]:
    event = Knowledge(read_schema(_EVENT_SCHEMA.read_bytes()))
    return event, *(Knowledge(read_schema(schema)) for schema in SCHEMAS.values())


def omission(data: bytes) -> None:
    """The number of a schema, and a session as above that leaves out what it foresees."""
    known = _knowledge()[data[0] % len(_knowledge())] if data else _knowledge()[0]
    decoder, encoder, peer = SchemaDecoder(known), SchemaEncoder(known), SchemaDecoder(known)
    data = data[1:]
    while data:
        size = int.from_bytes(data[:2], "big")
        events = decoder.decode(data[2 : 2 + size])
        assert exact(peer.decode(encoder.encode(events))) == exact(events)
        data = data[2 + size :]


def _omission_seeds() -> Iterator[bytes]:
    encoder = SchemaEncoder(_knowledge()[0])
    session = b"\0"
    for document in _messages():
        message = encoder.encode(typed_sequence(parse_xml(document)))
        session += len(message).to_bytes(2, "big") + message
        yield session
    for number, known in enumerate(_knowledge()):
        for document in (b"<a><b>1</b><c/></a>", b"<node id='1'><node/>x</node>", b"<p>x<em/></p>"):
            message = SchemaEncoder(known).encode(parse_xml(document))
            yield bytes((number,)) + len(message).to_bytes(2, "big") + message


def weft(data: bytes) -> None:
    """A session: for each message its level, its length in two bytes, and its body.

    Checks are made here, as an attacker can as well.
    """
    decoder, peer = WeftDecoder(engine=PURE), WeftDecoder(engine=PURE)
    encoder = WeftEncoder(engine=PURE)
    first = True
    while data:
        head = bytes((data[0] % 3 | FRESH, 0)) if first else bytes((data[0] % 3,))
        size = int.from_bytes(data[1:3], "big")
        body, data, first = data[3 : 3 + size], data[3 + size :], False
        check = zlib.crc32(body, decoder.chain ^ int.from_bytes(head, "little")) & 0xFFFF
        events = EventList(decoder.decode(head + check.to_bytes(2, "big") + body))
        assert exact(peer.decode(encoder.encode(events))) == exact(events)


def _weft_seeds() -> Iterator[bytes]:
    for level in Level:
        encoder = WeftEncoder(level)
        session = b""
        for number, document in enumerate(_messages()):
            message = encoder.encode(typed_sequence(parse_xml(document)))
            body = message[4 if number == 0 else 3 :]
            session += bytes((level,)) + len(body).to_bytes(2, "big") + body
            yield session


def relaxng(data: bytes) -> None:
    """A schema, a zero byte, a document."""
    text, _, document = data.partition(b"\0")
    schema = read_schema(text)
    Validator(schema).allows(parse_xml(document or b"<a/>"))


def _relaxng_seeds() -> Iterator[bytes]:
    yield _EVENT_SCHEMA.read_bytes() + b"\0" + next(_messages())
    yield b"start = element a { attribute k { xsd:int }?, mixed { b } }\nb = element b { empty }\n"
    yield b'namespace p = "urn:p"\nelement p:* - p:a { list { "x" | xsd:int+ } }'
    yield b"element a { element b { empty }* & element c { text } }\0<a><c>x</c><b/></a>"


def xpath(data: bytes) -> None:
    """An expression, a zero byte, a document."""
    text, _, document = data.partition(b"\0")
    subscriptions = Subscriptions[int]()
    subscriptions.add(0, text.decode("utf-8", "replace"), prefixes={"p": "urn:p"})
    subscriptions.add(1, "//*")
    assert 1 in subscriptions.matching(parse_xml(document or b"<a><b k='1'>2</b></a>"))


def _xpath_seeds() -> Iterator[bytes]:
    document = b"\0<a k='1'><b>2</b><p:c xmlns:p='urn:p'><b>x</b></p:c></a>"
    for expression in (
        "/a/b[. = 2] | //p:*[@k and not(b)]",
        "//a[@k >= 1][2]/b[contains(., 'x') or text() != '2']//@*",
        "/*[.//b[position() <= 3] = 'x']/text()",
    ):
        yield expression.encode() + document


def soap(data: bytes) -> None:
    """An envelope: read, judged by a node, and written again."""
    message = read_envelope(parse_xml(data))
    fault = read_fault(message.body)
    if fault is not None:
        assert read_fault(fault.body()) is not None
    node = SoapNode(understands=UNDERSTOOD, ultimate=False)
    passed = node.passed_on(message)
    assert len(passed.headers) <= len(message.headers)
    node.understood(message)
    way = read_addressing(message)
    if way is not None:
        assert read_addressing(Envelope(headers=way.blocks())) == way
    again = read_envelope(parse_xml(serialize_xml(write_envelope(message))))
    assert [block.name for block in again.headers] == [block.name for block in message.headers]
    assert write_envelope(again) == write_envelope(read_envelope(write_envelope(again)))


def _soap_seeds() -> Iterator[bytes]:
    way = Addressing(action="urn:a", message_id="urn:1", reply_to="urn:b", relates_to="urn:0")
    blocks = [*way.blocks(), soap_block(Name("urn:x", "y"), "z", role=NEXT, relay=True)]
    body = Tree(parse_xml(b"<a k='1'><b>2</b></a>")).root.fragment()
    yield serialize_xml(write_envelope(Envelope(body, blocks)))
    fault = SoapFault(FaultCode.SENDER, "no", subcodes=(Name("urn:x", "c"),), elements=body)
    yield serialize_xml(write_envelope(fault_envelope(fault)))


def orl(data: bytes) -> None:
    source = data.decode("utf-8", "replace")
    compile(generate(parse_orl(source), source="fuzz.orl"), "fuzz.py", "exec")


def _orl_seeds() -> Iterator[bytes]:
    yield (PACKAGE / "tests/orl/people.orl").read_bytes()
    yield b'package a.b codec-name C namespace p "urn:p" type p:t { date? d p:t* self QName class }'


_SECRET: Final = Secret("s", b"0123456789abcdef")
_SHARED: Final = SharedKey("k", bytes(32))


def security(data: bytes) -> None:
    """Nobody without the keys can make us believe or decrypt anything but what was signed."""
    events = parse_xml(data)
    try:
        verified = verify(events, [_SECRET])
    except XmlError:
        decrypt(events, [_SHARED])
    else:
        assert serialize_xml(verified.events) in _SIGNED


_DOCUMENTS: Final = (b"<a><b Id='x'>1</b></a>", b"<p:a xmlns:p='urn:p' k='1'><p:b/>t</p:a>")
_SIGNED: Final = {serialize_xml(parse_xml(each)) for each in _DOCUMENTS}


def _security_seeds() -> Iterator[bytes]:
    for each in _DOCUMENTS:
        events = parse_xml(each)
        root = Tree(events).root.name
        yield serialize_xml(sign(events, _SECRET))
        yield serialize_xml(sign(events, _SECRET, form="exclusive"))
        yield serialize_xml(encrypt(events, _SHARED, at=[root], entropy=bytes))


_XML: Final = (Malformed, TooLarge)

TARGETS: Final[Mapping[str, Target]] = {
    "xml": Target(xml, _XML, _xml_seeds),
    "xebu": Target(xebu, _XML, _xebu_seeds),
    "omission": Target(omission, _XML, _omission_seeds),
    "weft": Target(weft, _XML, _weft_seeds),
    "relaxng": Target(relaxng, _XML, _relaxng_seeds),
    "xpath": Target(xpath, (InvalidInput, Malformed, TooLarge), _xpath_seeds),
    "soap": Target(soap, (InvalidInput, Malformed, TooLarge, SoapFault), _soap_seeds),
    "orl": Target(orl, _XML, _orl_seeds),
    "security": Target(security, (InvalidInput, Malformed, TooLarge), _security_seeds),
}


def check(target: Target, data: bytes) -> bool:
    """Whether the data was understood; anything but a declared refusal is raised."""
    try:
        target.run(data)
    except target.refuses:
        return False
    return True
