"""A compact MQTT 3.1.1 client: publishes at quality 1 and 2 and receives at any quality, fast.

Packets that are handled together are answered together, in one write; a publisher keeps a window of
unconfirmed messages full. Nothing is stored across connections.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from enum import IntEnum

from bench.hop.link import Link
from bench.hop.window import Window

MAX_IN_FLIGHT = 0x7FFF
"""The most messages in flight: with half of the 16-bit packet identifiers in use, old and new ones
cannot be confused."""


class Packet(IntEnum):
    """The first byte of a packet, with the flags that MQTT fixes for it (2.2.2)."""

    CONNECT = 0x10
    CONNACK = 0x20
    PUBLISH = 0x30
    PUBACK = 0x40
    PUBREC = 0x50
    PUBREL = 0x62
    PUBCOMP = 0x70
    SUBSCRIBE = 0x82
    SUBACK = 0x90
    PINGREQ = 0xC0
    PINGRESP = 0xD0


class Refused(Exception):
    """The broker refused a request, or sent something that this client does not understand."""


def remaining_length(size: int) -> bytes:
    """Encode the length of the rest of a packet (2.2.3).

    >>> remaining_length(127).hex(), remaining_length(321).hex()
    ('7f', 'c102')
    """
    out = bytearray()
    while size > 0x7F:
        out.append(size & 0x7F | 0x80)
        size >>= 7
    out.append(size)
    return bytes(out)


def packet(first: int, body: bytes) -> bytes:
    """Encode a whole packet."""
    return bytes([first]) + remaining_length(len(body)) + body


def text(value: str) -> bytes:
    """Encode a string with its length in two bytes (1.5.3)."""
    raw = value.encode()
    return len(raw).to_bytes(2, "big") + raw


def connect(client: str, *, keep_alive: int = 0) -> bytes:
    """Encode a CONNECT with a clean session and no credentials."""
    return packet(
        Packet.CONNECT, text("MQTT") + b"\x04\x02" + keep_alive.to_bytes(2, "big") + text(client)
    )


def subscribe(identifier: int, topic: str, *, qos: int) -> bytes:
    """Encode a SUBSCRIBE to one topic."""
    return packet(Packet.SUBSCRIBE, identifier.to_bytes(2, "big") + text(topic) + bytes([qos]))


def publish(topic: str, payload: bytes, *, qos: int, identifier: int = 0) -> bytes:
    """Encode a PUBLISH; the identifier counts from 1 and is left out at quality 0."""
    return packet(
        Packet.PUBLISH | qos << 1,
        text(topic) + (identifier.to_bytes(2, "big") if qos else b"") + payload,
    )


def answer(kind: Packet, identifier: bytes) -> bytes:
    """Encode a PUBACK, PUBREC, PUBREL or PUBCOMP."""
    return bytes((kind, 2)) + identifier


class Parser:
    """Splits received bytes into packets."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        """Yield the first byte and the body of each packet that is complete."""
        if self._rest:
            data = self._rest + data
        at, end = 0, len(data)
        while end - at >= 2:
            size = data[at + 1]
            start = at + 2
            if size > 0x7F:
                shift, size = 7, size & 0x7F
                while start < end:
                    byte = data[start]
                    start += 1
                    size |= (byte & 0x7F) << shift
                    shift += 7
                    if byte < 0x80:
                        break
                    if shift > 21:
                        raise Refused("malformed remaining length")
                else:
                    break
            if end - start < size:
                break
            yield data[at], data[start : start + size]
            at = start + size
        self._rest = data[at:]


class Client(Link):
    """A connection that the broker has accepted, the base of publishers and devices."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self._name = name
        self._parser = Parser()
        self._pending: asyncio.Future[tuple[int, bytes]] = self._loop.create_future()

    async def open(self) -> None:
        """Send CONNECT and wait for the answer."""
        await self._ask(connect(self._name), Packet.CONNACK)

    async def subscribe(self, topic: str, *, qos: int) -> None:
        """Subscribe to one topic."""
        reply = await self._ask(subscribe(1, topic, qos=qos), Packet.SUBACK)
        if reply[2] != qos:
            raise Refused(f"subscribed at quality {reply[2]} instead of {qos}")

    async def _ask(self, request: bytes, expected: Packet) -> bytes:
        self._pending = self._loop.create_future()
        self.transport.write(request)
        first, body = await self.guard(self._pending)
        if first != expected or (expected is Packet.CONNACK and body[1]):
            raise Refused(f"unexpected answer {first:#x} {body.hex()}")
        return body

    def _control(self, first: int, body: bytes) -> None:
        if self._pending.done():
            raise Refused(f"unexpected packet {first:#x}")
        self._pending.set_result((first, body))


class Receiver(Client):
    """A device: passes on payloads and confirms them as their quality of service requires."""

    def __init__(self, name: str, take: Callable[[list[bytes]], None]) -> None:
        super().__init__(name)
        self._take = take
        self._held: dict[bytes, bytes] = {}

    def data_received(self, data: bytes) -> None:
        taken: list[bytes] = []
        replies: list[bytes] = []
        for first, body in self._parser.feed(data):
            if first & 0xF0 == Packet.PUBLISH:
                qos = first >> 1 & 3
                start = 2 + (body[0] << 8 | body[1])
                if not qos:
                    taken.append(body[start:])
                    continue
                identifier, payload = body[start : start + 2], body[start + 2 :]
                if qos == 1:
                    taken.append(payload)
                    replies.append(b"\x40\x02" + identifier)
                else:
                    self._held[identifier] = payload
                    replies.append(b"\x50\x02" + identifier)
            elif first == Packet.PUBREL:
                held = self._held.pop(body, None)
                if held is not None:
                    taken.append(held)
                replies.append(b"\x70\x02" + body)
            else:
                self._control(first, body)
        if replies:
            self.transport.write(b"".join(replies))
        if taken:
            self._take(taken)


class Sender(Client):
    """A publisher with a window of unconfirmed messages."""

    def __init__(self, name: str, *, topic: str, qos: int, window: int) -> None:
        super().__init__(name)
        self.window = Window(self, size=min(window, MAX_IN_FLIGHT), put=self._put)
        self._qos = qos
        self._topic = text(topic)
        self._heads: dict[int, bytes] = {}
        self._last_identifier = 0

    def data_received(self, data: bytes) -> None:
        replies: list[bytes] = []
        done = 0
        for first, body in self._parser.feed(data):
            if first in (Packet.PUBACK, Packet.PUBCOMP):
                done += 1
            elif first == Packet.PUBREC:
                replies.append(b"\x62\x02" + body)
            else:
                self._control(first, body)
        if replies:
            self.transport.write(b"".join(replies))
        if done:
            self.window.confirm(self.window.confirmed + done)

    def _put(self, payloads: Sequence[bytes]) -> None:
        self.transport.write(b"".join([self._packet(payload) for payload in payloads]))

    def _packet(self, payload: bytes) -> bytes:
        size = len(payload)
        head = self._heads.get(size)
        if head is None:
            first = bytes([Packet.PUBLISH | self._qos << 1])
            length = remaining_length(len(self._topic) + 2 + size)
            head = self._heads[size] = first + length + self._topic
        identifier = self._last_identifier = self._last_identifier % MAX_IN_FLIGHT + 1
        return head + identifier.to_bytes(2, "big") + payload
