"""What is written can be read, and what cannot be read is not written."""

import pytest
from hypothesis import given, strategies as st

from lasthop.errors import TooLarge
from lasthop.wire.hop.decoder import Decoder
from lasthop.wire.hop.encoder import Encoder
from lasthop.wire.hop.frames import (
    MAX_RANGES,
    MAX_TOPIC,
    Ack,
    Dropped,
    Frame,
    Headers,
    Hello,
    LaneFrame,
    MessageFrame,
    Ping,
    Skip,
    Welcome,
)
from lasthop.wire.hop.mapping import Mapping
from tests.wire.hop import strategies

mappings = st.sampled_from(Mapping)


def encoded(encoder: Encoder, *frames: Frame) -> bytes:
    out = bytearray()
    for frame in frames:
        encoder.encode(frame, out)
    return bytes(out)


def bundle(data: bytes, mapping: Mapping) -> bytes:
    return data if mapping.streamed else b"\x00" + data


@given(mappings, st.lists(strategies.payload, max_size=12))
def test_every_frame_of_an_open_channel_comes_back(mapping: Mapping, frames: list[Frame]) -> None:
    data = encoded(Encoder(mapping), *frames)
    assert Decoder(mapping).decode(bundle(data, mapping)) == frames


@given(mappings, strategies.runs_of_messages)
def test_messages_that_lie_close_together_come_back(
    mapping: Mapping, frames: list[MessageFrame]
) -> None:
    data = encoded(Encoder(mapping), *frames)
    assert Decoder(mapping).decode(bundle(data, mapping)) == frames


@given(strategies.hellos() | strategies.welcomes() | strategies.closes)
def test_the_first_and_the_last_word_come_back(frame: Frame) -> None:
    assert Decoder(Mapping.STREAM).feed(encoded(Encoder(Mapping.STREAM), frame)) == [frame]


@given(st.lists(strategies.acks(), max_size=8), strategies.counts)
def test_acknowledgements_come_back_as_counts(acks: list[Ack], base: int) -> None:
    encoder, decoder = Encoder(Mapping.STREAM), Decoder(Mapping.STREAM)
    encoder.begin(received=base, delivered=base)
    decoder.begin(received=base, delivered=base)
    assert decoder.feed(encoded(encoder, *acks)) == acks


def test_more_topics_than_tokens_are_spelt_out() -> None:
    encoder, decoder = Encoder(Mapping.STREAM), Decoder(Mapping.STREAM)
    frames: list[Frame] = [MessageFrame(seq, None, f"topic {seq}") for seq in range(300)]
    assert decoder.feed(encoded(encoder, *frames)) == frames
    again = [MessageFrame(300, None, "topic 254"), MessageFrame(301, None, "topic 255")]
    data = encoded(encoder, *again)
    assert decoder.feed(data) == again
    assert data[:4] == bytes.fromhex("03b8ff01")
    assert b"topic 255" in data


def test_the_type_that_the_peer_prefers_is_left_out() -> None:
    encoder = Encoder(Mapping.STREAM, preferred="application/json")
    headers = Headers(content_type="application/json")
    plain = encoded(Encoder(Mapping.STREAM), MessageFrame(0, None))
    assert encoded(encoder, MessageFrame(0, None, None, headers)) == plain


def test_headers_at_their_defaults_take_no_room() -> None:
    plain = encoded(Encoder(Mapping.STREAM), MessageFrame(0, None))
    assert encoded(Encoder(Mapping.STREAM), MessageFrame(0, None, None, Headers())) == plain


@pytest.mark.parametrize(
    "frame, message",
    [
        (MessageFrame(0, 1, "topic", None, bytes(100)), "the message is larger than the peer"),
        (Hello(app="a" * 100, device="d"), "the frame is larger than the peer accepts"),
        (MessageFrame(0, 1, "t" * (MAX_TOPIC + 1)), "a topic is longer than"),
    ],
)
def test_what_the_peer_would_refuse_is_not_written(frame: Frame, message: str) -> None:
    encoder = Encoder(Mapping.STREAM, max_frame=100)
    out = bytearray()
    with pytest.raises(TooLarge, match=message):
        encoder.encode(frame, out)
    assert not out
    encoder.encode(MessageFrame(0, 1, "topic"), out)
    assert Decoder(Mapping.STREAM).feed(out) == [MessageFrame(0, 1, "topic")]


@pytest.mark.parametrize(
    "frame, message",
    [
        (Ack(5, 5, ((5, 6),)), "ranges must ascend"),
        (Ack(5, 5, ((7, 7),)), "ranges must ascend"),
        (Ack(5, 5, ((7, 8), (8, 9))), "ranges must ascend"),
        (Ack(0, 0, tuple((2 * n, 2 * n + 1) for n in range(1, MAX_RANGES + 2))), "at most 256"),
        (Dropped(((3, 3),)), "ranges must ascend"),
        (Skip(5, 0), "at least one number"),
        (MessageFrame(-1, 1), "unsigned"),
        (MessageFrame(0, 2**63), "at most 63 bits"),
        (MessageFrame(0, 1, None, Headers(priority=10)), "priority must be 0 to 9"),
        (MessageFrame(0, 1, None, Headers(rank=float("inf"))), "a rank must be a finite number"),
        (MessageFrame(0, 1, None, Headers(extra=(("a", "b"),) * 65)), "at most 128 texts"),
        (MessageFrame(0, 1, lane=1), "a lane beside lane 0 has a number above 1"),
        (MessageFrame(None, 1, lane=2), "a message without a number has no lane"),
        (LaneFrame(0, Ack(1, 1)), "a lane beside lane 0 has a number above 1"),
        (LaneFrame(2, Ack(1, 1, (), ((2, 3),))), "only a lane without order"),
        (Ack(1, 1, (), ((2, 3),)), "only a lane without order"),
        (Welcome(incarnation=b"short", epoch=1), "an incarnation must have eight bytes"),
    ],
)
def test_nonsense_is_the_callers_fault(frame: Frame, message: str) -> None:
    out = bytearray()
    with pytest.raises(ValueError, match=message):
        Encoder(Mapping.STREAM).encode(frame, out)
    assert not out


def test_what_is_no_frame_is_a_mistake() -> None:
    with pytest.raises(TypeError, match="not a control frame: str"):
        Encoder(Mapping.STREAM).encode("frame", bytearray())  # type: ignore[arg-type]


def test_a_heartbeat_takes_two_bytes() -> None:
    assert len(encoded(Encoder(Mapping.STREAM), Ping())) == 2
