"""What the protocol costs, in bytes on the wire and in memory of an idle channel.

About `wire/hop/encoder.py` and `wire/hop/connection.py`.
"""

import gc
import tracemalloc
from collections.abc import Callable

import pytest

from lasthop.clock import MILLISECOND, SECOND, Micros
from lasthop.message import KeyMaker
from lasthop.wire.hop.decoder import Decoder
from lasthop.wire.hop.encoder import Encoder
from lasthop.wire.hop.frames import Ack, Credit, Hello, MessageFrame, Welcome
from lasthop.wire.hop.handshake import Dialing, Waiting
from lasthop.wire.hop.mapping import Mapping
from tests.wire.hop.peers import NOW, Pair

BODY = bytes(range(256))


def spent(pair: Pair, gaps: list[Micros], *, per_ack: int) -> float:
    """Bytes of protocol a message, both ways, on a channel that is under way."""
    keys = KeyMaker(node=3, after=0, random64=lambda: 0)
    pair.publish(keys.key(pair.now))
    pair.acknowledge()
    pair.bytes_moved = 0
    unacknowledged = 0
    for gap in gaps:
        pair.wait(gap)
        pair.publish(keys.key(pair.now), BODY)
        unacknowledged += 1
        if unacknowledged == per_ack:
            pair.acknowledge()
            unacknowledged = 0
    return pair.bytes_moved / len(gaps) - len(BODY)


@pytest.mark.parametrize("seconds", [0.001, 0.2, 1, 10, 20, 30])
def test_a_lone_message_costs_at_most_eight_bytes(seconds: float) -> None:
    pair = Pair()
    gaps = [int(seconds * SECOND)] * 50
    assert spent(pair, gaps, per_ack=1) <= 8


def test_bulk_costs_less_than_four_bytes() -> None:
    pair = Pair()
    assert spent(pair, [0] * 3200, per_ack=16) < 4


def test_bulk_on_a_busy_gateway_costs_at_most_eight_bytes() -> None:
    pair = Pair()
    keys = KeyMaker(node=3, after=0, random64=lambda: 0)
    pair.publish(keys.key(pair.now))
    pair.acknowledge()
    pair.bytes_moved = 0
    for _ in range(200):
        pair.wait(7 * MILLISECOND)
        for _ in range(9):
            keys.key(pair.now)  # for other devices
        pair.publish(keys.key(pair.now), BODY)
        pair.acknowledge()
    assert pair.bytes_moved / 200 - len(BODY) <= 8


def test_a_heartbeat_costs_two_bytes_each_way() -> None:
    pair = Pair()
    pair.acknowledge()
    pair.bytes_moved = 0
    due = pair.device.next_timeout()
    assert due is not None
    pair.now = due
    pair.device.timeout(pair.now)
    pair.exchange()
    assert pair.bytes_moved == 4
    assert pair.device.closed is None


def idle_bytes(make: Callable[[int], object]) -> float:
    count = 2000
    make(0)
    gc.collect()
    kept: list[object] = [None] * count
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    for index in range(count):
        kept[index] = make(index)
    gc.collect()
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return (after - before) / count


def used_codec(index: int) -> object:
    encoder, decoder = Encoder(Mapping.STREAM), Decoder(Mapping.STREAM)
    out = bytearray()
    for seq in range(3):
        encoder.encode_message(out, 1000 + index + seq, (index * 7919 + seq) << 22, body=BODY)
    encoder.encode(Ack(1000 + index, 900 + index), out)
    decoder.feed(out)
    return encoder, decoder


def used_connection(index: int) -> tuple[object, object]:
    now = NOW + index * SECOND
    window = Credit(32 + index, 70_000 + index)
    dialing = Dialing(
        Hello(app="a", device=f"d{index}", window=window), mapping=Mapping.STREAM, now=now
    )
    waiting = Waiting(mapping=Mapping.STREAM, now=now)
    for unit in dialing.data_to_send():
        waiting.receive(unit, now)
    welcome = Welcome(incarnation=b"12345678", epoch=1, heartbeat=240, window=window)
    gateway = waiting.welcome(welcome, now + 1)
    (unit,) = gateway.data_to_send()
    opened = dialing.receive(unit, now + 2)
    assert opened is not None
    device = opened.connection
    gateway.send([MessageFrame(seq, (index + seq) << 22, body=BODY) for seq in range(9)], now + 3)
    for unit in gateway.data_to_send():
        device.receive(unit, now + 4)
    device.send([Ack(9, 9)], now + 5)
    for unit in device.data_to_send():
        gateway.receive(unit, now + 6)
    return device, gateway


def test_an_idle_codec_stays_below_600_bytes() -> None:
    assert idle_bytes(used_codec) < 600


@pytest.mark.parametrize("side", [0, 1], ids=["device", "gateway"])
def test_an_idle_connection_stays_below_1200_bytes(side: int) -> None:
    assert idle_bytes(lambda index: used_connection(index)[side]) < 1200
