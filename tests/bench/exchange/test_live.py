"""The experiment's calls through a gateway and a device, counted on the device's link."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from bench.exchange import live
from bench.exchange.callers import CALLERS
from bench.exchange.dissection import BODY, CONTROL, FRAME, dissect
from bench.exchange.live import Live, measure
from bench.exchange.service import answer, answer_message, binding, call, call_message, serial_of
from bench.exchange.tap import tapped
from lasthop.device.exchange.xml import Xml
from lasthop.device.exchange.xml_message import XmlMessage
from lasthop.runtime.cli import main
from lasthop.wire.hop.encoder import Encoder
from lasthop.wire.hop.frames import Ack, Frame, Headers, MessageFrame
from lasthop.wire.hop.mapping import Mapping
from lasthop_xml.xas.sequence import EventList
from lasthop_xml.xas.tree import Tree
from lasthop_xml.xas.xmlparse import parse_xml

SAID = Headers(content_type="text/plain", source="device:phone", extra=(("a", "bc"), ("d", "e")))
FIRST = MessageFrame(0, 1 << 40, "news", SAID, b"hello")
SECOND = MessageFrame(1, (1 << 40) + 1, "news", None, b"world!")

ROW = Live(
    coding="Xebu",
    caller="publisher",
    calls=4,
    to_device={BODY: 30.0, FRAME: 6.0, CONTROL: 2.0, "content_type": 12.0},
    from_device={BODY: 20.0, FRAME: 5.0, CONTROL: 3.0, "extra lasthop-accept": 79.0},
    segments=6.5,
    opening=400,
)


def status(arguments: Sequence[str]) -> object:
    with pytest.raises(SystemExit) as ended:
        main(["bench", "exchange", "--live", *arguments])
    return ended.value.code


def encoded(*frames: Frame) -> bytes:
    encoder, out = Encoder(Mapping.STREAM), bytearray()
    for frame in frames:
        encoder.encode(frame, out)
    return bytes(out)


def test_every_octet_of_a_stream_is_for_something() -> None:
    stream = encoded(FIRST, Ack(3, 2), SECOND, Ack(4, 4))
    parts = dissect(stream)
    assert parts.total() == len(stream)
    assert parts[BODY] == len(b"hello" + b"world!")
    assert parts[CONTROL] == len(encoded(Ack(3, 2), Ack(4, 4)))


def test_the_checksum_of_a_write_counts_with_what_is_no_message() -> None:
    write = encoded(Ack(3, 2))
    assert dissect(write + b"\0abcd" + encoded(SECOND)) == {
        CONTROL: len(write) + 5,
        **dissect(encoded(SECOND)),
    }


def test_headers_are_counted_by_their_names() -> None:
    parts = dissect(encoded(FIRST))
    # A tag, a length and the value; of an application's own, a length before name and value.
    assert parts["content_type"] == 2 + len("text/plain")
    assert parts["source"] == 2 + len("device:phone")
    assert parts["extra a"] == 1 + len("a") + 1 + len("bc")
    assert parts["extra d"] == 1 + len("d") + 1 + len("e")
    assert parts["extra"] == 2


def test_what_was_said_before_does_not_count() -> None:
    first = encoded(FIRST)
    both = encoded(FIRST, SECOND)
    # Two of its octets are length and type: its key, number and topic follow from the first.
    assert dissect(both, len(first)) == {BODY: len(b"world!"), FRAME: 3}


def test_a_stream_that_was_cut_is_not_taken_for_a_whole_one() -> None:
    with pytest.raises(ValueError, match="ends inside a frame"):
        dissect(encoded(FIRST)[:-1])


@pytest.mark.parametrize("bare, message", [(call, call_message), (answer, answer_message)])
def test_the_sdk_sends_what_bare_frames_carry(
    bare: Callable[[int], EventList], message: Callable[[int], XmlMessage]
) -> None:
    theirs = Tree(bare(7)).root.text
    ours = Tree(EventList(parse_xml(Xml().encode(message(7), "").body))).root.text
    assert ours == theirs
    assert serial_of(message(7).body) == serial_of(bare(7)) == 7


def test_a_tap_passes_on_what_it_keeps() -> None:
    async def through() -> tuple[bytes, bytes, int]:
        async def shout(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write((await reader.readline()).upper())
            await reader.read()
            writer.close()

        server = await asyncio.start_server(shout, "127.0.0.1", 0)
        async with server, tapped(server.sockets[0].getsockname()[1]) as tap:
            assert tap.segments() == 0
            reader, writer = await asyncio.open_connection("127.0.0.1", tap.port)
            writer.write(b"hello\n")
            assert await reader.readline() == b"HELLO\n"
            segments = tap.segments()
            writer.close()
            await writer.wait_closed()
            return bytes(tap.from_device), bytes(tap.to_device), segments

    there, back, segments = asyncio.run(through())
    assert (there, back) == (b"hello\n", b"HELLO\n")
    assert segments >= 4  # Three of the handshake, and one with each line.


@pytest.mark.parametrize("coding, caller", [("Weft, profile", "publisher"), ("Xebu", "device")])
def test_calls_are_counted_on_the_link_of_a_running_device(
    tmp_path: Path, coding: str, caller: str
) -> None:
    found = measure(coding, caller, 4, tmp_path / "gateway")
    kind, profiled = live.CODINGS[coding]
    ours = binding(kind, profiled=profiled)
    there = len(ours.encode(call_message(5), "").body)
    back = len(ours.encode(answer_message(5), "").body)
    # The SDK's own coding of the same message, and nothing that the gateway would have changed.
    assert found.to_device[BODY] == pytest.approx(there, abs=1)
    assert found.from_device[BODY] == pytest.approx(back, abs=1)
    assert found.total > found.of(BODY) + found.headers + found.of(FRAME)
    assert found.from_device["in_reply_to"] > 0
    assert found.segments >= 2
    assert found.opening > 0


def test_people_get_a_table_of_parts(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(live, "measure", lambda *_: ROW)
    assert status(["--calls", "4"]) == 0
    said = capsys.readouterr().out
    assert "Octets a call on the link of the service's device, 4 calls" in said
    # Bodies, headers, frames, acknowledgements, their sum, and 52 octets for each segment.
    assert [part.strip() for part in said.split("publisher │ Xebu")[1].split("│")[1:7]] == [
        *("50", "91", "11", "5", "157", "338")
    ]
    assert "extra lasthop-accept" in said


def test_machines_get_every_part(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(live, "measure", lambda *_: ROW)
    assert status(["--calls", "4", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert len(rows) == len(live.CODINGS) * len(CALLERS)
    assert rows[0]["from_device"]["extra lasthop-accept"] == 79.0


def test_there_is_nothing_to_draw_of_live_calls(capsys: pytest.CaptureFixture[str]) -> None:
    assert status(["--out", "figures"]) == 2
    expected = "--out cannot be used with --live: it draws only results on virtual time"
    assert expected in capsys.readouterr().err
