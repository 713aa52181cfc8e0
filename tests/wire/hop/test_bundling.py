"""Frames share units where the mapping allows it, and units stay within what the peer accepts."""

import pytest
from hypothesis import given, strategies as st

from lasthop.errors import FrameTooLarge, MalformedFrame, TooLarge
from lasthop.wire.hop.bundling import DatagramUnits, StreamUnits, units
from lasthop.wire.hop.decoder import SCANNED, Decoder
from lasthop.wire.hop.encoder import Encoder
from lasthop.wire.hop.frames import Frame, MessageFrame, Ping, Pong
from lasthop.wire.hop.layout import MOST_BUNDLED
from lasthop.wire.hop.mapping import Mapping
from tests.wire.hop import strategies


def message(size: int) -> MessageFrame:
    return MessageFrame(None, None, None, None, bytes(size))


def test_a_stream_takes_frames_as_they_are() -> None:
    packed = StreamUnits(Encoder(Mapping.STREAM))
    assert packed.take() == []
    packed.add(Ping())
    packed.add(Pong())
    assert packed.pending == 4
    assert packed.take() == [bytes.fromhex("01010102")]
    assert packed.pending == 0


def test_a_lone_frame_is_no_bundle() -> None:
    packed = DatagramUnits(Encoder(Mapping.DATAGRAM), bundled=True)
    packed.add(Ping())
    assert packed.take() == [b"\x01"]
    assert packed.take() == []


def test_frames_are_bundled() -> None:
    packed = DatagramUnits(Encoder(Mapping.DATAGRAM), bundled=True)
    packed.add(Ping())
    packed.add(message(3))
    assert packed.pending == 8
    assert packed.take() == [bytes.fromhex("00010104b2000000")]
    assert packed.pending == 0


def test_a_bundle_has_so_many_frames_and_no_more() -> None:
    packed = DatagramUnits(Encoder(Mapping.DATAGRAM), bundled=True)
    frames = [message(n % 200) for n in range(2 * MOST_BUNDLED + 1)]
    for frame in frames:
        packed.add(frame)
    sent = packed.take()
    decoder = Decoder(Mapping.DATAGRAM)
    found = [decoder.decode_unit(unit) for unit in sent]
    assert [len(each) for each in found] == [MOST_BUNDLED, MOST_BUNDLED, 1]
    assert [frame for each in found for frame in each] == frames
    with pytest.raises(FrameTooLarge, match="a bundle has too many frames"):
        Decoder(Mapping.DATAGRAM).decode_unit(sent[0] + b"\x01\x01")


def test_large_and_small_frames_share_a_bundle() -> None:
    packed = DatagramUnits(Encoder(Mapping.DATAGRAM), bundled=True)
    frames: list[Frame] = [message(3), message(2 * SCANNED), Ping(), message(3 * SCANNED), Pong()]
    for frame in frames:
        packed.add(frame)
    (unit,) = packed.take()
    assert Decoder(Mapping.DATAGRAM).decode_unit(unit) == frames
    with pytest.raises(MalformedFrame, match="a bundle ends inside a frame"):
        Decoder(Mapping.DATAGRAM).decode_unit(unit[:-3])


def test_a_peer_that_knows_no_bundles_gets_frame_by_frame() -> None:
    packed = DatagramUnits(Encoder(Mapping.DATAGRAM), bundled=False)
    for frame in (Ping(), Pong(), message(1)):
        packed.add(frame)
    assert packed.take() == [b"\x01", b"\x02", b"\xb2\x00"]


def test_a_bundle_is_no_larger_than_a_frame_may_be() -> None:
    packed = DatagramUnits(Encoder(Mapping.DATAGRAM, max_frame=100), bundled=True)
    for size in (40, 40, 40, 99, 1):
        packed.add(message(size))
    assert packed.pending == 230
    assert [len(unit) for unit in packed.take()] == [85, 41, 100, 2]


@pytest.mark.parametrize("mapping", Mapping)
def test_a_frame_that_is_too_large_leaves_the_rest_alone(mapping: Mapping) -> None:
    packed = units(Encoder(mapping, max_frame=100), mapping, bundled=True)
    with pytest.raises(TooLarge):
        packed.add(message(100))
    assert packed.take() == []
    packed.add(Ping())
    with pytest.raises(TooLarge):
        packed.add(message(100))
    assert packed.take() == [b"\x01\x01" if mapping.streamed else b"\x01"]


@given(
    st.sampled_from(Mapping),
    st.booleans(),
    st.lists(st.lists(strategies.payload, max_size=5), max_size=4),
)
def test_whatever_is_packed_is_found(
    mapping: Mapping, bundled: bool, batches: list[list[Frame]]
) -> None:
    packed = units(Encoder(mapping, max_frame=8192), mapping, bundled=bundled)
    decoder = Decoder(mapping, max_frame=8192)
    found: list[Frame] = []
    for batch in batches:
        for frame in batch:
            packed.add(frame)
        for unit in packed.take():
            found += decoder.decode(unit)
    assert found == [frame for batch in batches for frame in batch]
