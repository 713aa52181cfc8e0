"""The protocols that exchange calls and answers; each measures its time and its octets."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from random import Random
from typing import Final, NamedTuple

from bench.exchange.networks import Network
from bench.exchange.pipe import Pipe
from bench.exchange.service import answer, call, serial_of
from bench.exchange.tcp import Connection
from lasthop.clock import HOUR, MILLISECOND, Micros
from lasthop.simulation.kernel import Kernel
from lasthop.wire.hop.connection import Open
from lasthop.wire.hop.credit import admits
from lasthop.wire.hop.frames import Ack, Hello, MessageFrame, Welcome
from lasthop.wire.hop.handshake import Dialing, Waiting
from lasthop.wire.hop.mapping import Mapping
from lasthop.wire.hop.sequence import Inbound, Outbound
from lasthop_xml.formats import MessageDecoder, MessageEncoder, format_for

WORK: Final = MILLISECOND // 2
"""The time that a message costs its sender and its receiver, the same for all protocols."""
XML, XEBU = "application/soap+xml", "application/x-ebu+data"


class Sent(NamedTuple):
    """What one run took: time, and octets in both directions together."""

    time: Micros
    application: int
    """Octets of the messages themselves."""
    protocol: int
    """Octets that HTTP or hop adds to the messages."""
    transport: int
    """Octets of TCP and IP: headers, and segments without data."""
    packets: int


class Processor:
    """A processor that does one thing at a time."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._free = kernel.now()

    def work(self, messages: int, then: Callable[[], None]) -> None:
        """Spend the time to make or read `messages` messages, then call `then`."""
        self._free = max(self._free, self._kernel.now()) + messages * WORK
        self._kernel.at(self._free, then)


class Exchange:
    """A client, a server and the network between them, for one run."""

    def __init__(self, network: Network, calls: int, seed: int) -> None:
        self.kernel = Kernel()
        random = Random(f"{network.name} {calls} {seed}")
        self.up = Pipe(self.kernel, random, network, up=True)
        self.down = Pipe(self.kernel, random, network, up=False)
        self.client, self.server = Processor(self.kernel), Processor(self.kernel)
        self.calls = calls
        self.answered = 0
        self.application = 0
        self.stream = 0
        """Octets that were given to TCP."""
        self.began = self.kernel.now()

    def finish(self) -> Sent:
        """Run until every call is answered, and return what the run took."""
        if not self.kernel.run(until=lambda: self.answered == self.calls, limit=HOUR):
            raise RuntimeError(f"only {self.answered} of {self.calls} calls were answered")
        time = self.kernel.now() - self.began
        # Packets still on their way (the last acknowledgements, and the closing) count as well.
        self.kernel.run(until=lambda: False, limit=HOUR)
        octets = self.up.octets + self.down.octets
        packets = self.up.packets + self.down.packets
        protocol = self.stream - self.application
        return Sent(time, self.application, protocol, octets - self.stream, packets)

    def check(self, serial: int) -> None:
        """Check that the answers come in the order of the calls."""
        if serial != self.answered:
            raise RuntimeError(f"answer {serial} came where {self.answered} was due")
        self.answered += 1


REQUEST: Final = (
    "POST /services/flood HTTP/1.{version}\r\nHost: server.lasthop.example:8080\r\n"
    "Content-Type: {type}; charset=utf-8\r\nAccept: application/soap+xml, text/*\r\n"
    "User-Agent: exchange/1.0\r\nCache-Control: no-cache\r\nPragma: no-cache\r\n"
    "{keep}Content-Length: {length}\r\n\r\n"
)
RESPONSE: Final = (
    "HTTP/1.1 200 OK\r\nServer: exchange/1.0\r\nDate: Wed, 01 Mar 2006 09:30:00 GMT\r\n"
    "Content-Type: {type}; charset=utf-8\r\n{keep}Content-Length: {length}\r\n\r\n"
)


class Http:
    """Synchronous calls over HTTP, one after the other."""

    def __init__(
        self, network: Network, calls: int, seed: int, *, persistent: bool, mime_type: str
    ) -> None:
        self._exchange = Exchange(network, calls, seed)
        self._persistent = persistent
        self._type = mime_type
        format_ = format_for(mime_type)
        self._to_server: tuple[MessageEncoder, MessageDecoder] = (
            format_.encoder(),
            format_.decoder(),
        )
        self._to_client: tuple[MessageEncoder, MessageDecoder] = (
            format_.encoder(),
            format_.decoder(),
        )
        self._connection: Connection | None = None
        self._received = {"client": b"", "server": b""}

    def run(self) -> Sent:
        self._next()
        return self._exchange.finish()

    def _next(self) -> None:
        exchange = self._exchange
        if exchange.answered < exchange.calls:
            exchange.client.work(1, self._call)

    def _call(self) -> None:
        if self._connection is None:
            self._connection = Connection(
                self._exchange.kernel,
                self._exchange.up,
                self._exchange.down,
                to_client=self._at_client,
                to_server=self._at_server,
            )
        keep = "Connection: keep-alive\r\n" if self._persistent else ""
        version = "1" if self._persistent else "0"
        body = self._to_server[0].encode(call(self._exchange.answered))
        self._write(self._connection.client.write, REQUEST, body, keep=keep, version=version)

    def _at_server(self, data: bytes) -> None:
        body = self._message("server", data)
        connection = self._connection
        if body is None or connection is None:
            return
        serial = serial_of(self._to_server[1].decode(body))

        def respond() -> None:
            keep = "keep-alive" if self._persistent else "close"
            reply = self._to_client[0].encode(answer(serial))
            write = connection.server.write
            self._write(write, RESPONSE, reply, keep=f"Connection: {keep}\r\n")

        self._exchange.server.work(2, respond)

    def _at_client(self, data: bytes) -> None:
        body = self._message("client", data)
        if body is None:
            return

        def read() -> None:
            self._exchange.check(serial_of(self._to_client[1].decode(body)))
            if not self._persistent and self._connection is not None:
                self._connection.close()
                self._connection = None
            self._next()

        self._exchange.client.work(1, read)

    def _write(self, write: Callable[[bytes], None], head: str, body: bytes, **words: str) -> None:
        data = head.format(type=self._type, length=len(body), **words).encode() + body
        self._exchange.application += len(body)
        self._exchange.stream += len(data)
        write(data)

    def _message(self, end: str, data: bytes) -> bytes | None:
        """Return the body of a message when it is complete, None before."""
        whole = self._received[end] + data
        self._received[end] = whole
        head, separator, body = whole.partition(b"\r\n\r\n")
        if not separator:
            return None
        length = int(head.rpartition(b"Content-Length: ")[2])
        if len(body) < length:
            return None
        self._received[end] = b""
        return body


class Peer:
    """One end of a hop session: the real channel and sequence numbers, with messages in Xebu or
    XML."""

    def __init__(self, mime_type: str) -> None:
        format_ = format_for(mime_type)
        self.encoder = format_.encoder()
        self.decoder = format_.decoder()
        self.channel: Open | None = None
        self.outbound: Outbound[MessageFrame] = Outbound()
        self.inbound: Inbound[MessageFrame] = Inbound()
        self.waiting: list[bytes] = []

    def take(self, data: bytes, now: Micros) -> list[bytes]:
        """Return the messages that these octets complete, in order."""
        if self.channel is None:
            return []
        bodies = []
        for frame in self.channel.receive(data, now):
            if isinstance(frame, Ack):
                self.outbound.acknowledge(frame)
            elif isinstance(frame, MessageFrame) and frame.seq is not None:
                for each in self.inbound.receive(frame.seq, frame):
                    bodies.append(each.body)
                    self.inbound.deliver(each.seq or 0)
        return bodies

    def flush(self, now: Micros) -> bytes:
        """Return the octets to write now: messages as far as credit allows, and due
        acknowledgements."""
        if self.channel is None:
            return b""
        while self.waiting and admits(
            self.channel.peer_window,
            ahead=self.outbound.assigned - self.outbound.received,
            bytes_in_flight=sum(len(each.body) for _, each in self.outbound.unacknowledged()),
            size=len(self.waiting[0]),
        ):
            body = self.waiting.pop(0)
            frame = MessageFrame(self.outbound.assigned, self.outbound.assigned, None, None, body)
            self.outbound.push(frame)
            self.channel.send((frame,), now)
        if self.inbound.dirty:
            self.channel.send((self.inbound.acknowledgement(),), now)
        return b"".join(self.channel.data_to_send())


class Hop:
    """Asynchronous calls over the hop protocol: the client sends as quickly as it can."""

    def __init__(self, network: Network, calls: int, seed: int, *, mime_type: str) -> None:
        self._exchange = Exchange(network, calls, seed)
        self._client, self._server = Peer(mime_type), Peer(mime_type)
        self._made = 0
        now = self._exchange.kernel.now()
        hello = Hello(app="exchange", device="client", accept=(mime_type,))
        self._dialing = Dialing(hello, mapping=Mapping.STREAM, now=now)
        self._listening = Waiting(mapping=Mapping.STREAM, now=now)
        self._connection = Connection(
            self._exchange.kernel,
            self._exchange.up,
            self._exchange.down,
            to_client=self._at_client,
            to_server=self._at_server,
        )

    @property
    def client(self) -> Peer:
        return self._client

    def run(self) -> Sent:
        self._write(self._connection.client.write, b"".join(self._dialing.data_to_send()))
        self._exchange.client.work(1, self._make)
        return self._exchange.finish()

    def _make(self) -> None:
        """Make the next call, whether or not earlier calls are answered."""
        exchange = self._exchange
        self._client.waiting.append(self._client.encoder.encode(call(self._made)))
        self._made += 1
        self._flush_client()
        if self._made < exchange.calls:
            exchange.client.work(1, self._make)

    def _at_server(self, data: bytes) -> None:
        now = self._exchange.kernel.now()
        server = self._server
        if server.channel is None:
            if self._listening.receive(data, now) is None:
                return
            welcome = Welcome(incarnation=bytes(8), epoch=1, heartbeat=240)
            server.channel = self._listening.welcome(welcome, now)
            data = b""
        bodies = server.take(data, now) if data else []
        for body in bodies:
            serial = serial_of(server.decoder.decode(body))
            self._exchange.server.work(2, partial(self._reply, serial))
        self._flush_server()

    def _reply(self, serial: int) -> None:
        self._server.waiting.append(self._server.encoder.encode(answer(serial)))
        self._flush_server()

    def _at_client(self, data: bytes) -> None:
        now = self._exchange.kernel.now()
        client = self._client
        if client.channel is None:
            opened = self._dialing.receive(data, now)
            if opened is None:
                return
            client.channel = opened.connection
            data = b""
        bodies = client.take(data, now) if data else []
        for body in bodies:
            serial = serial_of(client.decoder.decode(body))
            self._exchange.client.work(1, partial(self._exchange.check, serial))
        self._flush_client()

    def _flush_client(self) -> None:
        self._flush(self._client, self._connection.client.write)

    def _flush_server(self) -> None:
        self._flush(self._server, self._connection.server.write)

    def _flush(self, peer: Peer, write: Callable[[bytes], None]) -> None:
        before = peer.outbound.assigned
        data = peer.flush(self._exchange.kernel.now())
        for seq in range(before, peer.outbound.assigned):
            frame = peer.outbound.get(seq)
            self._exchange.application += len(frame.body) if frame is not None else 0
        self._write(write, data)

    def _write(self, write: Callable[[bytes], None], data: bytes) -> None:
        if data:
            self._exchange.stream += len(data)
            write(data)


def run(protocol: str, network: Network, calls: int, seed: int) -> Sent:
    """Run one protocol of the table below once."""
    return PROTOCOLS[protocol](network, calls, seed).run()


PROTOCOLS: Final[dict[str, Callable[[Network, int, int], Http | Hop]]] = {
    "HTTP": lambda network, calls, seed: Http(
        network, calls, seed, persistent=False, mime_type=XML
    ),
    "PHTTP": lambda network, calls, seed: Http(
        network, calls, seed, persistent=True, mime_type=XML
    ),
    "hop": lambda network, calls, seed: Hop(network, calls, seed, mime_type=XEBU),
    # Not in the thesis: these show how much of the difference is the format's and how much the
    # protocol's.
    "PHTTP, Xebu": lambda network, calls, seed: Http(
        network, calls, seed, persistent=True, mime_type=XEBU
    ),
    "hop, XML": lambda network, calls, seed: Hop(network, calls, seed, mime_type=XML),
}
