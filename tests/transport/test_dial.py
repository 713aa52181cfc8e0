"""Addresses, and what becomes of them when nobody is there."""

from __future__ import annotations

import asyncio
import socket

import pytest

from lasthop.errors import InvalidRequest
from lasthop.transport.dial import dial, parse
from lasthop.wire.hop.frames import Hello
from tests.transport.hand import Diary, HandClock, ends


@pytest.mark.parametrize(
    "url, expected",
    [
        ("tcp://gateway:99", ("tcp", "gateway", 99, "", False)),
        ("tcps://gateway", ("tcps", "gateway", 7300, "", True)),
        ("tcp://[::1]:7300/", ("tcp", "::1", 7300, "/", False)),
        ("unix:/run/hop.sock", ("unix", "", 0, "/run/hop.sock", False)),
        ("unix:///run/hop.sock", ("unix", "", 0, "/run/hop.sock", False)),
        ("ws://gateway:80/hop", ("ws", "gateway", 80, "/hop", False)),
        ("wss://gateway:443/hop", ("wss", "gateway", 443, "/hop", True)),
    ],
)
def test_an_address_is_understood(url: str, expected: tuple[object, ...]) -> None:
    address = parse(url)
    assert (
        address.scheme,
        address.host,
        address.port,
        address.path,
        address.secure,
    ) == expected


@pytest.mark.parametrize(
    "url, message",
    [
        ("gateway:7300", "an address begins with tcp, tcps, unix, ws or wss"),
        ("http://gateway", "an address begins with tcp, tcps, unix, ws or wss"),
        ("unix:", "an address begins with tcp, tcps, unix, ws or wss"),
        ("tcp://", "an address names a host"),
        ("tcp://gateway:port", "not an address: Port could not be cast to integer value as 'port'"),
        ("tcp://gateway:70000", "not an address: Port out of range 0-65535"),
        ("tcp://gateway/path", "a TCP address has no path"),
    ],
)
def test_what_is_no_address_is_refused(url: str, message: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        parse(url)
    assert str(caught.value) == f"{message} (address={url!r})"


@pytest.mark.anyio
@pytest.mark.parametrize("scheme", ["tcp", "ws"])
async def test_nobody_there_is_an_os_error(scheme: str) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    hello = Hello(app="shop", device="phone")
    with pytest.raises(OSError, match=r"Connect|connect|refused"):
        await dial(parse(f"{scheme}://127.0.0.1:{port}"), hello, ends(Diary(), HandClock()))


@pytest.mark.anyio
async def test_a_server_that_speaks_no_websocket_is_an_os_error() -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
        writer.close()
        await writer.wait_closed()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    hello = Hello(app="shop", device="phone")
    with pytest.raises(ConnectionError, match=r"no WebSocket there: .*404"):
        await dial(parse(f"ws://127.0.0.1:{port}/x"), hello, ends(Diary(), HandClock()))
    server.close()
