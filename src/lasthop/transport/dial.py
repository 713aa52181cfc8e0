"""From an address to a link, on the device's side.

tcp://HOST:PORT    tcps://HOST:PORT    unix:PATH    ws://HOST:PORT/PATH    wss://HOST:PORT/PATH
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from urllib.parse import urlsplit

import msgspec
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidURI
from websockets.typing import Subprotocol

from lasthop.errors import InvalidRequest
from lasthop.transport.link import Ends, Link
from lasthop.transport.stream import StreamLink
from lasthop.transport.websocket import SUBPROTOCOL, WebSocketLink
from lasthop.wire.hop.frames import Hello
from lasthop.wire.hop.handshake import Dialing
from lasthop.wire.hop.mapping import Mapping

TIMEOUT = 30.0
"""Seconds until a connection, with TLS if it has any, must be there; then HELLO has its own."""

DEFAULT_PORT = 7300


class Address(msgspec.Struct, frozen=True):
    """Where a gateway is."""

    scheme: str
    host: str = ""
    port: int = 0
    path: str = ""
    url: str = ""

    @property
    def secure(self) -> bool:
        """Whether what is said there is encrypted."""
        return self.scheme in ("tcps", "wss")


def parse(url: str) -> Address:
    """Read an address, or raise InvalidRequest."""
    scheme, colon, rest = url.partition(":")
    if scheme == "unix" and rest:
        return Address(scheme, path=rest.removeprefix("//"), url=url)
    if not colon or scheme not in ("tcp", "tcps", "ws", "wss"):
        raise InvalidRequest("an address begins with tcp, tcps, unix, ws or wss", address=url)
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise InvalidRequest(f"not an address: {error}", address=url) from None
    if not host:
        raise InvalidRequest("an address names a host", address=url)
    if scheme in ("tcp", "tcps") and parts.path not in ("", "/"):
        raise InvalidRequest("a TCP address has no path", address=url)
    return Address(scheme, host, port or DEFAULT_PORT, parts.path, url)


async def dial(
    address: Address, hello: Hello, ends: Ends, *, tls: ssl.SSLContext | None = None
) -> Link:
    """Connect and say HELLO; what follows is told to the owner. Raises OSError when nobody is
    there."""
    if address.secure and tls is None:
        tls = await asyncio.to_thread(ssl.create_default_context)
    context = tls if address.secure else None
    async with asyncio.timeout(TIMEOUT):
        if address.scheme in ("ws", "wss"):
            return await _dial_websocket(address, hello, ends, context)
        return await _dial_stream(address, _stream(hello, ends), context)


def _stream(hello: Hello, ends: Ends) -> Callable[[], StreamLink]:
    def make() -> StreamLink:
        machine = Dialing(hello, mapping=Mapping.STREAM, now=ends.clock.now())
        return StreamLink(ends, machine)

    return make


async def _dial_stream(
    address: Address, make: Callable[[], StreamLink], tls: ssl.SSLContext | None
) -> Link:
    loop = asyncio.get_running_loop()
    if address.scheme == "unix":
        _, link = await loop.create_unix_connection(make, address.path)
    else:
        _, link = await loop.create_connection(make, address.host, address.port, ssl=tls)
    return link


async def _dial_websocket(
    address: Address, hello: Hello, ends: Ends, tls: ssl.SSLContext | None
) -> Link:
    try:
        socket = await connect(
            address.url,
            ssl=tls,
            max_size=hello.max_frame,
            compression=None,
            ping_interval=None,
            open_timeout=None,
            subprotocols=[Subprotocol(SUBPROTOCOL)],
            user_agent_header=None,
        )
    except (InvalidHandshake, InvalidURI, EOFError) as error:
        raise ConnectionError(f"no WebSocket there: {error}") from error
    machine = Dialing(hello, mapping=Mapping.DATAGRAM, now=ends.clock.now())
    link = WebSocketLink(
        ends, machine, send=_sender(socket), hang_up=socket.close, cut=socket.transport.abort
    )
    link.reader = asyncio.get_running_loop().create_task(_read(socket, link))
    link.begin()
    return link


def _sender(socket: ClientConnection) -> Callable[[bytes], Awaitable[None]]:
    async def send(unit: bytes) -> None:
        try:
            await socket.send(unit)
        except ConnectionClosed as error:
            raise ConnectionError(str(error)) from None

    return send


async def _read(socket: ClientConnection, link: WebSocketLink) -> None:
    try:
        async for message in socket:
            link.message(message)
        reason = "the peer hung up"
    except ConnectionClosed as error:
        reason = str(error)
    link.ended(reason)
