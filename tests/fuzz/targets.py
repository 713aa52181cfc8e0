"""What a fuzzer may do with each codec, and what must hold whatever it does.

A target takes bytes. It returns, or raises one of the errors that the codec declares; anything else
is a bug, as is an assertion that fails: what was understood must survive being written again.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

from lasthop.errors import HopError, InvalidRequest, LasthopError, Malformed, TooLarge
from lasthop.wire.beep.channel import BeepMessage
from lasthop.wire.beep.frames import FrameReader as BeepReader
from lasthop.wire.beep.hop import PROFILE as BEEP_PROFILE, hear as hear_beep, send as send_beep
from lasthop.wire.beep.session import BeepSession
from lasthop.wire.hop.decoder import Decoder as HopDecoder
from lasthop.wire.hop.mapping import Mapping as HopMapping
from lasthop.wire.orl.generator import generate
from lasthop.wire.orl.parser import parse as parse_orl
from lasthop.wire.ota.http import AnswerReader, registration, verdict
from lasthop.wire.ota.wsp_server import SessionServer
from lasthop.wire.ota.wsp_session import SessionClosed, SessionOpened
from lasthop.wire.pap.submission import read_submission, write_submission
from lasthop.wire.relaxng.schema import read_schema
from lasthop.wire.relaxng.validate import Validator
from lasthop.wire.requests.bodies import UnitsToSend, unpack
from lasthop.wire.soap.addressing import UNDERSTOOD, Addressing, read_addressing
from lasthop.wire.soap.envelope import (
    Envelope,
    block as soap_block,
    read_envelope,
    write_envelope,
)
from lasthop.wire.soap.fault import FaultCode, SoapFault, read_fault
from lasthop.wire.soap.names import NEXT
from lasthop.wire.soap.node import SoapNode, fault_envelope
from lasthop.wire.wbxml.decoder import decode as decode_wbxml
from lasthop.wire.wbxml.encoder import encode as encode_wbxml
from lasthop.wire.wbxml.xml_writer import write_xml
from lasthop.wire.weft.engines import PURE
from lasthop.wire.weft.session import (
    FRESH,
    Decoder as WeftDecoder,
    Encoder as WeftEncoder,
    Level,
)
from lasthop.wire.wsp.headers import decode_headers, encode_headers
from lasthop.wire.wsp.pdus import Push, decode_pdu, decode_unit, encode_pdu
from lasthop.wire.wsp.sir import decode_sir
from lasthop.wire.wtp.pdus import decode_datagram, encode_datagram
from lasthop.wire.xas.canonical import canonical
from lasthop.wire.xas.names import Name
from lasthop.wire.xas.sequence import EventList
from lasthop.wire.xas.transform import coalesced, untyped
from lasthop.wire.xas.tree import Tree
from lasthop.wire.xas.typed import typed_sequence
from lasthop.wire.xas.xmlparse import parse_xml
from lasthop.wire.xas.xmlserialize import serialize_xml
from lasthop.wire.xebu.decoder import Decoder as XebuDecoder
from lasthop.wire.xebu.encoder import Encoder as XebuEncoder
from lasthop.wire.xebu.omission.decoder import SchemaDecoder
from lasthop.wire.xebu.omission.encoder import SchemaEncoder
from lasthop.wire.xebu.omission.knowledge import Knowledge
from lasthop.wire.xmlsecurity.encryption import decrypt, encrypt
from lasthop.wire.xmlsecurity.keys import Secret, SharedKey
from lasthop.wire.xmlsecurity.signing import sign
from lasthop.wire.xmlsecurity.verifying import verify
from lasthop.wire.xpath.subscriptions import Subscriptions
from tests.wire.xas.documents import exact
from tests.wire.xebu.omission.schemas import SCHEMAS

ROOT: Final = Path(__file__).parents[2]
MESSAGES: Final = ROOT / "bench/data/xml_events/messages"


class Target(NamedTuple):
    """One codec under test."""

    run: Callable[[bytes], None]
    refuses: tuple[type[LasthopError], ...]
    """What it may raise."""
    seeds: Callable[[], Iterator[bytes]]
    """What it understands, for the fuzzer to start from."""


def _messages() -> Iterator[bytes]:
    for number in (0, 1, 7):
        yield (MESSAGES / f"{number:04}.xml").read_bytes()


def _octets(codec: str) -> Iterator[bytes]:
    """Everything hexadecimal in the vectors of a codec."""
    for file in sorted((ROOT / "vectors" / codec).glob("*.json")):
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


_EVENT_SCHEMA: Final = "bench/data/xml_events/event.rnc"


@cache
def _knowledge() -> tuple[Knowledge, ...]:
    event = Knowledge(read_schema((ROOT / _EVENT_SCHEMA).read_bytes()))
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


def wbxml(data: bytes) -> None:
    document = decode_wbxml(data)
    write_xml(document)
    assert decode_wbxml(encode_wbxml(document), language=document.language) == document


def wsp(data: bytes) -> None:
    kind, data = data[:1], data[1:]
    if kind == b"h":
        # Names of applications may be written in short, so the first time need not be exact.
        headers = decode_headers(encode_headers(decode_headers(data)))
        assert decode_headers(encode_headers(headers)) == headers
    elif kind == b"p":
        pdu = decode_pdu(encode_pdu(decode_pdu(data)))
        assert decode_pdu(encode_pdu(pdu)) == pdu
    elif kind == b"s":
        decode_sir(data)
    else:
        decode_unit(data)


def _wsp_seeds() -> Iterator[bytes]:
    for octets in _octets("wsp"):
        for kind in (b"h", b"p", b"s", b"u"):
            yield kind + octets


def wtp(data: bytes) -> None:
    pdus = decode_datagram(data)
    assert decode_datagram(encode_datagram(pdus)) == pdus


def session(data: bytes) -> None:
    """Datagrams, each with its length in one byte, to a server that has a push under way: it says
    what became of that once, and forgets everybody in the end."""
    server = SessionServer(first_tid=1, first_session=1)
    peer, now, ended = ("10.0.0.2", 9), 0, 0
    pushed = False
    while data:
        size = data[0]
        events = server.receive(data[1 : 1 + size], peer, now)
        found = server.session(peer[0])
        if found is not None and found.confirms and not pushed:
            pushed = True
            server.push_confirmed(found, encode_pdu(Push("text/plain", confirmed=True)), now)
        while (due := server.next_timeout()) is not None and len(data) <= 1 + size:
            now = due
            events += server.timeout(now)
        ended += sum(not isinstance(event, SessionOpened | SessionClosed) for event in events)
        server.datagrams()
        now += 1_000_000
        data = data[1 + size :]
    assert ended == pushed


def _session_seeds() -> Iterator[bytes]:
    connect = next(octets for octets in _octets("wtp") if octets[3:5] == b"\x32\x01")
    verified = bytes((0x1C, *connect[1:3]))
    opened = b"".join(bytes((len(each),)) + each for each in (connect, verified))
    for octets in _octets("wtp"):
        if len(octets) < 256:
            yield opened + bytes((len(octets),)) + octets
    yield opened + b"\x03\x18\x80\x01" + b"\x04\x21\x80\x01\xed"


def ota_http(data: bytes) -> None:
    """Answers of a client, in one piece or in two: they mean the same."""
    cut, data = (data[0] if data else 0), data[1:]
    whole = AnswerReader(limit=1000).receive(data)
    cutting = AnswerReader(limit=1000)
    assert [*cutting.receive(data[:cut]), *cutting.receive(data[cut:])] == whole
    for answer in whole:
        verdict(answer)
        registration(answer, None)


def _ota_http_seeds() -> Iterator[bytes]:
    yield b"\x09HTTP/1.1 204 No Content\r\nX-Wap-Push-Status: 400 Accepted\r\n\r\n"
    yield (
        b"\x40HTTP/1.1 200 OK\r\nX-Wap-Push-Status: 501\r\nX-Wap-CPITag: a1\r\n"
        b"X-Wap-Push-Accept: a/b;q=0, */*\r\nX-Wap-Push-Accept-AppID: 4, wml.ua\r\n"
        b"X-Wap-Push-MsgSize: 3000\r\nContent-Length: 2\r\n\r\nhi"
        b"HTTP/1.1 500 Oops\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n"
    )


def hop(data: bytes) -> None:
    """The first byte says how the rest is cut; however it is, the frames are the same."""
    cut, data = data[:1], data[1:]
    piece = 1 + (cut[0] if cut else 0)
    whole, cutting = HopDecoder(HopMapping.STREAM), HopDecoder(HopMapping.STREAM)
    pieces = [data[at : at + piece] for at in range(0, len(data), piece)]
    (frames, refused), (found, error) = _fed(cutting, pieces), _fed(whole, [data])
    assert type(refused) is type(error)
    if error is not None:
        raise error
    assert frames == found


def _fed(decoder: HopDecoder, pieces: list[bytes]) -> tuple[list[object], HopError | None]:
    frames: list[object] = []
    try:
        for piece in pieces:
            frames += decoder.feed(piece)
    except HopError as error:
        return frames, error
    return frames, None


def _hop_seeds() -> Iterator[bytes]:
    for octets in _octets("hop"):
        yield b"\x00" + octets
        yield b"\xff" + octets


_PAP_TYPE: Final = 'multipart/related; boundary=asdlfkjiurwghasf; type="application/xml"'


def pap(data: bytes) -> None:
    kind = "application/xml" if data[:1] == b"<" else _PAP_TYPE
    submission = read_submission(kind, data)
    content_type, body = write_submission(submission)
    assert read_submission(content_type, body) == submission


def _pap_seeds() -> Iterator[bytes]:
    for file in sorted((ROOT / "tests/wire/pap/examples").iterdir()):
        yield file.read_bytes()
        yield (
            b"--asdlfkjiurwghasf\r\nContent-Type: application/xml\r\n\r\n"
            + file.read_bytes()
            + b"\r\n--asdlfkjiurwghasf\r\nContent-Type: text/plain\r\n\r\nx\r\n--asdlfkjiurwghasf--"
        )


def relaxng(data: bytes) -> None:
    """A schema, a zero byte, a document."""
    text, _, document = data.partition(b"\0")
    schema = read_schema(text)
    Validator(schema).allows(parse_xml(document or b"<a/>"))


def _relaxng_seeds() -> Iterator[bytes]:
    yield (ROOT / "bench/data/xml_events/event.rnc").read_bytes() + b"\0" + next(_messages())
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
    yield (ROOT / "tests/wire/orl/people.orl").read_bytes()
    yield b'package a.b codec-name C namespace p "urn:p" type p:t { date? d p:t* self QName class }'


_SECRET: Final = Secret("s", b"0123456789abcdef")
_SHARED: Final = SharedKey("k", bytes(32))


def security(data: bytes) -> None:
    """Nobody without the keys can make us believe or decrypt anything but what was signed."""
    events = parse_xml(data)
    try:
        verified = verify(events, [_SECRET])
    except LasthopError:
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


def beep(data: bytes) -> None:
    """A listener that anybody may talk to; what it says, a device can read."""
    listener = BeepSession(initiator=False, profiles=(BEEP_PROFILE,), max_message=4096)
    device = BeepSession(initiator=True, max_message=4096)
    for start in range(0, len(data), 50):
        for event in listener.receive(data[start : start + 50]):
            if isinstance(event, BeepMessage):
                hear_beep(listener, event)
        for frame in BeepReader(1 << 16).feed(listener.data_to_send()):
            assert frame.channel < 1 << 31
    assert device.data_to_send()


def _beep_seeds() -> Iterator[bytes]:
    device = BeepSession(initiator=True, max_message=4096)
    listener = BeepSession(initiator=False, profiles=(BEEP_PROFILE,), max_message=4096)
    said = device.data_to_send()
    listener.receive(said)
    device.receive(listener.data_to_send())
    yield said
    channel = device.start(BEEP_PROFILE)
    for _ in range(2):
        more = device.data_to_send()
        said += more
        listener.receive(more)
        device.receive(listener.data_to_send())
    yield said
    send_beep(device, channel, b"unit")
    device.close(channel)
    yield said + device.data_to_send()


def requests(data: bytes) -> None:
    """Bodies of requests: what was understood is packed again into the same."""
    units = unpack(data)
    outgoing = UnitsToSend()
    outgoing.add(units)
    again: list[bytes] = []
    while outgoing:
        again += unpack(outgoing.pack())
    assert again == units


def _requests_seeds() -> Iterator[bytes]:
    outgoing = UnitsToSend()
    outgoing.add([b"a", b"bc" * 100, b"\x01"])
    yield outgoing.pack()
    yield b""


_XML: Final = (Malformed, TooLarge)

TARGETS: Final[Mapping[str, Target]] = {
    "xml": Target(xml, _XML, _xml_seeds),
    "xebu": Target(xebu, _XML, _xebu_seeds),
    "omission": Target(omission, _XML, _omission_seeds),
    "weft": Target(weft, _XML, _weft_seeds),
    "wbxml": Target(wbxml, _XML, lambda: _octets("wbxml")),
    "wsp": Target(wsp, _XML, _wsp_seeds),
    "wtp": Target(wtp, _XML, lambda: _octets("wtp")),
    "session": Target(session, _XML, _session_seeds),
    "ota_http": Target(ota_http, _XML, _ota_http_seeds),
    "beep": Target(beep, _XML, _beep_seeds),
    "requests": Target(requests, (HopError,), _requests_seeds),
    "hop": Target(hop, (HopError,), _hop_seeds),
    "pap": Target(pap, (InvalidRequest, Malformed, TooLarge), _pap_seeds),
    "relaxng": Target(relaxng, _XML, _relaxng_seeds),
    "xpath": Target(xpath, (InvalidRequest, Malformed, TooLarge), _xpath_seeds),
    "soap": Target(soap, (InvalidRequest, Malformed, TooLarge, SoapFault), _soap_seeds),
    "orl": Target(orl, _XML, _orl_seeds),
    "security": Target(security, (InvalidRequest, Malformed, TooLarge), _security_seeds),
}


def check(target: Target, data: bytes) -> bool:
    """Whether the data was understood; anything but a declared refusal is raised."""
    try:
        target.run(data)
    except target.refuses:
        return False
    return True
