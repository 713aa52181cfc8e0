"""Requests that go to their door as a whole, and those that go by ASGI, on one connection."""

from __future__ import annotations

import pytest

from lasthop.access.direct import Response
from lasthop.runtime.direct import MAX_BODY
from lasthop.runtime.safe_headers import SAFE
from tests.runtime.wires import ANSWER, KEEP_ALIVE, Connection, post


@pytest.fixture
async def connection() -> Connection:
    return Connection()


@pytest.mark.parametrize("pieces", [0, 1, 7])
async def test_a_post_is_taken_as_a_whole_and_answered_by_one_write(
    connection: Connection, pieces: int
) -> None:
    connection.send(post(b"hello", "X-App: a"), pieces)
    ((request, respond),) = connection.taken
    assert request.body == b"hello"
    assert request.headers == {b"host": b"x", b"content-length": b"5", b"x-app": b"a"}
    assert (request.peer, request.certificate) == ("192.0.2.1", None)
    respond(Response(202, b"text/plain", b"taken", ((b"retry-after", b"1"),)))
    (written,) = connection.wire.written
    assert written == (
        b"HTTP/1.1 202 Accepted\r\ndate: today\r\n"
        + b"".join(b"%b: %b\r\n" % field for field in SAFE)
        + b"content-type: text/plain\r\ncontent-length: 5\r\nretry-after: 1\r\n\r\ntaken"
    )
    assert not connection.wire.closed


async def test_the_next_request_comes_over_the_same_connection(connection: Connection) -> None:
    for number in range(3):
        connection.send(post(b"%d" % number))
        connection.taken[-1][1](ANSWER)
    connection.send(b"GET /other HTTP/1.1\r\nHost: x\r\n\r\n")
    assert (await connection.heard()).count(b"HTTP/1.1") == 4
    connection.send(post(b"last"))
    assert [request.body for request, _ in connection.taken] == [b"0", b"1", b"2", b"last"]
    assert connection.state.total_requests == 4


@pytest.mark.parametrize(
    "request_",
    [
        post(b"x", path="/door?really"),
        post(b"x", path="/doors"),
        post(b"x", "Expect: 100-continue"),
        post(b"x" * (MAX_BODY + 1)),
        b"GET /door HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n",
        b"PUT /door HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\nx",
        b"POST /door HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n",
        b"POST /door HTTP/1.1\r\nHost: x\r\n\r\n",
        post(b"x", version="1.0"),
    ],
)
async def test_what_is_out_of_the_ordinary_goes_to_the_application(
    connection: Connection, request_: bytes
) -> None:
    connection.send(request_)
    heard = await connection.heard()
    assert connection.taken == []
    assert b"HTTP/1.1 200 OK" in heard
    assert b"b'host': b'x'" in heard


async def test_a_large_body_is_there_to_the_last_byte(connection: Connection) -> None:
    connection.send(post(b"x" * MAX_BODY), 1000)
    assert len(connection.taken[0][0].body) == MAX_BODY


async def test_requests_that_come_too_early_are_answered_in_turn(connection: Connection) -> None:
    connection.send(post(b"first") + post(b"second!") + post(b"third"))
    assert [request.body for request, _ in connection.taken] == [b"first"]
    assert await connection.heard() == b""
    connection.taken[0][1](ANSWER)
    heard = await connection.heard()
    assert heard.index(b"taken") < heard.index(b"POST /door 7") < heard.index(b"POST /door 5")
    connection.send(post(b"fourth"))
    assert len(connection.taken) == 2


async def test_nothing_is_said_to_who_has_left(connection: Connection) -> None:
    connection.send(post(b"hello"))
    connection.protocol.connection_lost(None)
    connection.taken[0][1](ANSWER)
    assert connection.wire.written == []


async def test_nothing_is_said_on_a_connection_that_is_being_closed(connection: Connection) -> None:
    connection.send(post(b"hello"))
    connection.wire.close()
    connection.taken[0][1](ANSWER)
    assert connection.wire.written == []


async def test_who_does_not_read_answers_is_not_given_more(connection: Connection) -> None:
    connection.send(post(b"first"))
    connection.taken[0][1](ANSWER)
    connection.protocol.pause_writing()
    connection.wire.written.clear()
    for _ in range(3):
        connection.send(post(b"more"))
    assert await connection.heard() == b""
    connection.protocol.resume_writing()
    assert (await connection.heard()).count(b"POST /door 4") == 3
    connection.send(post(b"last"))
    assert len(connection.taken) == 2


async def test_who_wants_no_more_is_let_go(connection: Connection) -> None:
    connection.send(post(b"hello", "Connection: close"))
    connection.taken[0][1](ANSWER)
    assert b"connection: close\r\n" in await connection.heard()
    assert connection.wire.closed


async def test_a_door_can_end_the_connection(connection: Connection) -> None:
    connection.send(post(b"hello"))
    close = (b"connection", b"close")
    connection.taken[0][1](Response(202, b"text/plain", b"", (close,)))
    assert (await connection.heard()).count(b"connection: close\r\n") == 1
    assert connection.wire.closed


async def test_a_shutdown_waits_for_the_answer(connection: Connection) -> None:
    connection.send(post(b"hello"))
    connection.protocol.shutdown()
    assert not connection.wire.closed
    connection.taken[0][1](ANSWER)
    assert b"connection: close\r\n" in await connection.heard()
    assert connection.wire.closed


async def test_a_shutdown_ends_a_connection_that_is_idle(connection: Connection) -> None:
    connection.send(post(b"hello"))
    connection.taken[0][1](ANSWER)
    connection.protocol.shutdown()
    assert connection.wire.closed


async def test_an_idle_connection_ends_after_its_time(connection: Connection) -> None:
    for _ in range(3):
        connection.send(post(b"hello"))
        connection.taken[-1][1](ANSWER)
        connection.time.pass_by(KEEP_ALIVE - 1)
        assert not connection.wire.closed
    assert len(connection.time.alarms) == 1
    connection.time.pass_by(1)
    assert connection.wire.closed


async def test_the_first_bytes_of_a_request_keep_a_connection(connection: Connection) -> None:
    connection.send(post(b"hello"))
    connection.taken[-1][1](ANSWER)
    connection.time.pass_by(KEEP_ALIVE - 1)
    connection.send(post(b"again")[:-1])
    connection.time.pass_by(2)
    assert not connection.wire.closed
    connection.send(b"n")
    assert len(connection.taken) == 2


async def test_a_slow_answer_is_waited_for(connection: Connection) -> None:
    connection.send(post(b"hello"))
    connection.taken[-1][1](ANSWER)
    connection.send(post(b"slow"))
    connection.time.pass_by(10 * KEEP_ALIVE)
    assert not connection.wire.closed
    connection.taken[-1][1](ANSWER)
    connection.time.pass_by(KEEP_ALIVE)
    assert connection.wire.closed


async def test_no_timer_is_left_of_a_connection(connection: Connection) -> None:
    connection.send(post(b"hello"))
    connection.taken[-1][1](ANSWER)
    connection.protocol.connection_lost(None)
    assert connection.time.alarms == []


async def test_what_is_no_http_is_refused(connection: Connection) -> None:
    connection.send(post(b"hello"))
    connection.taken[-1][1](ANSWER)
    await connection.heard()
    connection.send(b"what is this\r\n\r\n")
    assert b"400 Bad Request" in await connection.heard()
    assert connection.wire.is_over()
