"""Devices by HTTP requests: what the door says to requests that are not as they should be. How
channels behave is the conformance suite's business."""

from __future__ import annotations

import asyncio

import httpx
import pytest

from lasthop.clock import SECOND
from lasthop.delivery.http import HttpListener, RequestLink
from lasthop.wire.hop.bundling import units
from lasthop.wire.hop.encoder import Encoder
from lasthop.wire.hop.frames import CloseCode, Credit, Frame, Hello, MessageFrame, Ping
from lasthop.wire.hop.mapping import Mapping
from lasthop.wire.requests.answering import SHORTEST_IDLE
from lasthop.wire.requests.bodies import CONTENT_TYPE, UnitsToSend, unpack
from tests.delivery.board import Board, until
from tests.transport.hand import HandClock

HELLO = Hello(app="shop", device="phone")


def body(*frames: Frame) -> bytes:
    packing = units(Encoder(Mapping.UNORDERED), Mapping.UNORDERED, bundled=False)
    for frame in frames:
        packing.add(frame)
    outgoing = UnitsToSend()
    outgoing.add(packing.take())
    return outgoing.pack()


class House:
    """A listener, and a client that has opened nothing yet."""

    def __init__(self, *, max_connections: int = 10) -> None:
        self.board = Board()
        self.clock = HandClock()
        self.listener = HttpListener(
            self.board, clock=self.clock, max_connections=max_connections, max_frame=100_000
        )
        self.listener._ends.alarms._call_later = self.clock.call_later
        transport = httpx.ASGITransport(self.listener, client=("127.0.0.1", 5))
        self.client = httpx.AsyncClient(transport=transport, base_url="http://localhost")

    async def post(self, path: str, content: bytes = b"") -> httpx.Response:
        return await self.client.post(path, content=content)

    async def open(self) -> str:
        answer = await self.post("/hop", body(HELLO))
        assert answer.status_code == 201
        return answer.headers["location"]


async def test_a_connection_has_a_url_of_its_own_and_the_welcome_comes_with_it() -> None:
    house = House()
    answers = [await house.post("/hop", body(HELLO)) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [201, 201]
    places = [answer.headers["location"] for answer in answers]
    assert len(set(places)) == 2
    assert all(place.startswith("/hop/") and len(place) >= 5 + 22 for place in places)
    assert [unpack(answer.content)[0][0] for answer in answers] == [0x41, 0x41]
    assert answers[0].headers["content-type"] == CONTENT_TYPE
    assert answers[0].headers["cache-control"] == "no-store"
    assert house.board.channels[0].local


async def test_a_request_waits_until_there_is_something_to_say() -> None:
    house = House()
    place = await house.open()
    waiting = asyncio.ensure_future(house.post(f"{place}/1?seen=1&wait=30"))
    await until(lambda: bool(link(house)._waiting))
    house.board.channels[0].send([MessageFrame(0, 5, None, None, b"hi")])
    answer = await waiting
    assert answer.status_code == 200
    assert unpack(answer.content)[0].endswith(b"hi")


async def test_a_request_waits_no_longer_than_it_may() -> None:
    house = House()
    place = await house.open()
    waiting = asyncio.ensure_future(house.post(f"{place}/1?seen=1&wait=30"))
    await until(lambda: bool(link(house)._waiting))
    house.clock.advance(31)
    assert (await waiting).content == b""


async def test_a_device_that_asks_nothing_any_more_is_let_go() -> None:
    house = House()
    place = await house.open()
    house.clock.advance(SHORTEST_IDLE // SECOND + 1)
    assert house.board.ends == [(1, "no request came for too long")]
    assert (await house.post(f"{place}/1?seen=1")).status_code == 404


async def test_one_that_polls_is_waited_for_as_long_as_it_said() -> None:
    house = House()
    answer = await house.post("/hop?poll=60", body(HELLO))
    house.clock.advance(140)
    assert house.board.ends == []
    answer = await house.post(f"{answer.headers['location']}/1?seen=1", body(Ping()))
    assert unpack(answer.content) == [b"\x02"], "the answer to a ping comes with the poll"
    house.clock.advance(151)
    assert house.board.ends == [(1, "no request came for too long")]


async def test_a_request_that_comes_again_takes_the_place_of_the_first() -> None:
    house = House()
    place = await house.open()
    first = asyncio.ensure_future(house.post(f"{place}/1?seen=1&wait=30", body(Ping())))
    assert unpack((await first).content) == [b"\x02"]
    again = await house.post(f"{place}/1?seen=1&wait=30", body(Ping()))
    assert unpack(again.content) == [b"\x02"], "the same answer, and the ping was heard once"
    second = asyncio.ensure_future(house.post(f"{place}/2?seen=2&wait=30"))
    await until(lambda: bool(link(house)._waiting))
    third = asyncio.ensure_future(house.post(f"{place}/2?seen=2&wait=30"))
    refused = await second
    assert (refused.status_code, refused.text) == (409, "the same request came again (number=2)\n")
    house.clock.advance(31)
    assert (await third).status_code == 200


@pytest.mark.parametrize(
    "path, content, status, text",
    [
        ("/hop/guessed/1?seen=1", b"", 404, "there is no such connection; open a new one\n"),
        ("{place}/one?seen=1", b"", 400, "number must be a whole number (number='one')\n"),
        ("{place}?seen=1", b"", 400, "number must be a whole number (number='')\n"),
        ("{place}/1", b"", 400, "seen must be a whole number (seen='')\n"),
        ("{place}/1?seen=-1", b"", 400, "seen must be a whole number (seen='-1')\n"),
        ("{place}/99?seen=1", b"", 400, "too many requests are open (number=99, seen=1)\n"),
        (
            "{place}/1?seen=1&wait=long",
            b"",
            400,
            "wait must be a number of seconds, at most a day (wait='long')\n",
        ),
        (
            "/hop?poll=nan",
            b"",
            400,
            "poll must be a number of seconds, at most a day (poll='nan')\n",
        ),
        ("{place}/1?seen=1", b"\x05abc", 400, "a body ends inside a unit\n"),
        ("{place}/1?seen=1", bytes(100_015), 413, "the body is too large (most=100014)\n"),
        ("/hop", bytes(20_000), 413, "the body is too large (most=16398)\n"),
        ("{place}/1?" + "&".join("abcdefghij"), b"", 400, "the query is not understood\n"),
    ],
)
async def test_a_bad_request_gets_a_clear_answer(
    path: str, content: bytes, status: int, text: str
) -> None:
    house = House()
    place = await house.open()
    answer = await house.post(path.format(place=place), content)
    assert (answer.status_code, answer.text) == (status, text)
    assert house.listener.errors.total() == 1
    assert house.board.ends == []


async def test_only_post_is_understood() -> None:
    house = House()
    answer = await house.client.get("/hop")
    assert (answer.status_code, answer.headers["allow"]) == (405, "POST")


async def test_too_many_requests_are_told_when_to_come_back() -> None:
    house = House()
    place = await house.open()
    answers = [await house.post(f"{place}/{n}?seen={n}") for n in range(1, 500)]
    refused = [answer for answer in answers if answer.status_code != 200]
    assert 50 < len(refused) < 400
    assert {(a.status_code, a.headers["retry-after"]) for a in refused} == {(429, "1")}


async def test_one_connection_too_many_is_told_so_by_a_close() -> None:
    house = House(max_connections=1)
    await house.open()
    answer = await house.post("/hop", body(HELLO))
    (close,) = unpack(answer.content)
    assert (close[0], close[1]) == (0x42, CloseCode.OVERLOADED)
    assert (await house.post(f"{answer.headers['location']}/1?seen=1")).status_code == 404


async def test_the_last_word_waits_for_a_request_for_a_while() -> None:
    house = House()
    places = [await house.open() for _ in range(2)]
    await house.listener.stop()
    answer = await house.post(f"{places[0]}/1?seen=1")
    assert unpack(answer.content)[0][:2] == bytes((0x42, CloseCode.SHUTTING_DOWN))
    assert [number for number, _ in house.board.ends] == [1]


async def test_a_window_that_was_overtaken_is_not_believed() -> None:
    house = House()
    place = await house.open()
    await house.post(f"{place}/2?seen=1", body(Credit(7, 70)))
    await house.post(f"{place}/1?seen=1", body(Credit(0, 0)))
    assert [frame for _, frame in house.board.frames[1:]] == [Credit(7, 70)]


async def test_a_page_from_elsewhere_is_not_from_this_machine() -> None:
    house = House()
    headers = {"origin": "https://elsewhere.example"}
    await house.client.post("/hop", content=body(HELLO), headers=headers)
    assert not house.board.channels[0].local


async def test_a_device_that_hangs_up_while_it_waits_is_told_the_rest_when_it_comes_back() -> None:
    house = House()
    place = await house.open()
    leaving = asyncio.Event()

    async def receive() -> dict[str, object]:
        if not leaving.is_set():
            leaving.set()
            return {"type": "http.request", "body": b""}
        return {"type": "http.disconnect"}

    async def send(event: object) -> None:
        raise AssertionError(event)

    scope = {
        "type": "http",
        "method": "POST",
        "path": f"{place}/1",
        "query_string": b"seen=1&wait=30",
        "headers": [],
    }
    await house.listener(scope, receive, send)
    house.board.channels[0].send([MessageFrame(0, 5, None, None, b"hi")])
    answer = await house.post(f"{place}/1?seen=1&wait=30")
    assert unpack(answer.content)[0].endswith(b"hi")


def link(house: House) -> RequestLink:
    found = house.board.channels[-1]
    assert isinstance(found, RequestLink)
    return found
