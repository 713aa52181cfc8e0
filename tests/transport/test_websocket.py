"""A link over a WebSocket that a test plays."""

from __future__ import annotations

import asyncio

import pytest

from lasthop.errors import OutOfOrder
from lasthop.transport.stream import HIGH_WATER
from lasthop.transport.websocket import WebSocketLink
from lasthop.wire.hop.frames import CloseCode, Hello, MessageFrame, Welcome
from lasthop.wire.hop.handshake import Dialing, Waiting
from lasthop.wire.hop.mapping import Mapping
from tests.transport.hand import Diary, HandClock, ends

pytestmark = pytest.mark.anyio


class Socket:
    """The far end: takes messages while it is willing."""

    def __init__(self) -> None:
        self.willing = asyncio.Event()
        self.willing.set()
        self.sent: list[bytes] = []
        self.hung_up = False
        self.cuts = 0
        self.broken: Exception | None = None

    async def send(self, unit: bytes) -> None:
        await self.willing.wait()
        if self.broken is not None:
            raise self.broken
        self.sent.append(unit)

    async def hang_up(self) -> None:
        self.hung_up = True

    def cut(self) -> None:
        self.cuts += 1


class Played:
    """A gateway's link that has been welcomed."""

    def __init__(self) -> None:
        self.clock = HandClock()
        self.diary = Diary()
        self.socket = Socket()
        now = self.clock.now()
        self.link = WebSocketLink(
            ends(self.diary, self.clock),
            Waiting(mapping=Mapping.DATAGRAM, now=now),
            send=self.socket.send,
            hang_up=self.socket.hang_up,
            cut=self.socket.cut,
        )
        self.link.begin()
        hello = Hello(app="shop", device="phone")
        for unit in Dialing(hello, mapping=Mapping.DATAGRAM, now=now).data_to_send():
            self.link.message(unit)
        self.link.send([Welcome(incarnation=b"12345678", epoch=1)])

    def say(self, size: int = 10) -> None:
        self.link.send([MessageFrame(None, 5, None, None, bytes(size))])

    async def settle(self) -> None:
        for _ in range(5):
            await asyncio.sleep(0)


async def test_units_are_sent_in_order_and_an_idle_link_has_no_task() -> None:
    played = Played()
    played.say()
    played.say(20)
    await played.settle()
    assert [len(unit) for unit in played.socket.sent[1:]] == [12, 22]
    assert played.link._sender is None


async def test_a_slow_reader_is_noticed() -> None:
    played = Played()
    await played.settle()
    played.socket.willing.clear()
    played.say(HIGH_WATER // 2)
    assert played.diary.pauses == []
    played.say(HIGH_WATER // 2)
    played.say(HIGH_WATER // 2)
    assert played.diary.pauses == [True]
    played.socket.willing.set()
    await played.settle()
    assert played.diary.pauses == [True, False]


async def test_the_last_word_is_carried_before_the_end() -> None:
    played = Played()
    played.link.close(CloseCode.BYE, "done")
    assert not played.socket.hung_up
    await played.settle()
    assert played.socket.sent[-1].endswith(b"done")
    assert played.socket.hung_up


async def test_who_does_not_take_the_last_word_is_cut_off() -> None:
    played = Played()
    await played.settle()
    played.socket.willing.clear()
    played.link.close(CloseCode.BYE, "done")
    await played.settle()
    played.clock.advance(7)
    await played.settle()
    assert played.socket.cuts == 1
    assert played.diary.ends == ["done"]


@pytest.mark.parametrize("error", [ConnectionError("broken pipe"), RuntimeError("after close")])
async def test_a_socket_that_breaks_ends_the_link(error: Exception) -> None:
    played = Played()
    await played.settle()
    played.socket.broken = error
    played.say()
    await played.settle()
    assert played.diary.ends == [str(error)]


async def test_text_is_not_spoken_here() -> None:
    played = Played()
    played.link.message("hello")
    await played.settle()
    assert played.link.closed is not None
    assert played.link.closed.reason == "the hop protocol speaks in binary messages"
    assert played.socket.hung_up


async def test_a_closed_link_finds_no_more_fault() -> None:
    played = Played()
    played.link.close(CloseCode.BYE, "done")
    played.link.fail(OutOfOrder("impossible"))
    assert played.link.closed is not None
    assert played.link.closed.reason == "done"
