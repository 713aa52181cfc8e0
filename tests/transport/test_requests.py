"""A device's link over HTTP requests, with a server that a test plays."""

from __future__ import annotations

import asyncio

import pytest

from lasthop.transport import requests
from lasthop.transport.http import HttpAnswer
from lasthop.transport.keepalive import HttpServer
from lasthop.transport.requests import RequestsLink
from lasthop.wire.hop.bundling import units
from lasthop.wire.hop.encoder import Encoder
from lasthop.wire.hop.frames import Close, CloseCode, Frame, Hello, Welcome
from lasthop.wire.hop.handshake import Dialing
from lasthop.wire.hop.mapping import Mapping
from lasthop.wire.requests.bodies import UnitsToSend
from tests.delivery.board import until
from tests.transport.hand import Diary, HandClock, ends

HELLO = Hello(app="shop", device="phone")
WELCOME = Welcome(incarnation=b"12345678", epoch=1, heartbeat=100)
GONE = HttpAnswer(404, (), b"there is no such connection; open a new one\n")


class PlayedServer(HttpServer):
    """Answers when a test says so."""

    def __init__(self) -> None:
        super().__init__("gateway", 80, tls=None, limit=100_000)
        self.packing = units(Encoder(Mapping.UNORDERED), Mapping.UNORDERED, bundled=False)
        self.asked: dict[int, asyncio.Future[HttpAnswer]] = {}

    def body(self, *frames: Frame) -> bytes:
        for frame in frames:
            self.packing.add(frame)
        outgoing = UnitsToSend()
        outgoing.add(self.packing.take())
        return outgoing.pack()

    async def post(self, target: str, kind: str, body: bytes) -> HttpAnswer:
        if target == "/hop":
            return HttpAnswer(201, (("location", "/hop/secret"),), self.body(WELCOME))
        number = int(target.rpartition("/")[2].partition("?")[0])
        answer: asyncio.Future[HttpAnswer] = asyncio.get_running_loop().create_future()
        self.asked[number] = answer
        return await answer


async def waiting() -> tuple[PlayedServer, RequestsLink, Diary]:
    """A link with two requests that wait at the server."""
    server, diary, clock = PlayedServer(), Diary(), HandClock()
    machine = Dialing(HELLO, mapping=Mapping.UNORDERED, now=clock.now())
    link = RequestsLink(ends(diary, clock), machine, server, every=None)
    await link.open("/hop")
    await until(lambda: len(server.asked) == 2)
    return server, link, diary


async def test_the_last_word_counts_even_when_a_refusal_overtakes_it() -> None:
    server, link, diary = await waiting()
    server.asked[2].set_result(GONE)
    await until(lambda: bool(link._refusal))
    assert not link.over
    last = Close(CloseCode.TIMEOUT, 0, "nothing was heard for too long")
    server.asked[1].set_result(HttpAnswer(200, (), server.body(last)))
    await until(lambda: link.over)
    assert link.closed == last
    assert diary.ends == ["nothing was heard for too long"]


async def test_after_a_refusal_nothing_more_is_asked_and_the_last_answer_ends_the_link(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(requests, "LAST_WORD", 1000)
    server, link, diary = await waiting()
    server.asked[1].set_result(GONE)
    await until(lambda: bool(link._refusal))
    server.asked[2].set_result(GONE)
    await until(lambda: link.over)
    assert diary.ends == ["the server answered 404: there is no such connection; open a new one"]
    assert set(server.asked) == {1, 2}


async def test_nobody_waits_long_for_a_last_word_that_does_not_come(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(requests, "LAST_WORD", 0.01)
    server, link, diary = await waiting()
    server.asked[1].set_result(GONE)
    await until(lambda: link.over)
    assert "404" in diary.ends[0]
    await until(server.asked[2].cancelled)
