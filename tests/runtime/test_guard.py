"""Strangers that send without end, or not at all, or come in crowds; and those who are merely
slow."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from lasthop.runtime.guard import LAST_BYTES, MAX_WAITING, PIECE, ROOM
from lasthop.runtime.heads import MAX_FIELDS, MAX_HEAD, MAX_TARGET
from lasthop.runtime.upgraded import UpgradedProtocol
from tests.runtime.wires import ANSWER, KEEP_ALIVE, PEER, Connection, post

START = b"GET /other HTTP/1.1\r\nHost: x\r\n"
UPGRADE = b"GET /hop HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
CHUNKED = b"POST /other HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
STARTS = [START, UPGRADE, post(b"x")[:-3]]


@pytest.fixture
async def connection() -> Connection:
    return Connection()


async def refused(connection: Connection, status: str) -> str:
    """Why a connection was closed with this status, in the door's shape."""
    heard = await connection.heard()
    assert heard.startswith(f"HTTP/1.1 {status} ".encode()), heard
    head, _, body = heard.partition(b"\r\n\r\n")
    assert b"connection: close" in head
    assert b"content-type: application/json" in head
    assert b"content-length: %d" % len(body) in head
    assert connection.wire.is_over()
    return str(json.loads(body)["error"]["detail"])


def without_end(connection: Connection, start: bytes, more: bytes) -> int:
    """Send `more` again and again, as much at once as a loop reads; returns how many bytes were
    sent until the connection was closed."""
    connection.send(start)
    at_once = more * (256_000 // len(more))
    for number in range(10):
        connection.send(at_once)
        if connection.wire.is_over():
            return len(start) + (number + 1) * len(at_once)
    raise AssertionError("it went on and on")


# Another protocol.

H2C = ("Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABk")
"""What Java's HTTP client sends with its first request, body or not."""


@pytest.mark.parametrize("pieces", [0, 1, 7, 100])
async def test_a_request_that_offers_another_protocol_is_read_as_if_it_did_not(
    connection: Connection, pieces: int
) -> None:
    body = b"GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n"
    connection.send(post(body, *H2C) + post(b"", *H2C) + post(b"next"), pieces)
    heard = await connection.heard()
    assert b"POST /door %d " % len(body) in heard
    assert b"POST /door 0 " in heard
    assert b"POST /door 4 " in heard
    assert b"smuggled" not in heard
    assert connection.guard.refused == {}


async def test_half_a_body_beside_another_protocol_is_waited_for(connection: Connection) -> None:
    connection.send(post(b"hello", *H2C)[:-2])
    assert await connection.heard() == b""
    connection.send(b"lo")
    assert b"POST /door 5 " in await connection.heard()


@pytest.mark.parametrize("pieces", [0, 9])
async def test_chunks_beside_another_protocol_are_refused(
    connection: Connection, pieces: int
) -> None:
    connection.send(CHUNKED[:-2] + "\r\n".join([*H2C, "", "5"]).encode() + b"\r\nhello", pieces)
    reason = "a request that asks for another protocol needs a Content-Length for its body"
    assert await refused(connection, "400") == reason


async def test_frames_before_the_handshake_is_answered_end_the_connection(
    connection: Connection,
) -> None:
    key = b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    connection.send(UPGRADE + key)
    upgraded = connection.wire.get_protocol()
    assert isinstance(upgraded, UpgradedProtocol)
    upgraded.data_received(b"no frame at all")
    reason = "this is not a WebSocket handshake, or too much came with it"
    assert await refused(connection, "400") == reason
    upgraded.connection_lost(None)


@pytest.mark.parametrize("proxies", [(), (PEER,)])
async def test_a_handshake_with_a_body_is_refused(proxies: tuple[str, ...]) -> None:
    connection = Connection(proxies=proxies)
    connection.send(UPGRADE + b"Content-Length: 5\r\n\r\nhello")
    assert await refused(connection, "400") == "a WebSocket handshake has no body"


@pytest.mark.parametrize("proxies", [(), (PEER,)])
async def test_a_handshake_that_is_none_is_refused(proxies: tuple[str, ...]) -> None:
    connection = Connection(proxies=proxies)
    connection.send(UPGRADE + b"Cookie: %b\r\n\r\n" % bytes(9000).replace(b"\0", b"x"))
    reason = "this is not a WebSocket handshake, or too much came with it"
    assert await refused(connection, "400") == reason


# How much.


@pytest.mark.parametrize("start", STARTS)
async def test_headers_without_end_are_refused_while_they_come(
    connection: Connection, start: bytes
) -> None:
    assert without_end(connection, start, b"a:b\r\n") < 300_000
    assert len(connection.protocol.headers) < MAX_FIELDS + PIECE // 5
    assert await refused(connection, "431") == "the request has too many headers (limit=128)"


@pytest.mark.parametrize("start", STARTS)
async def test_a_header_without_end_is_refused_while_it_comes(
    connection: Connection, start: bytes
) -> None:
    connection.send(start + b"a: ")
    came = 0
    while not connection.wire.is_over():
        connection.send(b"x" * 1000)
        came += 1000
    assert MAX_HEAD < came <= ROOM + 1000
    assert await refused(connection, "431") == "the headers are too large (limit=32768)"


async def test_a_target_without_end_is_refused_while_it_comes(connection: Connection) -> None:
    without_end(connection, b"GET /", b"x")
    assert await refused(connection, "414") == "the request target is too long (limit=16384)"
    assert len(connection.protocol.url) <= ROOM + PIECE


async def test_empty_lines_without_end_are_refused(connection: Connection) -> None:
    without_end(connection, b"", b"\r\n")
    assert await refused(connection, "431")


async def test_what_comes_after_a_refusal_is_not_looked_at(connection: Connection) -> None:
    without_end(connection, START, b"a:b\r\n")
    assert await refused(connection, "431")
    connection.send(post(b"hello"))
    assert (await connection.heard(), connection.taken) == (b"", [])
    assert connection.guard.refused == {"head_too_large": 1}


async def test_who_still_sends_hears_why_it_is_refused(connection: Connection) -> None:
    connection.send(b"GET / HTTP/1.1\r\n\r\n" + bytes(100_000))
    assert await refused(connection, "400")
    assert not connection.wire.closed
    connection.time.pass_by(1.9)
    assert not connection.wire.closed
    connection.time.pass_by(0.1)
    assert connection.wire.closed


async def test_who_sends_without_end_is_not_listened_to_for_long(connection: Connection) -> None:
    connection.send(b"GET / HTTP/1.1\r\n\r\n" + bytes(LAST_BYTES))
    assert await refused(connection, "400")
    connection.send(bytes(100_000))
    assert connection.wire.closed


@pytest.mark.parametrize("pieces", [0, 1000])
@pytest.mark.parametrize("path", ["/door", "/other"])
@pytest.mark.parametrize("beyond", [0, 1])
async def test_a_head_may_have_32_kib(
    connection: Connection, path: str, beyond: int, pieces: int
) -> None:
    counted = len(path) + len("hostx") + len("content-length1") + len("a")
    connection.send(post(b"x", "A: " + "x" * (MAX_HEAD - counted + beyond), path=path), pieces)
    if beyond:
        assert await refused(connection, "431")
    else:
        assert connection.taken or b"200 OK" in await connection.heard()


@pytest.mark.parametrize("path", ["/door", "/other"])
@pytest.mark.parametrize("beyond", [0, 1])
async def test_a_head_may_have_128_headers(connection: Connection, path: str, beyond: int) -> None:
    connection.send(post(b"x", *(f"A{n}: b" for n in range(MAX_FIELDS - 2 + beyond)), path=path))
    if beyond:
        assert await refused(connection, "431")
    else:
        assert connection.taken or b"200 OK" in await connection.heard()


@pytest.mark.parametrize("beyond", [0, 1])
async def test_a_target_may_have_16_kib(connection: Connection, beyond: int) -> None:
    target = b"/" + b"x" * (MAX_TARGET - 1 + beyond)
    connection.send(b"GET " + target + b" HTTP/1.1\r\nHost: x\r\n\r\n")
    if beyond:
        assert await refused(connection, "414")
    else:
        assert b"200 OK" in await connection.heard()


@pytest.mark.parametrize("more", [b"1;a=", b"0\r\n"], ids=["extension", "trailer"])
async def test_what_is_around_chunks_has_an_end(connection: Connection, more: bytes) -> None:
    body = b"2000\r\n" + bytes(0x2000) + b"\r\n"
    filling = b"x" if b"=" in more else b"a:b\r\n"
    assert without_end(connection, CHUNKED + body + more, filling) < 300_000
    assert await refused(connection, "431")


async def test_an_extension_for_every_byte_has_an_end(connection: Connection) -> None:
    without_end(connection, CHUNKED, b"1;" + b"a" * 1000 + b"\r\nx\r\n")
    assert await refused(connection, "431")


@pytest.mark.parametrize("pieces", [0, 1000])
async def test_small_chunks_and_signed_ones_are_fine(connection: Connection, pieces: int) -> None:
    chunks = b"1\r\nx\r\n" * 50_000
    signed = (b"400;chunk-signature=" + b"0" * 64 + b"\r\n" + bytes(1024) + b"\r\n") * 200
    connection.send(CHUNKED + chunks + signed + b"0\r\n\r\n", pieces)
    assert b"POST /other 254800 " in await connection.heard()


async def test_what_follows_the_last_chunk_is_no_header(connection: Connection) -> None:
    connection.send(CHUNKED + b"1\r\nx\r\n0\r\nAuthorization: Bearer me\r\n\r\n")
    assert b"uthorization" not in await connection.heard()


async def test_only_so_many_requests_wait_on_a_connection(connection: Connection) -> None:
    connection.send(post(b"first") + b"GET /other HTTP/1.1\r\nHost: x\r\n\r\n" * 5000)
    assert len(connection.protocol.pipeline) == MAX_WAITING
    connection.taken[0][1](ANSWER)
    heard = b""
    while not connection.wire.is_over():
        heard += await connection.heard()
    assert heard.count(b"200 OK") == MAX_WAITING
    assert b"too many requests wait on this connection" in heard[heard.rindex(b"HTTP/1.1 429") :]


async def test_a_refusal_waits_for_the_answers_before_it(connection: Connection) -> None:
    connection.send(post(b"hello") + b"what is this\r\n\r\n")
    assert await connection.heard() == b""
    connection.taken[0][1](ANSWER)
    heard = await connection.heard()
    assert heard.index(b"202 Accepted") < heard.index(b"400 Bad Request")
    assert connection.wire.is_over()


async def test_a_broken_body_is_refused_at_once(connection: Connection) -> None:
    connection.send(CHUNKED + b"no number\r\n")
    assert "not an HTTP request" in await refused(connection, "400")
    assert connection.protocol.cycle.disconnected


# Whom it is for.


@pytest.mark.parametrize(
    "start",
    [
        b"POST /door HTTP/1.1\r\nContent-Length: 0\r\n",
        b"GET /other HTTP/1.1\r\n",
        UPGRADE.replace(b"Host: x\r\n", b""),
    ],
)
@pytest.mark.parametrize(
    "hosts, why",
    [
        (b"Host: a\r\nHost: a\r\n", "the request has more than one Host header"),
        (b"Host: a\r\nX: y\r\nhost: b\r\n", "the request has more than one Host header"),
        (b"", "a request of HTTP/1.1 needs a Host header"),
        (b"Host: a b\r\n", "the Host header is not a host with an optional port"),
        (b"Host: a, b\r\n", "the Host header is not a host with an optional port"),
        (b"Host: a/b\r\n", "the Host header is not a host with an optional port"),
        (b"Host: u@a\r\n", "the Host header is not a host with an optional port"),
        (b"Host: a:b\r\n", "the Host header is not a host with an optional port"),
        (b"Host: [::1\r\n", "the Host header is not a host with an optional port"),
    ],
)
async def test_a_request_says_once_whom_it_is_for(
    connection: Connection, start: bytes, hosts: bytes, why: str
) -> None:
    connection.send(start + hosts + b"\r\n")
    assert await refused(connection, "400") == why
    assert connection.taken == []


@pytest.mark.parametrize("host", [b"a", b"a:80", b"[::1]:80", b"[fe80::1%eth0]", b"a_b.c", b""])
async def test_hosts_have_several_forms(connection: Connection, host: bytes) -> None:
    for _ in range(2):
        connection.send(b"GET /other HTTP/1.1\r\nHost: " + host + b"\r\n\r\n")
        assert b"200 OK" in await connection.heard()


async def test_the_second_request_is_looked_at_as_well(connection: Connection) -> None:
    connection.send(START + b"\r\n")
    await connection.heard()
    connection.send(b"GET /other HTTP/1.1\r\n\r\n")
    assert await refused(connection, "400")


async def test_http_1_0_needs_no_host(connection: Connection) -> None:
    connection.send(b"GET /other HTTP/1.0\r\n\r\n")
    assert b"200 OK" in await connection.heard()


@pytest.mark.parametrize("path", [b"/door", b"/other"])
@pytest.mark.parametrize(
    "lengths",
    [
        b"Content-Length: 1\r\nContent-Length: 1",
        b"Content-Length: 1\r\nContent-Length: 2",
        b"Content-Length: 1, 1",
        b"Content-Length: 1\r\nTransfer-Encoding: chunked",
        b"Transfer-Encoding: chunked\r\nContent-Length: 1",
    ],
)
async def test_a_request_has_one_length(
    connection: Connection, path: bytes, lengths: bytes
) -> None:
    connection.send(b"POST " + path + b" HTTP/1.1\r\nHost: x\r\n" + lengths + b"\r\n\r\nx")
    assert "not an HTTP request" in await refused(connection, "400")
    assert connection.taken == []


# How long.


def pass_by(connection: Connection, seconds: int, each: Callable[[], None] | None = None) -> None:
    for _ in range(seconds):
        if each is not None:
            each()
        connection.time.pass_by(1)


async def test_who_says_nothing_is_let_go(connection: Connection) -> None:
    pass_by(connection, 29)
    assert not connection.wire.is_over()
    pass_by(connection, 1)
    assert connection.wire.is_over()
    assert await connection.heard() == b""


async def test_empty_lines_are_nothing(connection: Connection) -> None:
    pass_by(connection, 30, lambda: connection.send(b"\r\n"))
    assert connection.wire.is_over()


@pytest.mark.parametrize("start", STARTS)
async def test_a_head_that_does_not_end_is_not_waited_for(
    connection: Connection, start: bytes
) -> None:
    pass_by(connection, 20)
    connection.send(start + b"a: ")
    pass_by(connection, 29, lambda: connection.send(b"x"))
    assert not connection.wire.is_over()
    pass_by(connection, 1)
    assert await refused(connection, "408") == "the headers took too long"


async def test_a_later_head_that_does_not_end_is_not_waited_for(connection: Connection) -> None:
    connection.send(post(b"hello") + b"GET /")
    pass_by(connection, 100)
    connection.taken[0][1](ANSWER)
    assert b"202 Accepted" in await connection.heard()
    pass_by(connection, 29)
    assert not connection.wire.is_over()
    pass_by(connection, 1)
    assert await refused(connection, "408")


@pytest.mark.parametrize("path", ["/door", "/other"])
async def test_a_body_that_does_not_come_is_not_waited_for(
    connection: Connection, path: str
) -> None:
    connection.send(post(bytes(10_000), path=path)[:-9_000])
    pass_by(connection, 29, lambda: connection.send(b"x"))
    assert not connection.wire.is_over()
    pass_by(connection, 1)
    assert await refused(connection, "408") == "the body took too long"
    assert connection.protocol.cycle.disconnected
    assert connection.taken == []


async def test_a_chunked_body_that_does_not_come_is_not_waited_for(connection: Connection) -> None:
    connection.send(CHUNKED)
    pass_by(connection, 30, lambda: connection.send(b"1\r\nx\r\n"))
    assert await refused(connection, "408")


@pytest.mark.parametrize("path, size", [("/door", 60_000), ("/other", 1_000_000)])
async def test_a_slow_upload_is_waited_for(connection: Connection, path: str, size: int) -> None:
    request = post(bytes(size), path=path)
    for at in range(0, len(request), 300):
        assert not connection.wire.is_over()
        connection.send(request[at : at + 300])
        connection.time.pass_by(1)
        if path == "/other":
            await connection.heard()
    assert connection.taken or connection.protocol.cycle.response_complete
    assert not connection.wire.is_over()


async def test_nobody_is_blamed_for_what_we_do_not_read(connection: Connection) -> None:
    connection.send(post(bytes(1_000_000), path="/other")[:-900_000])
    pass_by(connection, 119)
    paused = [connection.protocol.flow.read_paused]
    await connection.heard()
    paused.append(connection.protocol.flow.read_paused)
    assert paused == [True, False]
    pass_by(connection, 5)
    assert not connection.wire.is_over()
    pass_by(connection, 60)
    assert connection.wire.is_over()


async def test_what_is_left_of_a_body_after_the_answer_has_its_time_too(
    connection: Connection,
) -> None:
    connection.send(CHUNKED)
    await connection.heard()
    connection.protocol.cycle.response_started = connection.protocol.cycle.response_complete = True
    connection.protocol.on_response_complete()
    pass_by(connection, 31, lambda: connection.send(b"200\r\n" + bytes(512) + b"\r\n"))
    assert connection.wire.is_over()
    assert await connection.heard() == b""


async def test_an_answer_that_is_not_read_is_given_up(connection: Connection) -> None:
    connection.send(post(b"hello"))
    connection.taken[0][1](ANSWER)
    connection.wire.unread = 100_000
    pass_by(connection, 30)
    assert connection.wire.is_aborted()


async def test_a_connection_that_cannot_close_is_cut(connection: Connection) -> None:
    connection.send(post(b"hello", "Connection: close"))
    connection.taken[0][1](ANSWER)
    connection.wire.unread = 100
    assert connection.wire.closed
    pass_by(connection, 14)
    assert not connection.wire.is_aborted()
    pass_by(connection, 16)
    assert connection.wire.is_aborted()


async def test_an_answer_may_be_read_slowly(connection: Connection) -> None:
    connection.send(post(b"hello"))
    connection.wire.unread = 300_000

    def read() -> None:
        connection.wire.unread -= 300

    pass_by(connection, 999, read)
    assert not connection.wire.is_over()


async def test_who_waits_for_an_answer_is_left_alone(connection: Connection) -> None:
    connection.send(post(b"hello"))
    pass_by(connection, 1000)
    assert not connection.wire.is_over()
    assert len(connection.time.alarms) == 1
    connection.taken[0][1](ANSWER)
    pass_by(connection, KEEP_ALIVE)
    assert connection.wire.is_over()


# How many.


@pytest.fixture
async def guest() -> Connection:
    return Connection(most=0)


async def test_one_too_many_may_ask_how_the_gateway_is(guest: Connection) -> None:
    guest.send(b"GET /health?x HTTP/1.1\r\nHost: x\r\n\r\n")
    heard = await guest.heard()
    assert b"200 OK" in heard
    assert b"connection: close" in heard
    assert guest.wire.is_over()


@pytest.mark.parametrize("start", STARTS)
async def test_one_too_many_is_told_to_come_back(guest: Connection, start: bytes) -> None:
    guest.send(start + b"\r\n")
    assert b"retry-after: 10\r\n" in b"".join(guest.wire.written)
    assert await refused(guest, "503") == "there are too many connections"
    assert guest.taken == []


async def test_an_administrator_is_never_one_too_many() -> None:
    for path in ("/door", "/other"):
        guest = Connection(most=0)
        guest.send(post(b"x", "Authorization: me", path=path))
        for _, respond in guest.taken:
            respond(ANSWER)
        heard = await guest.heard()
        assert b"HTTP/1.1 20" in heard
        assert b"connection: close" in heard
        assert guest.wire.is_over()


@pytest.mark.parametrize("path", ["/door", "/other"])
async def test_who_gives_two_credentials_is_no_administrator(guest: Connection, path: str) -> None:
    guest.send(post(b"x", "Authorization: other", "Authorization: me", path=path))
    assert await refused(guest, "503") == "there are too many connections"


async def test_a_device_that_would_stay_is_one_too_many_whoever_it_is(guest: Connection) -> None:
    guest.send(UPGRADE + b"Authorization: me\r\n\r\n")
    assert await refused(guest, "503")


@pytest.mark.parametrize("start", [b"", b"GET /health"])
async def test_one_too_many_has_to_ask_at_once(guest: Connection, start: bytes) -> None:
    guest.send(start)
    pass_by(guest, 4)
    assert not guest.wire.is_over()
    pass_by(guest, 1)
    assert guest.wire.is_over()


async def test_a_connection_leaves_its_place(connection: Connection) -> None:
    assert connection.guard.admission.connections == 1
    connection.protocol.connection_lost(None)
    assert connection.guard.admission.connections == 0
