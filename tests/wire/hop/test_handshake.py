"""One round trip opens a channel; anything else is refused with a clear word."""

import msgspec
import pytest

from lasthop.clock import MILLISECOND, SECOND
from lasthop.errors import MalformedFrame, UnsupportedFrame
from lasthop.wire.hop.encoder import Encoder
from lasthop.wire.hop.frames import (
    ALL_FEATURES,
    Ack,
    Close,
    CloseCode,
    Credit,
    Feature,
    Frame,
    Headers,
    Hello,
    LaneClaim,
    LaneClaims,
    LaneFrame,
    MessageFrame,
    Ping,
    Welcome,
)
from lasthop.wire.hop.handshake import WAIT_FOR_HELLO, WAIT_FOR_WELCOME, Dialing, Waiting
from lasthop.wire.hop.heartbeat import DEFAULT_INTERVAL
from lasthop.wire.hop.mapping import Mapping
from tests.wire.hop.peers import HELLO, INCARNATION, NOW, WELCOME, Pair

CLAIMED = Hello(app="a", device="d", incarnation=INCARNATION, epoch=1, received=70, delivered=69)


def encoded(*frames: Frame) -> bytes:
    encoder = Encoder(Mapping.STREAM)
    out = bytearray()
    for frame in frames:
        encoder.encode(frame, out)
    return bytes(out)


def waiting() -> Waiting:
    return Waiting(mapping=Mapping.STREAM, now=NOW)


def dialing(hello: Hello = HELLO) -> Dialing:
    return Dialing(hello, mapping=Mapping.STREAM, now=NOW)


@pytest.mark.parametrize("mapping", Mapping)
def test_one_round_trip_opens_a_channel(mapping: Mapping) -> None:
    pair = Pair(mapping=mapping, there=30 * MILLISECOND, back=20 * MILLISECOND)
    assert pair.device.closed is None
    assert pair.device.features == pair.gateway.features == ALL_FEATURES
    assert pair.welcome.epoch == 1
    assert pair.device.roundtrip.smoothed == 50 * MILLISECOND


def test_a_hello_may_come_in_pieces() -> None:
    gateway = waiting()
    data = encoded(HELLO)
    assert [gateway.receive(data[at : at + 1], NOW) for at in range(len(data) - 1)] == [None] * (
        len(data) - 1
    )
    assert gateway.receive(data[-1:], NOW) == HELLO


def test_messages_may_follow_the_welcome_at_once() -> None:
    gateway = waiting()
    for unit in dialing(CLAIMED).data_to_send():
        gateway.receive(unit, NOW)
    resumed = Welcome(incarnation=INCARNATION, epoch=1, resumed=True, received=5)
    connection = gateway.welcome(resumed, NOW)
    connection.send([MessageFrame(70, 9, body=b"x"), MessageFrame(71, 10)], NOW)
    (data,) = connection.data_to_send()
    assert data.endswith(bytes.fromhex("03900978 0180"))
    device = dialing(CLAIMED)
    opened = device.receive(data, NOW)
    assert opened is not None
    assert opened.frames == [MessageFrame(70, 9, body=b"x"), MessageFrame(71, 10)]
    opened.connection.send([MessageFrame(5, None), Ack(72, 71)], NOW)
    device.data_to_send()
    (data,) = opened.connection.data_to_send()
    assert data.startswith(bytes.fromhex("01b0 024402"))
    assert connection.receive(data, NOW) == [MessageFrame(5, None), Ack(72, 71)]


def test_in_a_new_epoch_everything_starts_at_zero() -> None:
    pair = Pair(CLAIMED, Welcome(incarnation=INCARNATION, epoch=2, superseded=3))
    pair.publish(1)
    pair.device.send([MessageFrame(0, None), Ack(1, 1)], pair.now)
    pair.to_gateway()
    assert pair.device_got == [MessageFrame(0, 1)]
    assert pair.gateway_got == [MessageFrame(0, None), Ack(1, 1)]


def test_the_terms_of_both_sides_hold() -> None:
    hello = Hello(app="a", device="d", accept=("text/html",), window=Credit(7, 7000))
    welcome = Welcome(
        incarnation=INCARNATION, epoch=1, accept=("application/json",), window=Credit(9, 9000)
    )
    pair = Pair(hello, welcome)
    assert pair.gateway.peer_window == Credit(7, 7000)
    assert pair.device.peer_window == Credit(9, 9000)
    assert pair.device.heartbeat.interval == pair.gateway.heartbeat.interval == DEFAULT_INTERVAL
    pair.gateway.send([MessageFrame(0, None, None, Headers(content_type="text/html"))], pair.now)
    assert pair.gateway.data_to_send() == [bytes.fromhex("01b0")]
    pair.device.send(
        [MessageFrame(0, None, None, Headers(content_type="application/json"))], pair.now
    )
    assert pair.device.data_to_send()[0].startswith(bytes.fromhex("01b0"))


def test_a_device_without_features_gets_none() -> None:
    gateway = waiting()
    gateway.receive(encoded(HELLO), NOW)
    assert gateway.welcome(WELCOME, NOW).features == Feature.NONE


@pytest.mark.parametrize(
    "data, code, reason",
    [
        (encoded(Ping()), CloseCode.MALFORMED, "the first frame is not a HELLO (frame='PING')"),
        (
            encoded(HELLO, HELLO),
            CloseCode.MALFORMED,
            "a frame came before the WELCOME (frame='HELLO')",
        ),
        (
            encoded(HELLO, MessageFrame(0, None)),
            CloseCode.MALFORMED,
            "a frame came before the WELCOME (frame='MESSAGE')",
        ),
        (
            bytes.fromhex("03400203"),
            CloseCode.UNSUPPORTED,
            "no common version (lowest=2, highest=3)",
        ),
        (
            bytes.fromhex("81800140"),
            CloseCode.TOO_LARGE,
            "a frame is too large (size=16385, most=16384)",
        ),
        (b"GET / HTTP/1.1\r\n" + b"Host: a\r\n" * 9, CloseCode.MALFORMED, "there are more numbers"),
    ],
)
def test_a_bad_start_is_refused(data: bytes, code: CloseCode, reason: str) -> None:
    gateway = waiting()
    assert gateway.receive(data, NOW) is None
    assert gateway.closed is not None
    assert gateway.closed.code == code
    assert gateway.closed.reason.startswith(reason)
    assert gateway.error is not None
    assert gateway.error.hop_code == code
    assert gateway.data_to_send() == [encoded(gateway.closed)]
    assert gateway.receive(encoded(HELLO), NOW) is None


def test_a_device_that_gives_up_is_let_go() -> None:
    gateway = waiting()
    assert gateway.receive(encoded(HELLO, Close(CloseCode.BYE)), NOW) is None
    assert gateway.closed == Close(CloseCode.BYE)
    assert gateway.data_to_send() == []


def test_a_device_that_hangs_up_while_the_gateway_thinks_gets_no_welcome() -> None:
    gateway = waiting()
    assert gateway.receive(encoded(HELLO), NOW) == HELLO
    gateway.receive(encoded(Close(CloseCode.BYE)), NOW)
    connection = gateway.welcome(WELCOME, NOW)
    assert connection.closed == Close(CloseCode.BYE)
    assert connection.data_to_send() == []


def test_a_gateway_can_refuse() -> None:
    gateway, device = waiting(), dialing()
    for unit in device.data_to_send():
        gateway.receive(unit, NOW)
    refusal = Close(CloseCode.UNAUTHORIZED, 0, "wrong token")
    gateway.close(refusal)
    (unit,) = gateway.data_to_send()
    assert device.receive(unit, NOW) is None
    assert device.closed == refusal
    assert device.error is None
    assert device.receive(encoded(WELCOME), NOW) is None
    assert device.next_timeout() is None


def test_a_gateway_that_does_not_greet_is_left() -> None:
    device = dialing()
    device.data_to_send()
    assert device.receive(encoded(Ping()), NOW) is None
    assert isinstance(device.error, MalformedFrame)
    assert device.closed is not None
    assert device.closed.reason == "the first frame is not a WELCOME (frame='PING')"
    assert device.data_to_send() == [encoded(device.closed)]


def test_a_gateway_of_another_version_is_left() -> None:
    device = dialing()
    assert device.receive(bytes.fromhex("024102"), NOW) is None
    assert isinstance(device.error, UnsupportedFrame)


def test_strangers_do_not_wait_for_ever() -> None:
    gateway = waiting()
    assert gateway.next_timeout() == NOW + WAIT_FOR_HELLO
    gateway.timeout(NOW + WAIT_FOR_HELLO - 1)
    assert gateway.closed is None
    gateway.timeout(NOW + WAIT_FOR_HELLO)
    assert gateway.next_timeout() is None
    (unit,) = gateway.data_to_send()
    assert unit == encoded(Close(CloseCode.TIMEOUT, 0, "the handshake took too long"))


def test_a_gateway_that_thinks_is_not_timed_out() -> None:
    gateway = waiting()
    gateway.receive(encoded(HELLO), NOW)
    assert gateway.next_timeout() is None
    gateway.timeout(NOW + 60 * SECOND)
    assert gateway.closed is None
    gateway.welcome(WELCOME, NOW + 61 * SECOND)


def test_a_device_does_not_wait_for_ever() -> None:
    device = dialing()
    assert device.next_timeout() == NOW + WAIT_FOR_WELCOME
    device.timeout(NOW + WAIT_FOR_WELCOME)
    assert device.closed is not None
    assert device.closed.code == CloseCode.TIMEOUT


def test_nobody_is_welcomed_before_a_hello() -> None:
    with pytest.raises(ValueError, match="there is no HELLO to answer"):
        waiting().welcome(WELCOME, NOW)


def test_the_hello_that_was_sent_can_be_asked_for() -> None:
    assert dialing().hello.time == NOW // MILLISECOND
    assert dialing().hello.features == ALL_FEATURES


@pytest.mark.parametrize("mapping", list(Mapping))
@pytest.mark.parametrize("offered", [False, True])
@pytest.mark.parametrize("granted", [False, True])
def test_lanes_are_used_where_both_sides_have_them(
    mapping: Mapping, offered: bool, granted: bool
) -> None:
    hello = msgspec.structs.replace(HELLO, features=Feature.LANES if offered else 0)
    welcome = msgspec.structs.replace(WELCOME, features=Feature.LANES if granted else 0)
    pair = Pair(hello, welcome, mapping=mapping)
    both = offered and granted
    assert bool(pair.device.features & Feature.LANES) == both
    assert bool(pair.gateway.features & Feature.LANES) == both
    message = MessageFrame(0, 1, None, None, b"a", lane=2)
    frames: list[Frame] = [message, LaneFrame(3, Credit(0, 0))]
    pair.gateway.send(frames, pair.now)
    pair.device.send(frames, pair.now)
    pair.to_device()
    pair.to_gateway()
    assert pair.device_got == pair.gateway_got == (frames if both else [])
    assert (pair.device.error is None) == (pair.gateway.error is None) == both


def test_no_side_offers_lanes_so_far() -> None:
    assert not dialing().hello.features & Feature.LANES
    hello = msgspec.structs.replace(HELLO, features=Feature.LANES)
    gateway = waiting()
    gateway.receive(encoded(hello), NOW)
    assert not gateway.welcome(WELCOME, NOW).features & Feature.LANES


def test_a_channel_goes_on_from_what_was_said_of_lanes() -> None:
    claims = LaneClaims(3, (LaneClaim(2, 500, 500),))
    hello = Hello(app="a", device="d", incarnation=INCARNATION, epoch=1, features=64, lanes=claims)
    pair = Pair(hello, Welcome(incarnation=INCARNATION, epoch=1, resumed=True, features=64))
    frames = [MessageFrame(563, 1, None, None, b"a", lane=2)]
    pair.gateway.send(frames, pair.now)
    pair.to_device()
    assert pair.device_got == frames
