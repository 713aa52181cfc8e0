"""The MQTT client of the benchmarks, against the examples of MQTT 3.1.1."""

from __future__ import annotations

import pytest

from bench.hop import mqtt

WIRE = [
    (mqtt.connect("a"), "100d00044d5154540402000000" + "0161"),
    (mqtt.subscribe(10, "a/b", qos=1), "8208000a0003612f6201"),
    (mqtt.publish("a/b", b"hi", qos=0), "30070003612f626869"),
    (mqtt.publish("a/b", b"hi", qos=2, identifier=10), "34090003612f62000a6869"),
    (mqtt.answer(mqtt.Packet.PUBACK, b"\x00\x0a"), "4002000a"),
    (mqtt.answer(mqtt.Packet.PUBREL, b"\x00\x0a"), "6202000a"),
]


@pytest.mark.parametrize("encoded,expected", WIRE)
def test_packets_are_what_the_specification_says(encoded: bytes, expected: str) -> None:
    assert encoded.hex() == expected


@pytest.mark.parametrize(
    "size,expected", [(0, "00"), (127, "7f"), (128, "8001"), (16_384, "808001")]
)
def test_lengths_take_as_many_bytes_as_they_need(size: int, expected: str) -> None:
    assert mqtt.remaining_length(size).hex() == expected


def packets(pieces: list[bytes]) -> list[tuple[int, bytes]]:
    parser = mqtt.Parser()
    return [packet for piece in pieces for packet in parser.feed(piece)]


def test_packets_are_found_however_the_stream_is_cut() -> None:
    stream = b"".join(encoded for encoded, _ in WIRE)
    stream += mqtt.publish("t", b"x" * 256, qos=1, identifier=7)
    whole = packets([stream])
    assert len(whole) == len(WIRE) + 1
    assert packets([stream[i : i + 1] for i in range(len(stream))]) == whole
    assert packets([stream + b"\x30"]) == whole


def test_an_endless_length_is_refused() -> None:
    with pytest.raises(mqtt.Refused):
        packets([b"\x30\xff\xff\xff\xff\xff\xff"])
