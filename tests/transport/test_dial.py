"""Addresses, and what becomes of them when nobody is there."""

from __future__ import annotations

import asyncio
import socket

import pytest

from lasthop.errors import InvalidRequest
from lasthop.transport.address import parse
from lasthop.transport.dial import dial
from lasthop.wire.hop.frames import Hello
from tests.transport.hand import Diary, HandClock, ends

BEGINS = (
    "an address must begin with one of tcp, tcps, ws, wss, http, https, poll+http, poll+https,"
    " beep, beeps, unix, seqpacket, l2cap"
)


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
        ("ws://gateway/hop", ("ws", "gateway", 80, "/hop", False)),
        ("http://gateway", ("http", "gateway", 80, "/hop", False)),
        ("https://gateway:8443/a/b/", ("https", "gateway", 8443, "/a/b", True)),
        ("poll+https://gateway?every=5", ("poll+https", "gateway", 443, "/hop", True)),
        ("seqpacket:///run/hop", ("seqpacket", "", 0, "/run/hop", False)),
        ("l2cap://00:aa:22:33:44:55:4099", ("l2cap", "00:AA:22:33:44:55", 4099, "", False)),
        ("beep://gateway", ("beep", "gateway", 7301, "", False)),
        ("beeps://gateway:99", ("beeps", "gateway", 99, "", True)),
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
    "url, every",
    [
        ("http://gateway", None),
        ("poll+http://gateway", 30_000_000),
        ("poll+http://gateway/hop?every=0.5", 500_000),
    ],
)
def test_how_often_a_gateway_is_polled(url: str, every: int | None) -> None:
    assert parse(url).every == every


@pytest.mark.parametrize(
    "url, message",
    [
        ("gateway:7300", BEGINS),
        ("ftp://gateway", BEGINS),
        ("unix:", BEGINS),
        ("seqpacket://", BEGINS),
        ("tcp://", "an address must name a host"),
        ("tcp://gateway:port", "not an address: Port could not be cast to integer value as 'port'"),
        ("tcp://gateway:70000", "not an address: Port out of range 0-65535"),
        ("beep://gateway/path", "an address of beep must not have a path"),
        ("http://gateway/a b", "a path may only have printable ASCII characters"),
        ("http://gateway/\u00e9", "a path may only have printable ASCII characters"),
        ("poll+http://gateway?every=often", "every must be a number of seconds, at most a day"),
        ("poll+http://gateway?every=0", "every must be a number of seconds, at most a day"),
        ("poll+http://gateway?every=nan", "every must be a number of seconds, at most a day"),
        ("l2cap://headset:1", "an address of l2cap must be like l2cap://00:11:22:33:44:55:4099"),
        (
            "l2cap://00:11:22:33:44:55",
            "an address of l2cap must be like l2cap://00:11:22:33:44:55:4099",
        ),
        ("tcp://gateway/path", "an address of tcp must not have a path"),
    ],
)
def test_what_is_no_address_is_refused(url: str, message: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        parse(url)
    assert str(caught.value) == f"{message} (address={url!r})"


@pytest.mark.anyio
@pytest.mark.parametrize("scheme", ["tcp", "ws", "http", "poll+http", "beep"])
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
    with pytest.raises(ConnectionError, match=r"there is no WebSocket at this address: .*404"):
        await dial(parse(f"ws://127.0.0.1:{port}/x"), hello, ends(Diary(), HandClock()))
    server.close()
