"""OTA-HTTP on real sockets: connections either way, registration, outcomes."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

import msgspec
import pytest

from lasthop.decision.routes import Route, Variant
from lasthop.delivery.carrier import (
    Aborted,
    Confirmed,
    NeedsMore,
    NotReached,
    Outcome,
    Parcel,
    ReturnedContent,
    Sent,
    Spent,
    Unanswered,
    Unfit,
)
from lasthop.delivery.ota import http_client as ota_http
from lasthop.delivery.ota.http import HttpCarrier
from tests.delivery.ota.http_phone import Phone, Request, accepted, registered
from tests.delivery.ota.test_unit import StoppedClock

pytestmark = pytest.mark.anyio


class Sender:
    """A carrier, and the outcomes of what it was given."""

    def __init__(self, carrier: HttpCarrier, port: int) -> None:
        self.carrier = carrier
        self.port = port
        self.spent: dict[bytes, Spent | None] = {}

    def start(self, body: bytes = b"hi", **fields: Any) -> asyncio.Future[Outcome]:
        future: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        route = Route(Variant.HTTP, f"127.0.0.1:{self.port}")
        fields = {"content_type": "text/plain", "headers": (), "confirmed": True, **fields}
        self.carrier.carry(
            Parcel(route=route, body=body, **fields), partial(self._reported, future, body)
        )
        return future

    def _reported(self, future: asyncio.Future[Outcome], body: bytes, outcome: Outcome) -> None:
        """Most tests are about the meaning of an outcome, and not about what it cost."""
        self.spent[body] = outcome.spent
        future.set_result(msgspec.structs.replace(outcome, spent=None))

    async def send(self, body: bytes = b"hi", **fields: Any) -> Outcome:
        async with asyncio.timeout(10):
            return await self.start(body, **fields)


@pytest.fixture
async def phone() -> AsyncIterator[Phone]:
    phone = Phone()
    await phone.listen()
    yield phone
    phone.close()


@pytest.fixture
async def sender(phone: Phone) -> AsyncIterator[Sender]:
    carrier = HttpCarrier(clock=StoppedClock(100))
    yield Sender(carrier, phone.port)
    carrier.close()
    await asyncio.sleep(0)


@pytest.mark.conformance("PPG-GEN-S-011")
async def test_a_push_is_posted_after_registration(phone: Phone, sender: Sender) -> None:
    assert await sender.send(b"one") == Confirmed()
    assert await sender.send(b"two") == Confirmed()
    assert [request.method for request in phone.requests] == ["OPTIONS", "POST", "POST"]
    headers, content = phone.posts[0].pushed
    assert phone.posts[0].path == "/wappush"
    assert phone.posts[0].headers["x-wap-push-ota-version"] == "1.0"
    assert headers["x-wap-application-id"] == "2"
    assert content == b"one"
    assert "x-wap-push-info" not in phone.posts[0].headers


async def test_what_was_written_is_counted_in_the_next_outcome(
    phone: Phone, sender: Sender
) -> None:
    written = 0
    write = ota_http.Connection.write

    def counted(self: ota_http.Connection, data: bytes) -> None:
        nonlocal written
        written += len(data)
        write(self, data)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ota_http.Connection, "write", counted)
        await sender.send(b"one")
        assert sender.spent[b"one"] == Spent(written, 1), "with the registration"
        before = written
        await sender.send(b"two")
        assert sender.spent[b"two"] == Spent(written - before, 1)


async def test_nothing_leaves_that_needs_more_than_was_reserved(
    phone: Phone, sender: Sender
) -> None:
    outcome = await sender.send(b"x" * 500, most=Spent(600, 1))
    assert isinstance(outcome, NeedsMore)
    assert phone.posts == []
    assert await sender.send(b"x" * 500, most=outcome.needed) == Confirmed()


async def test_many_go_over_one_connection_in_order(phone: Phone, sender: Sender) -> None:
    outcomes = await asyncio.gather(*[sender.start(b"%d" % n) for n in range(50)])
    assert outcomes == [Confirmed()] * 50
    assert [post.pushed[1] for post in phone.posts] == [b"%d" % n for n in range(50)]
    assert len(phone._transports) == 1


async def test_a_push_that_waits_for_its_turn_is_withdrawn(phone: Phone, sender: Sender) -> None:
    futures = {n: sender.start(b"%d" % n, number=n) for n in (1, 2, 3)}
    assert sender.carrier.withdraw(2), "nothing is connected yet"
    assert not sender.carrier.withdraw(2)
    assert list(await asyncio.gather(futures[1], futures[3])) == [Confirmed()] * 2
    assert [post.pushed[1] for post in phone.posts] == [b"1", b"3"]
    assert not futures[2].done()
    assert not sender.carrier.withdraw(1), "it was confirmed"


async def test_a_push_that_was_posted_is_not_withdrawn(phone: Phone, sender: Sender) -> None:
    refused: list[bool] = []

    def answer(request: Request) -> bytes:
        if request.method == "OPTIONS":
            return registered()
        refused.append(sender.carrier.withdraw(1))
        return accepted(request)

    phone.answer = answer
    assert await sender.send(number=1) == Confirmed()
    assert refused == [False]


async def test_a_push_that_its_client_calls_stale_has_left(phone: Phone, sender: Sender) -> None:
    stale = b"HTTP/1.1 204 No Content\r\nX-Wap-Push-Status: 256\r\nX-Wap-CPITag: a\r\n\r\n"
    posts, withdrawn = 0, list[bool]()

    def answer(request: Request) -> bytes:
        nonlocal posts
        if request.method == "OPTIONS":
            withdrawn.append(sender.carrier.withdraw(1) if posts else False)
            return registered()
        posts += 1
        return stale if posts == 1 else accepted(request)

    phone.answer = answer
    assert await sender.send(number=1) == Confirmed()
    assert (posts, withdrawn) == (2, [False, False])


async def test_content_comes_back_when_it_is_welcome(phone: Phone, sender: Sender) -> None:
    def answer(request: Request) -> bytes:
        if request.method == "OPTIONS":
            return registered()
        assert request.headers["x-wap-push-info"] == "response"
        return (
            b"HTTP/1.1 200 OK\r\nX-Wap-Push-Status: 400\r\nContent-Type: text/plain\r\n"
            b"Content-Length: 3\r\n\r\nyes"
        )

    phone.answer = answer
    assert await sender.send(response=True) == Confirmed(ReturnedContent("text/plain", b"yes"))


@pytest.mark.conformance("PPG-GEN-S-013")
@pytest.mark.parametrize(
    "answer, outcome",
    [
        (b"HTTP/1.1 204 No Content\r\nX-Wap-Push-Status: 237\r\n\r\n", Aborted(0xED)),
        (b"HTTP/1.1 204 No Content\r\nX-Wap-Push-Status: 256\r\n\r\n", Aborted(0xEA)),
        (b"HTTP/1.1 413 No\r\nContent-Length: 0\r\n\r\n", Unfit(3006, "the client answered 413")),
        (b"HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n", NotReached("the client answered 500")),
        (b"garbage\r\n\r\n", Unanswered("the connection was lost")),
    ],
)
async def test_each_answer_has_its_outcome(
    phone: Phone, sender: Sender, answer: bytes, outcome: Outcome
) -> None:
    phone.answer = lambda request: registered() if request.method == "OPTIONS" else answer
    assert await sender.send() == outcome


@pytest.mark.conformance("PPG-GEN-S-012")
async def test_an_unconfirmed_push_is_sent_whatever_the_client_says(
    phone: Phone, sender: Sender
) -> None:
    refusal = b"HTTP/1.1 204 No Content\r\nX-Wap-Push-Status: 235\r\n\r\n"
    phone.answer = lambda request: registered() if request.method == "OPTIONS" else refusal
    assert await sender.send(confirmed=False) == Sent()
    assert await sender.send() == Aborted(0xEB)


@pytest.mark.conformance("PPG-GEN-S-019", "PPG-GEN-S-023")
async def test_capabilities_shape_the_push(phone: Phone, sender: Sender) -> None:
    phone.answer = lambda request: (
        registered(
            "X-Wap-CPITag: a1",
            "X-Wap-Push-Accept: application/vnd.wap.sic, text/plain",
            "X-Wap-Push-Accept-Encoding: deflate",
            "X-Wap-Push-Accept-AppID: wml.ua",
            "X-Wap-Push-MsgSize: 500",
        )
        if request.method == "OPTIONS"
        else accepted(request)
    )
    si = b'<si><indication href="http://a.example/">x</indication></si>'
    assert await sender.send(si, content_type="text/vnd.wap.si") == Confirmed()
    assert phone.posts[0].pushed[0]["content-type"] == "application/vnd.wap.sic"
    assert phone.posts[0].headers["x-wap-cpitag"] == "a1"
    assert await sender.send(b"a" * 2000) == Confirmed()
    headers, content = phone.posts[1].pushed
    assert headers["content-encoding"] == "deflate"
    assert zlib.decompress(content) == b"a" * 2000
    unfit = await sender.send(bytes(range(256)) * 3, headers=(("Cache-Control", "no-transform"),))
    assert isinstance(unfit, Unfit)
    assert unfit.code == 3006
    unfit = await sender.send(headers=(("X-Wap-Application-Id", "mms.ua"),))
    assert isinstance(unfit, Unfit)
    assert unfit.code == 2006


async def test_a_stale_tag_is_refreshed_and_the_push_sent_again(
    phone: Phone, sender: Sender
) -> None:
    tag = "a1"

    def answer(request: Request) -> bytes:
        if request.method == "OPTIONS":
            return registered(f"X-Wap-CPITag: {tag}")
        if request.headers.get("x-wap-cpitag") != tag:
            head = "HTTP/1.1 204 No Content\r\nX-Wap-Push-Status: 256\r\n"
            return f"{head}X-Wap-CPITag: {tag}\r\n\r\n".encode()
        return accepted(request)

    phone.answer = answer
    assert await sender.send(b"one") == Confirmed()
    tag = "b2"
    assert await sender.send(b"two") == Confirmed()
    tags = [post.headers["x-wap-cpitag"] for post in phone.posts]
    assert tags == ["a1", "a1", "b2"]


async def test_a_client_that_is_never_content_with_its_tag_is_refused(
    phone: Phone, sender: Sender
) -> None:
    stale = b"HTTP/1.1 204 No Content\r\nX-Wap-Push-Status: 256\r\nX-Wap-CPITag: z\r\n\r\n"
    phone.answer = lambda request: registered() if request.method == "OPTIONS" else stale
    assert await sender.send() == Aborted(0)
    assert len(phone.posts) == 3


async def test_an_unchanged_client_keeps_its_capabilities(phone: Phone, sender: Sender) -> None:
    phone.answer = lambda request: (
        registered("X-Wap-CPITag: a1", "X-Wap-Push-MsgSize: 5")
        if "x-wap-cpitag" not in request.headers
        else registered(status=500)
        if request.method == "OPTIONS"
        else accepted(request)
    )
    assert await sender.send(b"one") == Confirmed()
    phone.hang_up()
    assert await sender.send(b"two") in (Confirmed(), Unanswered("the connection was lost"))
    assert isinstance(await sender.send(b"too long"), Unfit)


@pytest.mark.conformance("PPG-GEN-S-009")
async def test_a_client_that_does_not_register_is_not_pushed_to(
    phone: Phone, sender: Sender
) -> None:
    phone.answer = lambda request: b"HTTP/1.1 405 No\r\nContent-Length: 0\r\n\r\n"
    outcome = await sender.send()
    assert outcome == NotReached("the client did not register: it answered 405")
    phone.answer = lambda request: b"nonsense"
    assert await sender.send() == NotReached("the client did not register")
    assert phone.posts == []


async def test_a_client_that_closes_after_each_answer_is_served(
    phone: Phone, sender: Sender
) -> None:
    def answer(request: Request) -> bytes:
        return accepted(request).replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")

    phone.answer = answer
    outcomes = await asyncio.gather(*[sender.start(b"%d" % n) for n in range(5)])
    assert outcomes == [Confirmed()] * 5
    methods = [request.method for request in phone.requests]
    assert methods == ["OPTIONS"] + ["POST"] * 5


async def test_a_connection_lost_in_mid_push_leaves_it_unanswered(
    phone: Phone, sender: Sender
) -> None:
    phone.answer = lambda request: registered() if request.method == "OPTIONS" else None
    under_way, waiting = sender.start(b"one"), sender.start(b"two")
    await phone.wait_for(2)
    phone.answer = accepted
    phone.hang_up()
    async with asyncio.timeout(10):
        assert await under_way == Unanswered("the connection was lost")
        assert await waiting == Confirmed()


async def test_silence_is_no_answer(
    phone: Phone, sender: Sender, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ota_http, "ANSWER", 0.05)
    phone.answer = lambda request: registered() if request.method == "OPTIONS" else None
    assert await sender.send() == Unanswered("the connection was lost")


async def test_nobody_there(sender: Sender, phone: Phone) -> None:
    phone.close()
    await asyncio.sleep(0)
    outcome = await sender.send()
    assert isinstance(outcome, NotReached)
    assert outcome.reason.startswith("the client cannot be connected to")


async def test_what_is_too_late_is_not_posted(phone: Phone, sender: Sender) -> None:
    assert await sender.send(deliver_before=100) == NotReached("deliver_before has passed")
    assert phone.posts == []


class TestTheClientConnects:
    async def test_its_connection_is_used(self) -> None:
        carrier = HttpCarrier(clock=StoppedClock())
        loop = asyncio.get_running_loop()
        called = asyncio.Event()

        def accept() -> asyncio.Protocol:
            loop.call_soon(called.set)
            return carrier.accept()

        server = await loop.create_server(accept, "127.0.0.1", 0)
        phone = Phone()
        await phone.call("127.0.0.1", server.sockets[0].getsockname()[1])
        # Nobody listens at the route's own port: what arrives came by the phone's connection.
        sender = Sender(carrier, 1)
        async with asyncio.timeout(10):
            await called.wait()
        assert await sender.send(b"one") == Confirmed()
        assert [request.method for request in phone.requests] == ["OPTIONS", "POST"]
        phone.close()
        carrier.close()
        server.close()
        await asyncio.sleep(0)

    async def test_it_is_asked_to(self) -> None:
        loop = asyncio.get_running_loop()
        invited = asyncio.Event()
        carrier = HttpCarrier(clock=StoppedClock(), invite=lambda host: invited.set())
        server = await loop.create_server(carrier.accept, "127.0.0.1", 0)
        phone = Phone()
        sender = Sender(carrier, 1)
        outcome = sender.start()
        async with asyncio.timeout(10):
            await invited.wait()
            await phone.call("127.0.0.1", server.sockets[0].getsockname()[1])
            assert await outcome == Confirmed()
        phone.close()
        carrier.close()
        server.close()
        await asyncio.sleep(0)

    async def test_it_never_does(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(ota_http, "INVITED", 0.05)
        carrier = HttpCarrier(clock=StoppedClock(), invite=lambda host: None)
        outcome = await Sender(carrier, 1).send()
        assert outcome == NotReached("the client did not connect when it was asked to")
        carrier.close()
