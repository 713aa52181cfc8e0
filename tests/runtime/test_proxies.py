"""What a trusted proxy is believed, and what of it was written by somebody else."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from websockets.asyncio.client import connect

from lasthop.access.direct import Request, Respond, Response
from lasthop.errors import InvalidRequest
from lasthop.runtime.admission import Admission
from lasthop.runtime.front import Receive, Scope, Send
from lasthop.runtime.guard import Guard
from lasthop.runtime.proxies import MAX_HOPS, TrustedProxies
from lasthop.runtime.settings import load
from lasthop.runtime.webserver import WebServer

PROXIES = TrustedProxies(["127.0.0.1", "10.0.0.0/8", "2001:db8::/64"])
HOST = (b"host", b"inside:8080")


def caller(value: str, proxy: str = "10.0.0.1", header: bytes = b"x-forwarded-for") -> str | None:
    found = PROXIES.read([HOST, (header, value.encode())], proxy)
    assert found is not None
    assert found.fields == [HOST]
    return found.address


def test_who_is_trusted() -> None:
    for address in ("127.0.0.1", "10.255.0.1", "::ffff:10.0.0.1", "2001:db8::7"):
        assert address in PROXIES
    for address in ("127.0.0.2", "192.0.2.1", "2001:db8:1::7", "unix", ""):
        assert address not in PROXIES
    assert "127.0.0.1" not in TrustedProxies()


def test_a_proxy_that_says_nothing_speaks_for_itself() -> None:
    assert PROXIES.read([HOST, (b"via", b"1.1 a")], "10.0.0.1") is None


@pytest.mark.parametrize(
    "value, found",
    [
        ("192.0.2.1", "192.0.2.1"),
        ("192.0.2.1:4711", "192.0.2.1"),
        ("2001:db8:1::1", "2001:db8:1::1"),
        ("[2001:db8:1::1]:4711", "2001:db8:1::1"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        # What a stranger has written before is not believed.
        ("127.0.0.1, 192.0.2.1", "192.0.2.1"),
        ("198.51.100.1, 192.0.2.1, 10.0.0.7,10.0.0.8", "192.0.2.1"),
        # Only proxies: the first of them.
        ("10.0.0.6, 10.0.0.7", "10.0.0.6"),
        # A process on the proxy's own machine, which is not this one.
        ("127.0.0.1", "10.0.0.1"),
        ("127.0.0.1, 10.0.0.7", "10.0.0.7"),
        ("unknown", None),
        ("127.0.0.1, _hidden", None),
    ],
)
def test_the_caller_is_the_last_that_is_not_trusted(value: str, found: str | None) -> None:
    assert caller(value) == found


def test_a_proxy_of_this_machine_may_speak_for_this_machine() -> None:
    assert caller("127.0.0.1", proxy="127.0.0.1") == "127.0.0.1"
    assert caller("127.0.0.1, 192.0.2.1", proxy="127.0.0.1") == "192.0.2.1"


@pytest.mark.parametrize(
    "value, found",
    [
        ("for=192.0.2.1", "192.0.2.1"),
        ('For="[2001:db8:1::1]:4711";proto=https;by=_a', "2001:db8:1::1"),
        ('for=127.0.0.1, for="192.0.2.1:80" ; proto=http', "192.0.2.1"),
        ('by="a,\\";b", for=192.0.2.1, for=10.0.0.7', "192.0.2.1"),
        ("for=_hidden", None),
        ("proto=https", None),
    ],
)
def test_the_standard_header_says_the_same(value: str, found: str | None) -> None:
    assert caller(value, header=b"forwarded") == found


def test_the_scheme_and_the_host_are_those_that_the_caller_has_used() -> None:
    fields = [
        HOST,
        (b"x-forwarded-for", b"192.0.2.1"),
        (b"x-forwarded-proto", b"HTTPS"),
        (b"x-forwarded-host", b"gateway.example:443"),
        (b"accept", b"*/*"),
    ]
    found = PROXIES.read(fields, "10.0.0.1")
    assert found is not None
    assert found.scheme == "https"
    assert found.fields == [(b"accept", b"*/*"), (b"host", b"gateway.example:443")]
    forged = b"for=192.0.2.7;proto=https;host=a, for=192.0.2.1;proto=http;host=b, for=10.0.0.2"
    found = PROXIES.read([HOST, (b"forwarded", forged)], "10.0.0.1")
    assert found is not None
    assert (found.scheme, found.fields) == ("http", [(b"host", b"b")])


def test_without_an_address_the_caller_stays_a_stranger() -> None:
    fields = [HOST, (b"x-forwarded-proto", b"wss")]
    found = PROXIES.read(fields, "127.0.0.1")
    assert found is not None
    assert (found.fields, found.address, found.scheme) == (fields, "127.0.0.1", "https")


@pytest.mark.parametrize(
    "header, value, why",
    [
        ("x-forwarded-for", "", "X-Forwarded-For has something that is not an address"),
        ("x-forwarded-for", "a", "X-Forwarded-For has something that is not an address"),
        ("x-forwarded-for", "192.0.2.1,,192.0.2.2", "is not an address"),
        ("x-forwarded-for", "192.0.2.256", "is not an address"),
        ("x-forwarded-for", "192.0.2.1:99999999", "is not an address"),
        ("x-forwarded-for", "," * 9999, "forwarded too often"),
        ("x-forwarded-for", ",".join(["10.0.0.1"] * (MAX_HOPS + 1)), "forwarded too often"),
        ("forwarded", ",".join(["for=10.0.0.1"] * 9999), "forwarded too often"),
        ("forwarded", "", "the Forwarded header cannot be read"),
        ("forwarded", "192.0.2.1", "the Forwarded header cannot be read"),
        ("forwarded", "for=192.0.2.1;for=192.0.2.2", "the Forwarded header cannot be read"),
        ("forwarded", 'for="192.0.2.1', "the Forwarded header cannot be read"),
        ("forwarded", "for=192.0.2.1,", "the Forwarded header cannot be read"),
        ("forwarded", "for=nobody", "Forwarded has something that is not an address"),
        ("x-forwarded-proto", "gopher", "the forwarded scheme is neither http nor https"),
        ("x-forwarded-host", "a b", "the forwarded host is not a host with an optional port"),
        ("x-forwarded-host", "", "the forwarded host is not a host with an optional port"),
    ],
)
def test_what_cannot_be_understood_is_refused(header: str, value: str, why: str) -> None:
    with pytest.raises(InvalidRequest, match=why):
        PROXIES.read([HOST, (header.encode(), value.encode())], "10.0.0.1")


def test_two_headers_must_agree() -> None:
    """A proxy that writes the one passes the other on, as a stranger has written it."""
    fields = [HOST, (b"x-forwarded-for", b"192.0.2.1"), (b"forwarded", b"for=127.0.0.1")]
    with pytest.raises(InvalidRequest, match="Forwarded and X-Forwarded-For name different"):
        PROXIES.read(fields, "127.0.0.1")
    fields = [HOST, (b"x-forwarded-for", b"192.0.2.1"), (b"forwarded", b"for=192.0.2.1")]
    found = PROXIES.read(fields, "127.0.0.1")
    assert found is not None
    assert found.address == "192.0.2.1"


def test_a_proxy_s_connections_are_not_one_caller_s() -> None:
    admission = Admission(most=lambda: 100, per_address=1, proxies=PROXIES)
    admission.enter("10.0.0.1", print)
    assert not admission.enter("10.0.0.1", print).crowded
    admission.enter("192.0.2.1", print)
    assert admission.enter("192.0.2.1", print).crowded


async def who(scope: Scope, receive: Receive, send: Send) -> None:
    """Tells callers who they are, by HTTP and by WebSocket."""
    headers = dict(scope["headers"])
    client = scope["client"]
    seen = [client and client[0], scope["scheme"], headers[b"host"].decode()]
    told = json.dumps(seen)
    if scope["type"] == "http":
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": told.encode()})
    else:
        await receive()
        await send({"type": "websocket.accept"})
        await send({"type": "websocket.send", "text": told})
        await send({"type": "websocket.close", "code": 1000})


def take(request: Request, respond: Respond) -> None:
    respond(Response(200, b"text/plain", json.dumps([request.peer]).encode()))


@asynccontextmanager
async def result_notifier(*trusted: str) -> AsyncIterator[int]:
    """A server that tells callers who they are; its port."""
    proxies = TrustedProxies(trusted)
    guard = Guard(Admission(most=lambda: 100), proxies=proxies)
    listener = socket.create_server(("127.0.0.1", 0))
    options = load(options={"http.drain": "1s"})
    server = WebServer(who, listener, options, direct={"/direct": take}, guard=guard)
    await server.start()
    try:
        yield listener.getsockname()[1]
    finally:
        await server.stop()


async def ask(port: int, *requests: str) -> list[object]:
    """What one connection is told, request by request."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    told: list[object] = []
    for request in requests:
        writer.write(request.replace("\n", "\r\n").encode())
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        if "chunked" in head:
            size = int((await reader.readline()), 16)
            told.append(json.loads(await reader.readexactly(size)))
            await reader.readexactly(len("\r\n0\r\n\r\n"))
        else:
            told.append(json.loads(await reader.read(1000)))
    writer.close()
    return told


GET = "GET / HTTP/1.1\nHost: inside\n{}\n"
FORWARDED = "X-Forwarded-For: 192.0.2.1\nX-Forwarded-Proto: https\nX-Forwarded-Host: outside\n"


async def test_each_request_on_a_proxy_s_connection_has_its_own_caller() -> None:
    async with result_notifier("127.0.0.1") as port:
        other = 'Forwarded: for="[2001:db8:1::1]"\n'
        told = await ask(port, GET.format(FORWARDED), GET.format(""), GET.format(other))
        assert told == [
            ["192.0.2.1", "https", "outside"],
            ["127.0.0.1", "http", "inside"],
            ["2001:db8:1::1", "http", "inside"],
        ]
        post = "POST /direct HTTP/1.1\nHost: inside\nContent-Length: 0\n{}\n"
        assert await ask(port, post.format(FORWARDED)) == [["192.0.2.1"]]
        (refused,) = await ask(port, GET.format("X-Forwarded-For: me\n"))
        assert isinstance(refused, dict)
        assert refused["error"]["code"] == "invalid_request"


async def test_nobody_else_is_believed() -> None:
    async with result_notifier("192.0.2.7") as port:
        assert await ask(port, GET.format(FORWARDED)) == [["127.0.0.1", "http", "inside"]]
        # What nobody reads need not be well formed.
        junk = GET.format("X-Forwarded-For: me\n")
        assert await ask(port, junk) == [["127.0.0.1", "http", "inside"]]


async def test_a_websocket_has_the_caller_of_its_handshake() -> None:
    async with result_notifier("127.0.0.1") as port:
        headers = {"X-Forwarded-For": "192.0.2.1", "X-Forwarded-Proto": "https"}
        url = f"ws://127.0.0.1:{port}/"
        async with connect(url, additional_headers=headers) as line:
            assert json.loads(await line.recv()) == ["192.0.2.1", "wss", f"127.0.0.1:{port}"]
