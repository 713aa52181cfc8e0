"""Opens a link to the address of a gateway, on the device's side."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, WebSocketException
from websockets.typing import Subprotocol

from lasthop.transport import seqpacket
from lasthop.transport.address import GatewayAddress
from lasthop.transport.beep import BeepConnection
from lasthop.transport.keepalive import HttpServer
from lasthop.transport.link import ChannelLink, Ends
from lasthop.transport.requests import RequestsLink
from lasthop.transport.schemes import SCHEMES, Form
from lasthop.transport.stream import StreamLink
from lasthop.transport.websocket import SUBPROTOCOL, WebSocketLink
from lasthop.wire.hop.checksums import SIZE as CHECKSUM_SIZE
from lasthop.wire.hop.frames import Hello
from lasthop.wire.hop.handshake import Dialing
from lasthop.wire.hop.mapping import Mapping
from lasthop.wire.requests.bodies import BODY, HEAD

TIMEOUT = 30.0
"""Seconds for a connection, with TLS if it has any; the handshake after it has a timeout of its
own."""


async def dial(
    address: GatewayAddress, hello: Hello, ends: Ends, *, tls: ssl.SSLContext | None = None
) -> ChannelLink:
    """Connect and send HELLO; the owner is told what follows. Raise OSError when the gateway cannot
    be reached."""
    if address.secure and tls is None:
        tls = await asyncio.to_thread(ssl.create_default_context)
    context = tls if address.secure else None
    async with asyncio.timeout(TIMEOUT):
        link: ChannelLink = await SCHEMES[address.scheme].dial()(address, hello, ends, context)
    return link


def offers_checksums(address: GatewayAddress) -> bool:
    """Whether to offer checksums: not where TLS has better ones, nor where nothing leaves the
    machine's memory."""
    return not address.secure and SCHEMES[address.scheme].form is not Form.FILE


async def dial_stream(
    address: GatewayAddress, hello: Hello, ends: Ends, tls: ssl.SSLContext | None
) -> ChannelLink:
    """Return a link over TCP, TLS or a Unix socket."""

    def make() -> StreamLink:
        machine = Dialing(
            hello,
            mapping=Mapping.STREAM,
            now=ends.clock.now(),
            checksums=ends.checksums and offers_checksums(address),
        )
        return StreamLink(ends, machine)

    loop = asyncio.get_running_loop()
    if not address.host:
        _, link = await loop.create_unix_connection(make, address.path)
    else:
        _, link = await loop.create_connection(make, address.host, address.port, ssl=tls)
    return link


async def dial_seqpacket(
    address: GatewayAddress, hello: Hello, ends: Ends, _tls: ssl.SSLContext | None
) -> ChannelLink:
    """Return a link over a socket that keeps boundaries; such sockets are not encrypted."""
    connected = await seqpacket.connect(address)
    machine = Dialing(
        hello,
        mapping=Mapping.DATAGRAM,
        now=ends.clock.now(),
        checksums=ends.checksums and offers_checksums(address),
    )
    link = seqpacket.SeqpacketLink(ends, machine, connected)
    link.start()
    return link


async def dial_beep(
    address: GatewayAddress, hello: Hello, ends: Ends, tls: ssl.SSLContext | None
) -> ChannelLink:
    """Return a link over a channel of a BEEP session."""

    def machine() -> Dialing:
        return Dialing(
            hello,
            mapping=Mapping.DATAGRAM,
            now=ends.clock.now(),
            checksums=ends.checksums and offers_checksums(address),
        )

    transport, connection = await asyncio.get_running_loop().create_connection(
        lambda: BeepConnection(
            ends, machine, initiator=True, max_unit=hello.max_frame + CHECKSUM_SIZE
        ),
        address.host,
        address.port,
        ssl=tls,
    )
    try:
        return await connection.opened
    except BaseException:
        transport.abort()
        raise


async def dial_http(
    address: GatewayAddress, hello: Hello, ends: Ends, tls: ssl.SSLContext | None
) -> ChannelLink:
    """Return a link whose units are carried by HTTP requests."""
    server = HttpServer(
        address.host, address.port, tls=tls, limit=max(BODY, hello.max_frame) + HEAD
    )
    machine = Dialing(
        hello,
        mapping=Mapping.UNORDERED,
        now=ends.clock.now(),
        checksums=ends.checksums and offers_checksums(address),
    )
    link = RequestsLink(ends, machine, server, every=address.every)
    try:
        await link.open(address.path)
    except BaseException:
        server.close()
        raise
    return link


async def dial_websocket(
    address: GatewayAddress, hello: Hello, ends: Ends, tls: ssl.SSLContext | None
) -> ChannelLink:
    """Return a link over a new WebSocket to the gateway."""
    try:
        socket = await connect(
            address.url,
            ssl=tls,
            max_size=hello.max_frame + CHECKSUM_SIZE,
            compression=None,
            ping_interval=None,
            open_timeout=None,
            subprotocols=[Subprotocol(SUBPROTOCOL)],
            user_agent_header=None,
        )
    except (WebSocketException, EOFError) as error:
        raise ConnectionError(f"there is no WebSocket at this address: {error}") from error
    machine = Dialing(
        hello,
        mapping=Mapping.DATAGRAM,
        now=ends.clock.now(),
        checksums=ends.checksums and offers_checksums(address),
    )
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
