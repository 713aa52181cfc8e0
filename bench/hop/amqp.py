"""A compact AMQP 0-9-1 client: one channel, a durable queue, confirms and manual acks.

Only the methods that this benchmark needs are spelt out, each with its class and method number in
the specification. Frames that repeat (a publish and its content header) are built once.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from bench.hop.link import Link
from bench.hop.window import Window

METHOD: Final = 1
HEADER: Final = 2
BODY: Final = 3
HEARTBEAT: Final = 8
END: Final = b"\xce"

CONNECTION_START: Final = 10, 10
CONNECTION_START_OK: Final = 10, 11
CONNECTION_TUNE: Final = 10, 30
CONNECTION_TUNE_OK: Final = 10, 31
CONNECTION_OPEN: Final = 10, 40
CONNECTION_OPEN_OK: Final = 10, 41
CHANNEL_OPEN: Final = 20, 10
CHANNEL_OPEN_OK: Final = 20, 11
QUEUE_DECLARE: Final = 50, 10
QUEUE_DECLARE_OK: Final = 50, 11
BASIC_QOS: Final = 60, 10
BASIC_QOS_OK: Final = 60, 11
BASIC_CONSUME: Final = 60, 20
BASIC_CONSUME_OK: Final = 60, 21
BASIC_PUBLISH: Final = 60, 40
BASIC_DELIVER: Final = 60, 60
BASIC_ACK: Final = 60, 80
BASIC_NACK: Final = 60, 120
CONFIRM_SELECT: Final = 85, 10
CONFIRM_SELECT_OK: Final = 85, 11

PERSISTENT: Final = 2
"""The delivery mode of a message that survives a restart of the broker."""

_FRAME = struct.Struct(">BHI")
_ACKNOWLEDGED = struct.Struct(">QB")
_DELIVER = struct.pack(">HH", *BASIC_DELIVER)
_ACK = struct.pack(">HH", *BASIC_ACK)
_NACK = struct.pack(">HH", *BASIC_NACK)


class Refused(Exception):
    """The broker refused a request, or sent something that this client does not understand."""


def short(value: str) -> bytes:
    """Encode a short string: length in one byte."""
    raw = value.encode()
    return bytes([len(raw)]) + raw


def long(value: bytes) -> bytes:
    """Encode a long string: length in four bytes."""
    return len(value).to_bytes(4, "big") + value


def table(fields: dict[str, str]) -> bytes:
    """Encode a field table with long strings for values."""
    return long(b"".join(short(k) + b"S" + long(v.encode()) for k, v in fields.items()))


def frame(kind: int, channel: int, payload: bytes) -> bytes:
    """Encode one frame.

    >>> frame(HEARTBEAT, 0, b"").hex()
    '08000000000000ce'
    """
    return _FRAME.pack(kind, channel, len(payload)) + payload + END


def method(name: tuple[int, int], arguments: bytes, *, channel: int = 1) -> bytes:
    """Encode a frame with a method."""
    return frame(METHOD, channel, struct.pack(">HH", *name) + arguments)


def publish_head(queue: str, size: int) -> bytes:
    """Encode a persistent message to a queue, except its body and the end of the body's frame."""
    properties = struct.pack(">HHQH", 60, 0, size, 0x1000) + bytes([PERSISTENT])
    return (
        method(BASIC_PUBLISH, b"\0\0" + short("") + short(queue) + b"\0")
        + frame(HEADER, 1, properties)
        + _FRAME.pack(BODY, 1, size)
    )


def ack(tag: int, *, multiple: bool) -> bytes:
    """Encode the acknowledgement of a delivery, or of it and all before it."""
    return method(BASIC_ACK, _ACKNOWLEDGED.pack(tag, multiple))


class Parser:
    """Splits received bytes into frames."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        """Yield the kind and payload of each frame that is complete."""
        if self._rest:
            data = self._rest + data
        at, end = 0, len(data)
        unpack = _FRAME.unpack_from
        while end - at >= 8:
            kind, _, size = unpack(data, at)
            stop = at + 7 + size
            if stop >= end:
                break
            if data[stop] != 0xCE:
                raise Refused("a frame does not end where it says")
            yield kind, data[at + 7 : stop]
            at = stop + 1
        self._rest = data[at:]


class Client(Link):
    """A connection with one channel, the base of publishers and devices."""

    def __init__(self) -> None:
        super().__init__()
        self._parser = Parser()
        self._pending: asyncio.Future[bytes] = self._loop.create_future()

    async def open(self, virtual_host: str = "/") -> None:
        """Log in as the guest user, which RabbitMQ admits over loopback, and open a channel."""
        await self._ask(b"AMQP\0\0\x09\x01", CONNECTION_START)
        capabilities = table({})
        login = short("PLAIN") + long(b"\0guest\0guest") + short("en_US")
        tune = await self._ask(
            method(CONNECTION_START_OK, capabilities + login, channel=0), CONNECTION_TUNE
        )
        # No heartbeat: a run is short, and only messages should be on the wire.
        self.transport.write(method(CONNECTION_TUNE_OK, tune[:6] + b"\0\0", channel=0))
        await self._ask(
            method(CONNECTION_OPEN, short(virtual_host) + b"\0\0", channel=0), CONNECTION_OPEN_OK
        )
        await self._ask(method(CHANNEL_OPEN, b"\0"), CHANNEL_OPEN_OK)

    async def declare(self, queue: str, *, durable: bool = True, kind: str = "classic") -> None:
        """Declare a queue; one that is not durable is also exclusive, and ends with this
        connection."""
        flags = 0b00010 if durable else 0b01100
        arguments = b"\0\0" + short(queue) + bytes([flags]) + table({"x-queue-type": kind})
        await self._ask(method(QUEUE_DECLARE, arguments), QUEUE_DECLARE_OK)

    async def _ask(self, request: bytes, expected: tuple[int, int]) -> bytes:
        """Send a request; return the arguments of the expected answer."""
        self._pending = self._loop.create_future()
        self.transport.write(request)
        payload = await self.guard(self._pending)
        if payload[:4] != struct.pack(">HH", *expected):
            raise Refused(f"unexpected method {payload[:80]!r}")
        return payload[4:]

    def _control(self, kind: int, payload: bytes) -> None:
        if kind != HEARTBEAT and not self._pending.done():
            self._pending.set_result(payload)
        elif kind == METHOD and payload[1] in (10, 20):
            self.hang_up()


class Receiver(Client):
    """A device: passes on bodies, and acknowledges all that arrived together with one ack."""

    def __init__(self, take: Callable[[list[bytes]], None]) -> None:
        super().__init__()
        self._take = take
        self._taken = 0

    async def consume(self, queue: str, *, prefetch: int) -> None:
        """Start receiving, with at most `prefetch` messages unacknowledged."""
        await self._ask(method(BASIC_QOS, struct.pack(">IHB", 0, prefetch, 0)), BASIC_QOS_OK)
        arguments = b"\0\0" + short(queue) + short("c") + b"\0" + table({})
        await self._ask(method(BASIC_CONSUME, arguments), BASIC_CONSUME_OK)

    def data_received(self, data: bytes) -> None:
        taken: list[bytes] = []
        for kind, payload in self._parser.feed(data):
            if kind == BODY:
                taken.append(payload)
            elif kind == METHOD and payload[:4] != _DELIVER:
                self._control(kind, payload)
        if taken:
            # On a channel with one consumer, delivery tags count the messages; the last tag seen
            # may belong to a message whose body is still on its way, so the bodies are counted.
            self._taken += len(taken)
            self.transport.write(ack(self._taken, multiple=True))
            self._take(taken)


class Confirms:
    """Counts the messages that are confirmed without a gap; single confirms may overtake one
    another."""

    def __init__(self) -> None:
        self.count = 0
        self._early: set[int] = set()

    def add(self, tag: int, *, multiple: bool) -> None:
        """Note that a message is confirmed, or it and all before it."""
        if multiple:
            self._early = {early for early in self._early if early > tag}
            self.count = max(self.count, tag)
        elif tag == self.count + 1:
            self.count = tag
        elif tag > self.count:
            self._early.add(tag)
        while self.count + 1 in self._early:
            self.count += 1
            self._early.discard(self.count)


class Sender(Client):
    """A publisher with confirms and a window of unconfirmed messages."""

    def __init__(self, queue: str, *, window: int) -> None:
        super().__init__()
        self.window = Window(self, size=window, put=self._put)
        self._queue = queue
        self._heads: dict[int, bytes] = {}
        self._confirms = Confirms()

    async def ask_for_confirms(self) -> None:
        """Ask the broker to confirm messages that it has accepted."""
        await self._ask(method(CONFIRM_SELECT, b"\0"), CONFIRM_SELECT_OK)

    def data_received(self, data: bytes) -> None:
        confirms = self._confirms
        for kind, payload in self._parser.feed(data):
            if kind == METHOD and payload[:4] == _ACK:
                tag, flags = _ACKNOWLEDGED.unpack_from(payload, 4)
                confirms.add(tag, multiple=bool(flags & 1))
            elif kind == METHOD and payload[:4] == _NACK:
                raise Refused("the broker refused a message")
            else:
                self._control(kind, payload)
        if confirms.count > self.window.confirmed:
            self.window.confirm(confirms.count)

    def _put(self, payloads: Sequence[bytes]) -> None:
        self.transport.write(b"".join([self._message(payload) for payload in payloads]))

    def _message(self, payload: bytes) -> bytes:
        size = len(payload)
        head = self._heads.get(size)
        if head is None:
            head = self._heads[size] = publish_head(self._queue, size)
        return head + payload + END
