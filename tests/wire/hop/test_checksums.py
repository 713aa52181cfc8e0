"""Checksums over what is written: nothing of a damaged write is decoded."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from lasthop.clock import SECOND
from lasthop.errors import DamagedWrite, FrameTooLarge, MalformedFrame
from lasthop.wire.hop.bundling import units
from lasthop.wire.hop.checksums import MOST_HELD, STALLED, CheckedStream, CheckedUnits
from lasthop.wire.hop.connection import Open
from lasthop.wire.hop.decoder import Decoder
from lasthop.wire.hop.encoder import Encoder
from lasthop.wire.hop.frames import (
    CloseCode,
    Feature,
    Frame,
    Hello,
    MessageFrame,
    Ping,
    Welcome,
)
from lasthop.wire.hop.handshake import Dialing, Waiting
from lasthop.wire.hop.mapping import Mapping
from lasthop.wire.requests.bodies import unpack_checked, with_checksum
from tests.wire.hop.vectors import frame_from_json, load

VECTORS: dict[str, list[dict[str, Any]]] = load("checksums.json")
HELLO = Hello(app="shop", device="phone")
WELCOME = Welcome(incarnation=b"12345678", epoch=1)


def named(key: str) -> list[Any]:
    return [pytest.param(case, id=case["name"]) for case in VECTORS[key]]


@pytest.mark.parametrize("case", named("handshake"))
def test_a_handshake_frame_ends_with_its_checksum(case: dict[str, Any]) -> None:
    frame, wire = frame_from_json(case["frame"]), bytes.fromhex(case["bytes"])
    out = bytearray()
    Encoder(Mapping.STREAM).encode(frame, out)
    assert out[1:] == wire
    assert Decoder(Mapping.DATAGRAM).decode(wire) == [frame]


@pytest.mark.parametrize("case", named("units"))
def test_a_unit_ends_with_its_checksum(case: dict[str, Any]) -> None:
    content = CheckedUnits().feed(bytes.fromhex(case["bytes"]), max_frame=100)
    assert content.hex() == case["content"]
    packed = units(Encoder(Mapping.DATAGRAM), Mapping.DATAGRAM, bundled=True)
    packed.add_checksums()
    for frame in Decoder(Mapping.DATAGRAM).decode(content):
        packed.add(frame)
    assert [unit.hex() for unit in packed.take()] == [case["bytes"]]


@pytest.mark.parametrize("step", [1, 3, 100])
@pytest.mark.parametrize("case", named("streams"))
def test_a_stream_waits_for_the_checksum_of_a_write(case: dict[str, Any], step: int) -> None:
    wire, stream = bytes.fromhex(case["bytes"]) * 2, CheckedStream()
    got = [stream.feed(wire[at : at + step], max_frame=100) for at in range(0, len(wire), step)]
    assert b"".join(got).hex() == case["content"] * 2
    assert not stream.partial


@pytest.mark.parametrize("case", named("bodies"))
def test_the_checksum_of_a_body_covers_which_request_it_is_of(case: dict[str, Any]) -> None:
    body, label = bytes.fromhex(case["content"]), case["label"].encode()
    wire = bytes.fromhex(case["bytes"])
    assert with_checksum(body, label) == wire
    assert unpack_checked(wire, label).checked
    with pytest.raises(DamagedWrite):
        unpack_checked(wire, label + b"1")


@pytest.mark.parametrize("case", named("damaged"))
def test_what_is_damaged_is_refused(case: dict[str, Any]) -> None:
    read: dict[str, Callable[[bytes], object]] = {
        "handshake": Decoder(Mapping.DATAGRAM).decode,
        "unit": partial(CheckedUnits().feed, max_frame=100),
        "stream": partial(CheckedStream().feed, max_frame=100),
    }
    _, (how, data) = case.items()
    with pytest.raises(DamagedWrite) as refused:
        read[how](bytes.fromhex(data))
    assert str(refused.value) == ("a checksum does not fit: the link has changed what was written")


def test_a_stream_without_checksums_is_not_held_for_ever() -> None:
    stream = CheckedStream()
    with pytest.raises(DamagedWrite, match="no checksum follows what was written"):
        stream.feed(b"\x01\x01" * MOST_HELD, max_frame=100)
    with pytest.raises(FrameTooLarge):
        CheckedStream().feed(b"\x65\x01", max_frame=100)


def opened(mapping: Mapping, *, offered: bool = True) -> tuple[Open, Open, list[bytes]]:
    """Both ends of a channel, and what the gateway has written."""
    dialing = Dialing(HELLO, mapping=mapping, now=0, checksums=offered)
    waiting = Waiting(mapping=mapping, now=0)
    for data in dialing.data_to_send():
        waiting.receive(data, 0)
    gateway = waiting.welcome(WELCOME, 0)
    gateway.send([message(0)], 0)
    written = gateway.data_to_send()
    first, *others = written
    found = dialing.receive(first, 0)
    assert found is not None
    frames = list(found.frames)
    for data in others:
        frames += found.connection.receive(data, 0)
    assert frames == [message(0)]
    return found.connection, gateway, written


def message(seq: int, body: bytes = b"hello") -> MessageFrame:
    return MessageFrame(seq, seq + 1, None, None, body)


@pytest.mark.parametrize("mapping", [Mapping.STREAM, Mapping.DATAGRAM])
def test_an_open_channel_adds_and_checks_both_ways(mapping: Mapping) -> None:
    device, gateway, _ = opened(mapping)
    plain, _, _ = opened(mapping, offered=False)
    assert device.features & gateway.features & Feature.CHECKSUMS
    assert not plain.features & Feature.CHECKSUMS
    sizes = []
    for end in (device, plain):
        end.data_to_send()
        end.send([message(0), message(1)], 0)
        (data,) = end.data_to_send()
        sizes.append(len(data))
        if end is device:
            assert gateway.receive(data, 0) == [message(0), message(1)]
    assert sizes[0] - sizes[1] == (5 if mapping.streamed else 4), "once for both messages"


@pytest.mark.parametrize("mapping", [Mapping.STREAM, Mapping.DATAGRAM])
def test_one_flipped_bit_closes_the_channel_and_nothing_is_acted_on(mapping: Mapping) -> None:
    chance = random.Random(3)
    for _ in range(300):
        device, gateway, _ = opened(mapping)
        gateway.send([message(1), Ping(), message(2)], 0)
        (data,) = gateway.data_to_send()
        at = chance.randrange(len(data))
        damaged = data[:at] + bytes((data[at] ^ 1 << chance.randrange(8),)) + data[at + 1 :]
        device.data_to_send()
        assert device.receive(damaged, 0) == []
        if device.closed is None:
            # A length that has grown: the rest never comes.
            assert device.next_timeout() == STALLED
            device.timeout(STALLED)
            assert str(device.error) == "the rest of what was written did not come"
        assert device.closed is not None
        assert device.closed.code in (CloseCode.MALFORMED, CloseCode.TOO_LARGE)
        assert isinstance(device.error, DamagedWrite | FrameTooLarge | MalformedFrame)


def test_a_long_write_has_several_checksums() -> None:
    device, gateway, _ = opened(Mapping.STREAM)
    frames: list[Frame] = [message(n, bytes(30_000)) for n in range(1, 9)]
    gateway.send(frames, 0)
    (data,) = gateway.data_to_send()
    assert len(data) - sum(30_000 + 4 for _ in frames) == 3 * 5
    assert device.receive(data, 0) == frames


def test_a_slow_write_is_waited_for_while_bytes_come() -> None:
    device, gateway, _ = opened(Mapping.STREAM)
    gateway.send([message(1)], 0)
    (data,) = gateway.data_to_send()
    frames: list[Frame] = []
    for n, byte in enumerate(data):
        now = n * 9 * SECOND
        device.timeout(now)
        frames = device.receive(bytes((byte,)), now)
        device.data_to_send()
        if device.closed is not None:
            raise AssertionError(device.closed)
    assert frames == [message(1)]
