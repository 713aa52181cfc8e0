"""An open channel minds its own business and never raises for what the peer does."""

import random

import pytest

from lasthop.clock import MILLISECOND, SECOND
from lasthop.errors import CreditExceeded, MalformedFrame, TooLarge
from lasthop.wire.hop.encoder import Encoder
from lasthop.wire.hop.frames import (
    Ack,
    Close,
    CloseCode,
    Credit,
    Dropped,
    Frame,
    Hello,
    MessageFrame,
    Ping,
    Pong,
    Skip,
    Time,
    Welcome,
)
from lasthop.wire.hop.mapping import Mapping
from tests.wire.hop.peers import HELLO, INCARNATION, WELCOME, Pair

INTERVAL = 240 * SECOND


def encoded(*frames: Frame) -> bytes:
    encoder = Encoder(Mapping.STREAM)
    out = bytearray()
    for frame in frames:
        encoder.encode(frame, out)
    return bytes(out)


@pytest.mark.parametrize("mapping", Mapping)
def test_messages_and_words_about_them_go_both_ways(mapping: Mapping) -> None:
    pair = Pair(mapping=mapping)
    down: list[Frame] = [MessageFrame(0, 5, "news", None, b"a"), Skip(1), Credit(3, 4), Ack(0, 0)]
    up: list[Frame] = [MessageFrame(0, None, body=b"b"), Ack(2, 1), Dropped(((0, 1),))]
    pair.gateway.send(down, pair.now)
    pair.device.send(up, pair.now)
    pair.exchange()
    assert pair.device_got == down
    assert pair.gateway_got == up
    assert pair.device.peer_window == Credit(3, 4)


def test_a_window_that_was_overtaken_by_a_newer_one_is_no_news() -> None:
    pair = Pair(mapping=Mapping.UNORDERED)
    units = []
    for window in (Credit(0, 0), Credit(7, 70)):
        pair.device.send([Ack(0, 0), window], pair.now)
        units.append(pair.device.data_to_send()[0])
    assert pair.gateway.receive_unit(units[1], 5, pair.now) == [Ack(0, 0), Credit(7, 70)]
    assert pair.gateway.receive_unit(units[0], 4, pair.now) == [Ack(0, 0)]
    assert pair.gateway.peer_window == Credit(7, 70)
    assert pair.gateway.receive_unit(units[0], 6, pair.now) == [Ack(0, 0), Credit(0, 0)]
    assert pair.gateway.receive_unit(b"\x81", 7, pair.now) == []
    assert isinstance(pair.gateway.error, MalformedFrame)
    assert pair.gateway.receive_unit(units[0], 8, pair.now) == []


def test_a_ping_is_answered_and_not_passed_on() -> None:
    pair = Pair()
    assert pair.gateway.receive(encoded(Ping()), pair.now) == []
    assert pair.gateway.data_to_send() == [encoded(Pong())]


def test_an_idle_device_pings_and_learns_the_round_trip() -> None:
    pair = Pair(there=30 * MILLISECOND, back=20 * MILLISECOND)
    pair.device.send([Ack(0, 0)], pair.now)
    pair.exchange()
    due = pair.device.next_timeout()
    assert due is not None
    pair.now = due
    pair.device.timeout(pair.now)
    pair.there = pair.back = 100 * MILLISECOND
    pair.exchange()
    assert pair.device.roundtrip.smoothed == (7 * 50 + 200) * MILLISECOND // 8
    assert pair.device.next_timeout() == due + INTERVAL


def test_a_silent_gateway_is_given_up() -> None:
    pair = Pair()
    start = pair.now
    pair.device.timeout(start + INTERVAL)
    pair.device.timeout(start + INTERVAL + 1)
    pair.device.data_to_send()
    pair.device.timeout(start + INTERVAL * 5 // 2)
    assert pair.device.closed is not None
    assert pair.device.closed.code == CloseCode.TIMEOUT
    assert pair.device.next_timeout() is None
    pair.device.timeout(start + INTERVAL * 9)


def test_a_silent_device_is_dropped_with_a_word() -> None:
    pair = Pair()
    due = pair.gateway.next_timeout()
    assert due == pair.now + INTERVAL * 5 // 2
    pair.gateway.timeout(due)
    expected = Close(CloseCode.TIMEOUT, 0, "nothing was heard for too long")
    assert pair.gateway.closed == expected
    assert pair.gateway.data_to_send() == [encoded(expected)]


def test_time_is_exchanged_and_both_sides_measure() -> None:
    pair = Pair(there=30 * MILLISECOND, back=20 * MILLISECOND)
    pair.device.send([Ack(0, 0)], pair.now)
    pair.exchange()
    assert pair.gateway.roundtrip.smoothed == 50 * MILLISECOND
    assert pair.device_got == []
    assert pair.gateway_got == [Ack(0, 0)]


def test_without_the_feature_no_time_is_sent() -> None:
    pair = Pair()
    pair.device.features = 0
    pair.device.send([Ack(0, 0)], pair.now)
    assert pair.device.data_to_send() == [bytes.fromhex("03430000")]


def test_a_close_ends_the_channel() -> None:
    pair = Pair()
    pair.gateway.send([MessageFrame(0, None)], pair.now)
    bye = Close(CloseCode.SHUTTING_DOWN, 3000, "back soon")
    pair.gateway.close(bye, pair.now)
    pair.to_device()
    assert pair.device_got == [MessageFrame(0, None)]
    assert pair.device.closed == pair.gateway.closed == bye
    assert pair.device.error is None
    pair.device.send([Ack(1, 1)], pair.now)
    assert pair.device.data_to_send() == []
    assert pair.device.receive(b"\x00", pair.now) == []
    pair.gateway.close(Close(CloseCode.BYE), pair.now)
    assert pair.gateway.closed == bye


@pytest.mark.parametrize("frame", [HELLO, WELCOME])
def test_a_handshake_comes_only_once(frame: Hello | Welcome) -> None:
    pair = Pair()
    assert pair.gateway.receive(encoded(MessageFrame(0, None), frame), pair.now) == []
    assert isinstance(pair.gateway.error, MalformedFrame)
    assert pair.gateway.closed is not None
    assert pair.gateway.closed.reason.startswith("a handshake frame came a second time")
    assert pair.gateway.data_to_send() == [encoded(pair.gateway.closed)]


def test_a_malformed_frame_closes_the_channel() -> None:
    pair = Pair()
    assert pair.gateway.receive(encoded(Ping()) + b"\x00", pair.now) == []
    assert pair.gateway.closed == Close(CloseCode.MALFORMED, 0, "a frame has no type")
    assert isinstance(pair.gateway.error, MalformedFrame)


def test_credit_is_enforced() -> None:
    pair = Pair(welcome=Welcome(incarnation=INCARNATION, epoch=1, window=Credit(2, 100)))
    pair.device.send([MessageFrame(0, None), MessageFrame(1, None)], pair.now)
    pair.to_gateway()
    pair.gateway.send([Ack(1, 1)], pair.now)
    pair.device.send([MessageFrame(2, None)], pair.now)
    pair.to_gateway()
    assert len(pair.gateway_got) == 3
    pair.device.send([MessageFrame(3, None)], pair.now)
    pair.to_gateway()
    assert len(pair.gateway_got) == 3
    assert isinstance(pair.gateway.error, CreditExceeded)
    assert pair.gateway.closed is not None
    assert pair.gateway.closed.code == CloseCode.CREDIT_EXCEEDED


def test_more_credit_can_be_granted_and_acknowledged_elsewhere() -> None:
    pair = Pair(welcome=Welcome(incarnation=INCARNATION, epoch=1, window=Credit(1, 100)))
    pair.gateway.send([Credit(2, 100)], pair.now)
    pair.gateway.sent_elsewhere([Ack(5, 5)])
    pair.device.send([MessageFrame(6, None), MessageFrame(None, None, body=bytes(500))], pair.now)
    pair.to_gateway()
    assert pair.gateway.closed is None
    assert len(pair.gateway_got) == 2


def test_what_the_peer_would_refuse_is_not_sent() -> None:
    pair = Pair(Hello(app="a", device="d", max_frame=10_000))
    with pytest.raises(TooLarge):
        pair.gateway.send([MessageFrame(0, None, body=bytes(10_000))], pair.now)
    pair.gateway.send([MessageFrame(0, None, body=bytes(9_999))], pair.now)
    pair.to_device()
    assert len(pair.device_got) == 1
    assert pair.device.receive(bytes.fromhex("914e80"), pair.now) == []
    assert pair.device.closed is not None
    assert pair.device.closed.code == CloseCode.TOO_LARGE


def test_a_full_channel_says_so() -> None:
    pair = Pair()
    assert [pair.gateway.full, _after_sending(pair, 70_000)] == [False, True]
    pair.to_device()
    assert pair.gateway.full is False


def _after_sending(pair: Pair, size: int) -> bool:
    pair.gateway.send([MessageFrame(0, None, body=bytes(size))], pair.now)
    return pair.gateway.full


def test_time_from_a_stranger_clock_is_survived() -> None:
    pair = Pair()
    pair.gateway.receive(encoded(Time(2**63 - 1, 2**63 - 1)), pair.now)
    assert pair.gateway.closed is None
    pair.gateway.send([MessageFrame(0, None, body=bytes(3000))], pair.now + 20 * SECOND)
    pair.to_device()
    assert pair.device.closed is None


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("mapping", Mapping)
def test_nonsense_closes_the_channel_and_raises_nothing(mapping: Mapping, seed: int) -> None:
    source = random.Random(seed)
    for _ in range(40):
        pair = Pair(mapping=mapping)
        for _ in range(10):
            data = source.randbytes(source.randrange(1, 30))
            pair.gateway.receive(data, pair.now)
            pair.device.receive(data, pair.now)
        pair.exchange()
