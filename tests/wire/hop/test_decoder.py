"""However bytes arrive, the same frames come out; whatever arrives, only a HopError escapes."""

import random
import tracemalloc
from itertools import pairwise

import pytest
from hypothesis import given, strategies as st

from lasthop.errors import FrameTooLarge, HopError, MalformedFrame
from lasthop.wire.hop.decoder import Decoder
from lasthop.wire.hop.encoder import Encoder
from lasthop.wire.hop.frames import Close, CloseCode, Frame, MessageFrame, Ping
from lasthop.wire.hop.mapping import Mapping
from tests.wire.hop import strategies

MAX_FRAME = 2**13


def encoded(frames: list[Frame]) -> bytes:
    encoder = Encoder(Mapping.STREAM)
    out = bytearray()
    for frame in frames:
        encoder.encode(frame, out)
    return bytes(out)


def pieces(data: bytes, cuts: list[int]) -> list[bytes]:
    edges = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
    return [data[low:high] for low, high in pairwise(edges)]


@given(st.lists(strategies.payload, max_size=8), st.lists(st.integers(0, 4000), max_size=10))
def test_a_stream_may_be_cut_anywhere(frames: list[Frame], cuts: list[int]) -> None:
    decoder = Decoder(Mapping.STREAM)
    data = encoded(frames)
    assert [frame for piece in pieces(data, cuts) for frame in decoder.feed(piece)] == frames
    assert decoder.buffered == 0


@given(st.lists(strategies.payload, max_size=4), strategies.payload)
def test_three_feedings_agree(frames: list[Frame], last: Frame) -> None:
    data, trailing = encoded(frames), encoded([last])[:-1]
    by_byte = Decoder(Mapping.STREAM)
    found = [frame for at in range(len(data)) for frame in by_byte.feed(data[at : at + 1])]
    with_more = Decoder(Mapping.STREAM)
    assert found == Decoder(Mapping.STREAM).feed(data) == with_more.feed(data + trailing) == frames
    assert with_more.buffered == len(trailing)


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_any_buffer_will_do(kind: type) -> None:
    message = MessageFrame(0, 1, None, None, b"body")
    data = encoded([message])
    (found,) = Decoder(Mapping.STREAM).feed(kind(data))
    assert found == message
    assert type(found.body) is bytes
    assert Decoder(Mapping.DATAGRAM).decode_unit(kind(data[1:])) == [message]


def test_a_large_frame_in_small_pieces_is_not_copied_over_and_over() -> None:
    size = 2**20
    data = encoded([MessageFrame(0, 1, None, None, bytes(size))])
    decoder = Decoder(Mapping.STREAM)
    tracemalloc.start()
    frames = [
        frame for at in range(0, len(data), 1000) for frame in decoder.feed(data[at : at + 1000])
    ]
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(frames) == 1
    assert peak < 4 * size
    assert decoder.buffered == 0


def test_a_frame_that_is_too_large_is_refused_at_its_length() -> None:
    decoder = Decoder(Mapping.STREAM, max_frame=MAX_FRAME)
    with pytest.raises(FrameTooLarge, match="a frame is too large") as caught:
        decoder.feed(bytes.fromhex("818040"))
    assert caught.value.fields == {"size": MAX_FRAME * 128 + 1, "most": MAX_FRAME}
    assert decoder.buffered == 0


def test_a_unit_that_is_too_large_is_refused() -> None:
    with pytest.raises(FrameTooLarge, match="a unit is too large"):
        Decoder(Mapping.DATAGRAM, max_frame=MAX_FRAME).decode_unit(bytes(MAX_FRAME + 1))


def test_after_an_error_nothing_more_is_read() -> None:
    decoder = Decoder(Mapping.STREAM)
    with pytest.raises(MalformedFrame, match="a frame has no type"):
        decoder.feed(b"\x00")
    with pytest.raises(MalformedFrame, match="the channel has failed already"):
        decoder.feed(encoded([Ping()]))


def test_after_a_close_nothing_more_is_read() -> None:
    decoder = Decoder(Mapping.STREAM)
    close = Close(CloseCode.BYE)
    assert decoder.feed(encoded([Ping(), close]) + b"\x00") == [Ping(), close]
    assert decoder.feed(b"\x00\x00") == []
    assert decoder.buffered == 0


def test_a_bundle_may_end_with_a_close() -> None:
    decoder = Decoder(Mapping.DATAGRAM)
    close = Close(CloseCode.BYE)
    assert decoder.decode_unit(b"\x00" + encoded([close])) == [close]
    assert decoder.decode_unit(b"\x00\x00") == []


def survive(decoder: Decoder, chunks: list[bytes]) -> None:
    for chunk in chunks:
        try:
            decoder.decode(chunk)
        except HopError:
            return
        assert decoder.buffered <= decoder.max_frame + 9


@given(st.sampled_from(Mapping), st.lists(st.binary(max_size=60), max_size=6))
def test_random_bytes_raise_only_hop_errors(mapping: Mapping, chunks: list[bytes]) -> None:
    survive(Decoder(mapping, max_frame=MAX_FRAME), chunks)


@given(
    st.lists(strategies.payload | strategies.hellos() | strategies.welcomes(), max_size=6),
    st.lists(st.tuples(st.integers(0, 5000), st.integers(0, 255)), min_size=1, max_size=4),
    st.lists(st.integers(0, 5000), max_size=4),
)
def test_mutated_frames_raise_only_hop_errors(
    frames: list[Frame], mutations: list[tuple[int, int]], cuts: list[int]
) -> None:
    data = bytearray(encoded(frames)) or bytearray(1)
    for at, value in mutations:
        data[at % len(data)] = value
    survive(Decoder(Mapping.STREAM, max_frame=MAX_FRAME), pieces(bytes(data), cuts))
    survive(Decoder(Mapping.DATAGRAM, max_frame=MAX_FRAME), [b"\x00" + bytes(data)])


@pytest.mark.parametrize("seed", range(20))
def test_a_long_run_of_nonsense_is_survived(seed: int) -> None:
    source = random.Random(seed)
    for _ in range(300):
        data = bytearray(source.randbytes(source.randrange(1, 40)))
        # A plausible length makes the frame behind it count.
        data[0] = min(data[0], len(data) - 1)
        survive(Decoder(source.choice(list(Mapping)), max_frame=MAX_FRAME), [bytes(data)])
