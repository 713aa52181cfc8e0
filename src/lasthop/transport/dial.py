"""Opens a link to the address of a gateway, on the device's side: first a connection, then the
HELLO over it."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable

from websockets.asyncio.client import ClientConnection, connect as websocket
from websockets.exceptions import ConnectionClosed, WebSocketException
from websockets.typing import Subprotocol

from lasthop.transport import seqpacket
from lasthop.transport.address import GatewayAddress
from lasthop.transport.beep import BeepConnection
from lasthop.transport.connected import HeldConnection, HeldStream
from lasthop.transport.keepalive import HttpServer
from lasthop.transport.link import ChannelLink, Ends
from lasthop.transport.requests import RequestsLink
from lasthop.transport.schemes import SCHEMES, Form
from lasthop.transport.stream import StreamLink
from lasthop.transport.websocket import SUBPROTOCOL, WebSocketLink
from lasthop.wire.hop.checksums import SIZE as CHECKSUM_SIZE
from lasthop.wire.hop.frames import DEFAULT_MAX_FRAME, Hello
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
    connection = await connect(address, tls=tls, max_frame=hello.max_frame)
    return await connection.say(hello, ends)


async def connect(
    address: GatewayAddress,
    *,
    tls: ssl.SSLContext | None = None,
    max_frame: int = DEFAULT_MAX_FRAME,
) -> HeldConnection:
    """Return a connection over which nothing was said yet. Raise OSError when the gateway cannot be
    reached."""
    if address.secure and tls is None:
        tls = await asyncio.to_thread(ssl.create_default_context)
    context = tls if address.secure else None
    async with asyncio.timeout(TIMEOUT):
        connection: HeldConnection = await SCHEMES[address.scheme].dial()(
            address, context, max_frame
        )
    return connection


def offers_checksums(address: GatewayAddress) -> bool:
    """Whether to offer checksums: not where TLS has better ones, nor where nothing leaves the
    machine's memory."""
    return not address.secure and SCHEMES[address.scheme].form is not Form.FILE


def dialing(address: GatewayAddress, hello: Hello, ends: Ends, mapping: Mapping) -> Dialing:
    """Return the device's side of the handshake over a connection to this address."""
    return Dialing(
        hello,
        mapping=mapping,
        now=ends.clock.now(),
        checksums=ends.checksums and offers_checksums(address),
    )


async def connect_stream(
    address: GatewayAddress, tls: ssl.SSLContext | None, _max_frame: int
) -> HeldConnection:
    """Connect over TCP, TLS or a Unix socket."""
    loop = asyncio.get_running_loop()
    if not address.host:
        _, held = await loop.create_unix_connection(HeldStream, address.path)
    else:
        _, held = await loop.create_connection(HeldStream, address.host, address.port, ssl=tls)

    async def say(hello: Hello, ends: Ends) -> ChannelLink:
        link = StreamLink(ends, dialing(address, hello, ends, Mapping.STREAM))
        held.pass_to(link)
        return link

    return HeldConnection(say, held.abort)


async def connect_seqpacket(
    address: GatewayAddress, _tls: ssl.SSLContext | None, _max_frame: int
) -> HeldConnection:
    """Connect to a socket that keeps boundaries; such sockets are not encrypted."""
    connected = await seqpacket.connect(address)

    async def say(hello: Hello, ends: Ends) -> ChannelLink:
        machine = dialing(address, hello, ends, Mapping.DATAGRAM)
        link = seqpacket.SeqpacketLink(ends, machine, connected)
        link.start()
        return link

    return HeldConnection(say, connected.close)


async def connect_beep(
    address: GatewayAddress, tls: ssl.SSLContext | None, _max_frame: int
) -> HeldConnection:
    """Connect to a listener of BEEP sessions."""
    _, held = await asyncio.get_running_loop().create_connection(
        HeldStream, address.host, address.port, ssl=tls
    )

    async def say(hello: Hello, ends: Ends) -> ChannelLink:
        connection = BeepConnection(
            ends,
            lambda: dialing(address, hello, ends, Mapping.DATAGRAM),
            initiator=True,
            max_unit=hello.max_frame + CHECKSUM_SIZE,
        )
        held.pass_to(connection)
        return await connection.opened

    return HeldConnection(say, held.abort)


async def connect_http(
    address: GatewayAddress, tls: ssl.SSLContext | None, max_frame: int
) -> HeldConnection:
    """Connect to a web server, whose requests and answers will carry units."""
    server = HttpServer(address.host, address.port, tls=tls, limit=max(BODY, max_frame) + HEAD)
    await server.connect()

    async def say(hello: Hello, ends: Ends) -> ChannelLink:
        machine = dialing(address, hello, ends, Mapping.UNORDERED)
        link = RequestsLink(ends, machine, server, every=address.every)
        await link.open(address.path)
        return link

    return HeldConnection(say, server.close)


async def connect_websocket(
    address: GatewayAddress, tls: ssl.SSLContext | None, max_frame: int
) -> HeldConnection:
    """Open a WebSocket to the gateway."""
    try:
        socket = await websocket(
            address.url,
            ssl=tls,
            max_size=max_frame + CHECKSUM_SIZE,
            compression=None,
            ping_interval=None,
            open_timeout=None,
            subprotocols=[Subprotocol(SUBPROTOCOL)],
            user_agent_header=None,
        )
    except (WebSocketException, EOFError) as error:
        raise ConnectionError(f"there is no WebSocket at this address: {error}") from error

    async def say(hello: Hello, ends: Ends) -> ChannelLink:
        link = WebSocketLink(
            ends,
            dialing(address, hello, ends, Mapping.DATAGRAM),
            send=_sender(socket),
            hang_up=socket.close,
            cut=socket.transport.abort,
        )
        link.reader = asyncio.get_running_loop().create_task(_read(socket, link))
        link.begin()
        return link

    return HeldConnection(say, socket.transport.abort)


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
