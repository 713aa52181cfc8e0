"""One channel of every kind: whatever carries it, it behaves the same.

About `delivery/channel.py`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from lasthop.clock import SECOND
from lasthop.transport.link import ChannelLink
from lasthop.transport.schemes import SCHEMES
from lasthop.wire.hop.frames import Ack, Close, CloseCode, Hello, MessageFrame
from lasthop.wire.hop.handshake import Dialing
from lasthop.wire.hop.heartbeat import UNHEARD, Pinging
from lasthop.wire.varint import encode_varint
from tests.delivery.board import until
from tests.delivery.conformance.kinds import (
    KINDS,
    POLLED,
    STREAMED,
    UNORDERED,
    WELCOME,
    Place,
    calling,
    listening,
)
from tests.transport.certificates import Authority

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("unchecked")]

MANY = 300


@pytest.fixture(params=KINDS)
async def place(
    request: pytest.FixtureRequest, tmp_path: Path, authority: Authority
) -> AsyncIterator[Place]:
    async with listening(request.param, tmp_path, authority) as ready:
        yield ready


def message(seq: int | None, body: bytes = b"hi") -> MessageFrame:
    return MessageFrame(seq, 5 + (seq or 0), None, None, body)


def raw(place: Place, unit: bytes) -> list[bytes]:
    """Bytes as the carrier takes them: on a stream every frame is preceded by its length."""
    return [encode_varint(len(unit)) + unit if place.kind in STREAMED else unit]


def link_of(place: Place, index: int = 0) -> ChannelLink:
    link = place.board.channels[index]
    assert isinstance(link, ChannelLink)
    return link


async def test_a_device_is_heard_and_welcomed(place: Place) -> None:
    async with calling(place) as caller:
        (number, hello), *_ = place.board.frames
        assert number == 1
        assert isinstance(hello, Hello)
        assert (hello.app, hello.device) == ("shop", "phone")
        assert place.board.channels[0].local
        assert caller.diary.opened[0].welcome.incarnation == WELCOME.incarnation
        assert place.listener.connections == 1


async def test_a_channel_promises_what_the_table_says(place: Place) -> None:
    async with calling(place) as caller:
        assert place.board.channels[0].reliable is SCHEMES[place.kind].reliable
        assert caller.link.reliable is SCHEMES[place.kind].reliable


async def test_both_speak_whenever_they_like(place: Place) -> None:
    async with calling(place) as caller:
        for seq in range(5):
            place.board.channels[0].send([message(seq)])
            await until(lambda seq=seq: message(seq) in caller.diary.frames)  # type: ignore[misc]
            caller.link.send([Ack(seq + 1, seq + 1), message(seq, b"ho")])
            await until(lambda seq=seq: (1, message(seq, b"ho")) in place.board.frames)  # type: ignore[misc]


async def test_everything_arrives_once_and_in_order_where_the_kind_promises_it(
    place: Place,
) -> None:
    async with calling(place) as caller:
        down = [message(seq, b"%d" % seq) for seq in range(MANY)]
        up = [message(seq, b"up %d" % seq) for seq in range(MANY)]
        for n in range(0, MANY, 3):
            place.board.channels[0].send(down[n : n + 3])
            caller.link.send(up[n : n + 3])
        await until(lambda: len(caller.diary.frames) >= MANY)
        await until(lambda: len(place.board.frames) >= MANY + 1)
        got_down = [frame for frame in caller.diary.frames if isinstance(frame, MessageFrame)]
        got_up = [frame for _, frame in place.board.frames if isinstance(frame, MessageFrame)]
        if place.kind in UNORDERED:
            got_down.sort(key=lambda frame: frame.key or 0)
            got_up.sort(key=lambda frame: frame.key or 0)
        assert got_down == down
        assert got_up == up


async def test_the_largest_frames_pass(place: Place) -> None:
    body = bytes(range(256)) * 4096
    async with calling(place) as caller:
        place.board.channels[0].send([message(0, body)])
        caller.link.send([message(0, body)])
        await until(lambda: bool(caller.diary.frames))
        await until(lambda: len(place.board.frames) == 2)
        assert caller.diary.frames == [message(0, body)]
        assert place.board.frames[1] == (1, message(0, body))


async def test_a_silent_device_asks_and_is_answered(place: Place) -> None:
    async with calling(place) as caller:
        heartbeat = caller.diary.opened[0].connection.heartbeat
        assert isinstance(heartbeat, Pinging)
        caller.clock.shift += 101 * SECOND
        caller.link.timeout()
        asked = heartbeat.unanswered
        await until(lambda: not heartbeat.unanswered)
        assert asked
        assert caller.link.closed is None


async def test_a_silent_device_is_given_up(place: Place) -> None:
    async with calling(place) as caller:
        if place.kind in ("http", "https"):
            await until(lambda: bool(getattr(link_of(place), "_waiting", None)))
        place.clock.shift += 251 * SECOND
        link_of(place).timeout()
        await until(lambda: caller.link.over)
        await until(lambda: bool(place.board.ends))
        close = caller.link.closed
        assert close is not None
        if place.kind == POLLED:
            # There is nobody to be told; the next poll finds nothing there.
            assert place.board.ends == [(1, "no request came for too long")]
            assert "there is no such connection" in caller.diary.ends[0]
        else:
            assert (close.code, close.reason) == (CloseCode.TIMEOUT, UNHEARD)
            assert place.board.ends == [(1, UNHEARD)]


async def test_the_gateways_last_word_arrives(place: Place) -> None:
    for number, code in enumerate(CloseCode, start=1):
        async with calling(place) as caller:
            place.board.channels[-1].close(code, f"that is why: {code}", 1234)
            await until(lambda link=caller.link: link.over)  # type: ignore[misc]
            assert caller.link.closed == Close(code, 1234, f"that is why: {code}")
            assert caller.diary.ends == [f"that is why: {code}"]
            await until(lambda number=number: len(place.board.ends) == number)  # type: ignore[misc]
            assert place.board.ends[-1] == (number, f"that is why: {code}")


async def test_the_devices_last_word_arrives(place: Place) -> None:
    async with calling(place) as caller:
        caller.link.send([message(seq) for seq in range(50)])
        caller.link.close(CloseCode.BYE, "had enough")
        await until(lambda: place.board.ends == [(1, "had enough")])
        await until(lambda: caller.link.over)
        heard = [frame for _, frame in place.board.frames if isinstance(frame, MessageFrame)]
        if place.kind not in UNORDERED:
            assert len(heard) == 50
        assert place.listener.errors == {}
        assert place.listener.connections == 0


async def test_a_device_that_vanishes_is_missed_once(place: Place) -> None:
    async with calling(place) as caller:
        caller.link.cut()
        await until(lambda: caller.link.over)
        if place.kind in UNORDERED:
            # Nothing tells the gateway but that nobody asks any more.
            await until(lambda: not getattr(place.board.channels[0], "_waiting", None))
            place.clock.shift += 31 * SECOND
            link_of(place).timeout()
        await until(lambda: bool(place.board.ends))
        assert len(place.board.ends) == 1
        assert place.listener.connections == 0


async def test_a_gateway_that_vanishes_is_noticed_at_once(place: Place) -> None:
    async with calling(place) as caller:
        link_of(place).cut()
        await until(lambda: caller.link.over)
        assert len(caller.diary.ends) == 1
        await until(lambda: bool(place.board.ends))


async def test_nonsense_costs_a_device_its_channel_and_disturbs_nobody(place: Place) -> None:
    async with calling(place) as good, calling(place) as bad:
        bad.link.write(raw(place, b"\x81nonsense"))
        await until(lambda: bad.link.over)
        close = bad.link.closed
        assert close is not None
        assert close.code == CloseCode.MALFORMED
        assert "which the handshake did not allow" in close.reason
        await until(lambda: len(place.board.ends) == 1)
        assert place.listener.errors == {"malformed_frame": 1}
        place.board.channels[0].send([message(0)])
        await until(lambda: bool(good.diary.frames))


async def test_a_unit_that_is_too_large_costs_a_device_its_channel(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        place.board, "welcome", type(WELCOME)(incarnation=b"12345678", epoch=1, max_frame=8192)
    )
    async with calling(place) as caller:
        caller.link.write(raw(place, b"\xb2" + bytes(8192)))
        await until(lambda: caller.link.over)
        close = caller.link.closed
        assert close is not None
        assert close.code == CloseCode.TOO_LARGE
        await until(lambda: bool(place.board.ends))
        assert place.listener.errors == {"frame_too_large": 1}


async def test_a_stranger_may_not_even_begin_with_much(place: Place) -> None:
    long = Hello(app="shop", device="phone", token="x" * 16_000, accept=("y" * 4000,))
    if place.kind in UNORDERED:
        with pytest.raises(ConnectionError, match="answered 413: the body is too large"):
            async with calling(place, hello=long):
                raise AssertionError
    else:
        async with calling(place, hello=long) as caller:
            assert caller.link.over
    assert not place.board.frames


async def test_the_first_word_is_a_hello(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    speak = Dialing.data_to_send

    def rude(self: Dialing) -> list[bytes]:
        return raw(place, b"\x01") if speak(self) else []

    monkeypatch.setattr(Dialing, "data_to_send", rude)
    async with calling(place) as caller:
        assert caller.link.closed is not None
        assert caller.link.closed.code == CloseCode.MALFORMED
        assert "the first frame is not a HELLO" in caller.link.closed.reason


async def test_a_full_buffer_is_told_and_so_is_room(place: Place) -> None:
    async with calling(place) as caller:
        sent = 0
        while not place.board.pauses:
            place.board.channels[0].send([message(None, bytes(50_000))])
            sent += 1
            assert sent < 1000
        assert place.board.pauses == [(1, True)]
        await until(lambda: place.board.pauses == [(1, True), (1, False)])
        await until(lambda: len(caller.diary.frames) == sent)


async def test_a_device_is_told_when_its_buffer_is_full(place: Place) -> None:
    async with calling(place) as caller:
        sent = 0
        while not caller.diary.pauses:
            caller.link.send([message(None, bytes(50_000))])
            sent += 1
            assert sent < 1000
        assert caller.diary.pauses == [True]
        await until(lambda: caller.diary.pauses == [True, False])
        await until(lambda: len(place.board.frames) == sent + 1)


@pytest.mark.parametrize("kind", KINDS)
async def test_one_too_many_is_told_to_come_back_later(
    kind: str, tmp_path: Path, authority: Authority
) -> None:
    async with (
        listening(kind, tmp_path, authority, max_connections=1) as place,
        calling(place),
        calling(place) as second,
    ):
        await until(lambda: second.link.over)
        assert second.link.closed == Close(CloseCode.OVERLOADED, 10_000, "too many connections")
        assert place.listener.errors == {"overloaded": 1}
        assert len(place.board.channels) == 1


async def test_a_listener_that_stops_says_so(place: Place) -> None:
    async with calling(place) as caller:
        stop = getattr(place.listener, "stop")  # noqa: B009
        await stop()
        await until(lambda: caller.link.over)
        assert caller.link.closed is not None
        assert caller.link.closed.code == CloseCode.SHUTTING_DOWN
