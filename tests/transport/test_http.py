"""POST to a real server that answers whatever the test wants."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from ipaddress import ip_address

import pytest

from lasthop.transport.http import HttpFailure, post

OK = b"HTTP/1.1 202 Accepted\r\nContent-Type: application/xml\r\nContent-Length: 2\r\n\r\nhi"


@asynccontextmanager
async def server(answer: bytes, *, patient: bool = False) -> AsyncIterator[tuple[str, list[bytes]]]:
    """A server that says `answer` to every request, and hangs up unless it is patient; its URL, and
    what it was asked."""
    asked: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
        asked.append(head + await reader.readexactly(length))
        writer.write(answer)
        if patient:
            await reader.read()
        writer.close()

    listener = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = listener.sockets[0].getsockname()[1]
    try:
        yield f"http://127.0.0.1:{port}/results?a=b", asked
    finally:
        listener.close()


async def ask(url: str, *, timeout: float = 5, limit: int = 100) -> tuple[int, str, bytes]:  # noqa: ASYNC109
    answer = await post(
        url, [("Content-Type", "text/plain")], b"body", timeout=timeout, limit=limit
    )
    return answer.status, answer.header("content-type"), answer.body


async def test_the_request_is_one_that_any_server_reads() -> None:
    async with server(OK) as (url, asked):
        assert await ask(url) == (202, "application/xml", b"hi")
    head, _, body = asked[0].partition(b"\r\n\r\n")
    lines = head.decode().split("\r\n")
    assert lines[0] == "POST /results?a=b HTTP/1.1"
    assert lines[1].startswith("Host: 127.0.0.1:")
    assert lines[2:] == ["Content-Type: text/plain", "Content-Length: 4", "Connection: close"]
    assert body == b"body"


@pytest.mark.parametrize(
    "answer, expected",
    [
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n",
            b"abc",
        ),
        (b"HTTP/1.0 200 OK\r\n\r\nuntil the end", b"until the end"),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx", b"x"),
        (b"HTTP/1.1 204 No Content\r\n\r\n", b""),
    ],
)
async def test_every_form_of_an_answer_is_read(answer: bytes, expected: bytes) -> None:
    async with server(answer) as (url, _):
        assert (await ask(url))[2] == expected


@pytest.mark.parametrize(
    "answer, reason",
    [
        (b"", "the connection ended before the answer"),
        (
            b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhi",
            "the connection ended before the answer",
        ),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 101\r\n\r\n" + b"x" * 101, "the answer is too large"),
        (b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 30_000, "the answer is too large"),
        (b"220 smtp.example.com\r\n", "not an HTTP answer"),
    ],
)
async def test_every_other_answer_is_a_failure(answer: bytes, reason: str) -> None:
    async with server(answer) as (url, _):
        with pytest.raises(HttpFailure, match=reason) as failed:
            await ask(url)
    assert failed.value.sent


async def test_silence_has_an_end() -> None:
    async with server(b"", patient=True) as (url, _):
        with pytest.raises(HttpFailure, match=r"no answer in 0\.05 seconds"):
            await ask(url, timeout=0.05)


@pytest.mark.parametrize(
    "url, reason",
    [
        ("ftp://host/", "not an http or https URL"),
        ("http:///path", "not an http or https URL"),
        ("http://host:port/", "the URL's port is not a number up to 65535"),
        ("http://host/\u00e4", "only have printable ASCII characters"),
        ("http://127.0.0.1:1/", "refused"),
        ("http://name.invalid/", "no such host"),
    ],
)
async def test_where_nobody_can_be_nothing_is_sent(url: str, reason: str) -> None:
    with pytest.raises(HttpFailure, match=f"(?i){reason}") as failed:
        await ask(url)
    assert not failed.value.sent


async def test_only_allowed_addresses_are_connected_to() -> None:
    async with server(OK) as (url, asked):
        seen = []

        def allowed(address: object) -> bool:
            seen.append(address)
            return False

        with pytest.raises(HttpFailure, match="no address that is allowed"):
            await post(url, [], b"", timeout=5, limit=100, allowed=allowed)
    assert seen == [ip_address("127.0.0.1")]
    assert not asked


async def test_a_header_cannot_bring_others() -> None:
    async with server(OK) as (url, _):
        with pytest.raises(HttpFailure, match="more than one line"):
            await post(url, [("A", "b\r\nC: d")], b"", timeout=5, limit=100)
