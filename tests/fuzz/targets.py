"""What a fuzzer may do with each codec, and what must hold whatever it does.

A target takes bytes. It returns, or raises one of the errors that the codec declares; anything else
is a bug, as is an assertion that fails: what was understood must survive being written again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from lasthop.errors import HopError, InvalidRequest, LasthopError, Malformed, TooLarge
from lasthop.wire.beep.channel import BeepMessage
from lasthop.wire.beep.frames import FrameReader as BeepReader
from lasthop.wire.beep.hop import PROFILE as BEEP_PROFILE, hear as hear_beep, send as send_beep
from lasthop.wire.beep.session import BeepSession
from lasthop.wire.hop.decoder import Decoder as HopDecoder
from lasthop.wire.hop.mapping import Mapping as HopMapping
from lasthop.wire.ota.http import AnswerReader, registration, verdict
from lasthop.wire.ota.wsp_server import SessionServer
from lasthop.wire.ota.wsp_session import SessionClosed, SessionOpened
from lasthop.wire.pap.submission import read_submission, write_submission
from lasthop.wire.requests.bodies import UnitsToSend, unpack
from lasthop.wire.smpp.commands import SmppStatus
from lasthop.wire.smpp.delivery_receipts import read_receipt
from lasthop.wire.smpp.smpp_pdus import (
    PduReader,
    ShortMessage,
    decode_pdu as decode_smpp,
    encode_pdu as encode_smpp,
)
from lasthop.wire.smpp.smsc_session import SmscSession
from lasthop.wire.sms.alphabets import Alphabet, decode_text
from lasthop.wire.sms.segments import Reassembly, read_segment
from lasthop.wire.wbxml.decoder import decode as decode_wbxml
from lasthop.wire.wbxml.encoder import encode as encode_wbxml
from lasthop.wire.wbxml.xml_writer import write_xml
from lasthop.wire.wsp.headers import decode_headers, encode_headers
from lasthop.wire.wsp.pdus import Push, decode_pdu, decode_unit, encode_pdu
from lasthop.wire.wsp.sir import decode_sir
from lasthop.wire.wtp.pdus import decode_datagram, encode_datagram
from tests.fuzz.channel import channel, channel_seeds
from tests.fuzz.http_framing import http, http_seeds

ROOT: Final = Path(__file__).parents[2]


class Target(NamedTuple):
    """One codec under test."""

    run: Callable[[bytes], None]
    refuses: tuple[type[LasthopError], ...]
    """What it may raise."""
    seeds: Callable[[], Iterator[bytes]]
    """What it understands, for the fuzzer to start from."""


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


def smpp(data: bytes) -> None:
    """A stream of an SMSC, cut anywhere: what is read is written again."""
    reader = PduReader()
    units = [unit for at in range(0, len(data), 7) for unit in reader.feed(data[at : at + 7])]
    SmscSession(lambda bind: SmppStatus.OK).receive(data)
    for unit in units:
        pdu = decode_smpp(unit)
        assert decode_smpp(encode_smpp(pdu)) == pdu
        if isinstance(pdu.body, ShortMessage):
            read_receipt(pdu.body)


def sms(data: bytes) -> None:
    """User data of a short message, with its alphabet in the first octet."""
    alphabet = list(Alphabet)[data[0] % len(Alphabet)] if data else Alphabet.GSM
    segment = read_segment(data[1:], alphabet, headed=True)
    whole = Reassembly().add("x", segment.header, segment.content, 0)
    if whole is not None:
        decode_text(whole, alphabet)


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
    """The first byte says how the rest is cut, and whether there are lanes; however it is cut, the
    frames are the same."""
    cut, data = data[:1], data[1:]
    piece = 1 + (cut[0] if cut else 0)
    whole, cutting = HopDecoder(HopMapping.STREAM), HopDecoder(HopMapping.STREAM)
    if cut >= b"\x80":
        whole.allow_lanes()
        cutting.allow_lanes()
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


_CODEC: Final = (Malformed, TooLarge)

TARGETS: Final[Mapping[str, Target]] = {
    "wbxml": Target(wbxml, _CODEC, lambda: _octets("wbxml")),
    "wsp": Target(wsp, _CODEC, _wsp_seeds),
    "wtp": Target(wtp, _CODEC, lambda: _octets("wtp")),
    "smpp": Target(smpp, _CODEC, lambda: _octets("smpp")),
    "sms": Target(sms, _CODEC, lambda: (b"\3" + octets for octets in _octets("sms"))),
    "session": Target(session, _CODEC, _session_seeds),
    "ota_http": Target(ota_http, _CODEC, _ota_http_seeds),
    "beep": Target(beep, _CODEC, _beep_seeds),
    "requests": Target(requests, (HopError,), _requests_seeds),
    "hop": Target(hop, (HopError,), _hop_seeds),
    "channel": Target(channel, (), channel_seeds),
    "http": Target(http, (), http_seeds),
    "pap": Target(pap, (InvalidRequest, Malformed, TooLarge), _pap_seeds),
}


def check(target: Target, data: bytes) -> bool:
    """Whether the data was understood; anything but a declared refusal is raised."""
    try:
        target.run(data)
    except target.refuses:
        return False
    return True
