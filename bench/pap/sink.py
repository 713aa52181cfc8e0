"""All clients of a run in one process, which counts their datagrams."""

from __future__ import annotations

import asyncio
import socket
import sys
import time
from contextlib import suppress

import msgspec

from bench.pap.jobs import Arrived, Expect, Ready, Sink
from bench.pap.payload import number_of

BUFFER = 64 << 20
"""Bytes of the receive buffer; the kernel may give less. Datagrams lost here are not the gateway's
fault."""


class _Clients(asyncio.DatagramProtocol):
    def __init__(self) -> None:
        self.arrivals: list[tuple[float, bytes]] = []
        self.wanted = -1
        self.enough = asyncio.Event()

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        self.arrivals.append((time.monotonic(), data))
        if len(self.arrivals) == self.wanted:
            self.enough.set()

    async def expect(self, count: int, seconds: float) -> list[tuple[float, bytes]]:
        """Return `count` datagrams, or those that have arrived after `seconds` seconds."""
        self.wanted = count
        self.enough.clear()
        if len(self.arrivals) < count:
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self.enough.wait()
        arrivals, self.arrivals = self.arrivals, []
        return arrivals


async def _run(job: Sink) -> None:
    loop = asyncio.get_running_loop()
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    for option in (getattr(socket, "SO_RCVBUFFORCE", 33), socket.SO_RCVBUF):
        try:
            sock.setsockopt(socket.SOL_SOCKET, option, BUFFER)
        except OSError:
            continue
    sock.bind(("0.0.0.0", job.port))
    sock.setblocking(False)
    _, clients = await loop.create_datagram_endpoint(_Clients, sock=sock)
    _say(Ready())
    while line := await loop.run_in_executor(None, sys.stdin.buffer.readline):
        order = msgspec.json.decode(line, type=Expect)
        _say(_told(await clients.expect(order.count, order.seconds)))


def _told(arrivals: list[tuple[float, bytes]]) -> Arrived:
    times: dict[int, float] = {}
    duplicates = strangers = 0
    for at, data in arrivals:
        number = number_of(data)
        if number < 0:
            strangers += 1
        elif number in times:
            duplicates += 1
        else:
            times[number] = at
    return Arrived(times, duplicates, strangers)


def _say(what: msgspec.Struct) -> None:
    sys.stdout.buffer.write(msgspec.json.encode(what) + b"\n")
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    asyncio.run(_run(msgspec.json.decode(sys.argv[1], type=Sink)))
