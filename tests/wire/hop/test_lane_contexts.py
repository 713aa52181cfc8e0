"""Whatever travels in lanes comes back, relative to what its own lane said last."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, strategies as st

from lasthop.errors import MalformedFrame, UnsupportedFrame
from lasthop.wire.hop.bundling import units
from lasthop.wire.hop.decoder import Decoder
from lasthop.wire.hop.encoder import Encoder
from lasthop.wire.hop.frames import Ack, Frame, LaneFrame, MessageFrame
from lasthop.wire.hop.lane_contexts import MOST_CONTEXTS
from lasthop.wire.hop.mapping import Mapping
from tests.wire.hop import strategies

words = st.one_of(strategies.messages_in_lanes, strategies.lane_frames(), strategies.acks())


def through(frames: Sequence[Frame], mapping: Mapping) -> list[Frame]:
    """What a peer decodes of frames that were encoded behind one another."""
    packed = units(Encoder(mapping), mapping, bundled=True)
    for frame in frames:
        packed.add(frame)
    decoder = Decoder(mapping)
    decoder.allow_lanes()
    return [frame for unit in packed.take() for frame in decoder.decode(unit)]


def size_of(encoder: Encoder, frame: Frame) -> int:
    out = bytearray()
    encoder.encode(frame, out)
    return len(out)


@given(st.sampled_from(Mapping), st.lists(words, max_size=12))
def test_what_travels_in_lanes_comes_back(mapping: Mapping, frames: list[Frame]) -> None:
    assert through(frames, mapping) == frames


def test_more_lanes_than_are_remembered_come_back() -> None:
    lanes = [2 * n for n in range(1, MOST_CONTEXTS + 40)]
    frames: list[Frame] = []
    for seq in range(3):
        for lane in lanes:
            frames.append(MessageFrame(seq, lane * 10 + seq, None, None, b"x", lane=lane))
            frames.append(LaneFrame(lane, Ack(seq + 1, seq + 1)))
    assert through(frames, Mapping.STREAM) == frames


def test_a_lane_costs_one_byte_and_lane_0_none() -> None:
    encoder = Encoder(Mapping.STREAM)
    size_of(encoder, MessageFrame(0, 1, None, None, b"a", lane=2))
    assert size_of(encoder, MessageFrame(1, 2, None, None, b"a", lane=2)) == 4
    assert size_of(encoder, MessageFrame(0, 1, None, None, b"a")) == 3
    assert size_of(encoder, LaneFrame(2, Ack(1, 1))) == 3
    assert size_of(encoder, Ack(1, 1)) == 2


def test_without_the_feature_lanes_are_as_unknown_as_before() -> None:
    for frame, error in (
        (MessageFrame(0, 1, None, None, b"a", lane=2), MalformedFrame),
        (LaneFrame(2, Ack(1, 1)), UnsupportedFrame),
    ):
        out = bytearray()
        Encoder(Mapping.STREAM).encode(frame, out)
        with pytest.raises(error):
            Decoder(Mapping.STREAM).feed(out)
