"""Sends a gateway what nobody should send, and watches it from outside: `lasthop bench hostile`.

Headers without end, slow clients, compressed bombs, mutated requests and mutated hop frames, one
after the other. The gateway's memory may grow by `MOST_GROWTH`, and `/health` has to answer within
`SLOWEST`, with nothing else on the machine.
"""

from __future__ import annotations

import gzip
import socket
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random

import msgspec
from rich.console import Console

from bench.hop.gateway import Gateway, gateway
from bench.hop.processes import Failed, heed_termination
from bench.soak.watching import GatewayWatch, HealthProbe
from lasthop.wire.hop.frames import Hello, MessageFrame, Ping
from lasthop.wire.hop.handshake import Dialing, Opened
from lasthop.wire.hop.mapping import Mapping

MOST_GROWTH = 64.0
"""Megabytes by which the memory of the gateway may grow."""

SLOWEST = 100.0
"""Milliseconds in which `/health` has to answer."""

FRAMES_AT_ONCE = 1000
"""Mutated frames that are sent over one connection. The gateway reads them up to the first that it
refuses, and discards the rest: they are sent, and counted, all the same."""

HEADERS = 2_000
SLOW_CLIENTS = 200
BOMBS = 20

POST = b"POST /v1/messages HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
BODY = b'{"to":"topic:news","body":"x"}'
REQUESTS = (
    POST + b"Content-Length: %d\r\n\r\n" % len(BODY) + BODY,
    POST + b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\n\r\n" % (len(BODY), BODY),
    b"GET /v1/devices?limit=2 HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: */*\r\n\r\n",
    b"POST /pap HTTP/1.1\r\nHost: x\r\nContent-Type: text/xml\r\nContent-Length: 6\r\n\r\n<pap/>",
    b"GET /hop HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
)


class Attack(msgspec.Struct, kw_only=True):
    """What one kind of input did to the gateway."""

    sent: int
    """Connections, requests or frames, whatever the attack is made of."""
    seconds: float
    memory_mb: float
    """The memory of the gateway after it."""
    worst_health_ms: float


class Hostile(msgspec.Struct, kw_only=True):
    """The result of all attacks."""

    memory_before_mb: float
    growth_mb: float
    worst_health_ms: float
    health_failed: int
    attacks: dict[str, Attack]
    good: bool


def mutated(random: Random, data: bytes) -> bytes:
    """Return the bytes with some of them changed, removed or repeated."""
    changed = bytearray(data)
    for _ in range(random.choice((1, 1, 2, 4))):
        at = random.randrange(len(changed) + 1)
        match random.randrange(3):
            case 0:
                changed[at : at + 1] = bytes((random.randrange(256),))
            case 1:
                del changed[at : at + random.randrange(1, 6)]
            case _:
                changed[at:at] = changed[at : at + random.randrange(1, 20)]
    return bytes(changed)


def _exchange(port: int, data: bytes, *, wait: float = 0.2) -> None:
    """Send bytes on a connection of their own, and read what comes until it ends."""
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=wait) as peer:
        peer.sendall(data)
        with suppress(OSError):
            peer.shutdown(socket.SHUT_WR)
        while peer.recv(65536):
            pass


def headers(gateway: Gateway, _: Random, count: int) -> int:
    """Send headers without end on one connection after the other."""
    for _number in range(count):
        _exchange(gateway.http, b"GET / HTTP/1.1\r\nHost: x\r\n" + b"a:b\r\n" * 20_000)
    return count


def slow_clients(gateway: Gateway, _: Random, count: int) -> int:
    """Hold connections open with half a request."""
    peers = [socket.create_connection(("127.0.0.1", gateway.http)) for _number in range(count)]
    for peer in peers:
        with suppress(OSError):
            peer.sendall(POST)
    time.sleep(2)
    for peer in peers:
        peer.close()
    return count


def bombs(gateway: Gateway, _: Random, count: int) -> int:
    """Send small bodies that would be large if they were unpacked."""
    packed = gzip.compress(bytes(64 << 20))
    head = POST + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(packed)
    for _number in range(count):
        _exchange(gateway.http, head + packed, wait=2)
    return count


def requests(gateway: Gateway, random: Random, count: int) -> int:
    """Send mutated requests."""
    for _number in range(count):
        _exchange(gateway.http, mutated(random, random.choice(REQUESTS)))
    return count


def frames(gateway: Gateway, random: Random, count: int) -> int:
    """Send mutated frames of the hop protocol behind a good HELLO; a connection that the gateway
    closes is replaced."""
    sent = 0
    while sent < count:
        dialing = Dialing(Hello(app="default", device="stranger"), mapping=Mapping.STREAM, now=0)
        with suppress(OSError):
            sent += _frames(gateway, random, dialing, min(FRAMES_AT_ONCE, count - sent))
    return sent


def _frames(gateway: Gateway, random: Random, dialing: Dialing, count: int) -> int:
    with socket.create_connection(("127.0.0.1", gateway.broker.port), timeout=5) as peer:
        peer.sendall(b"".join(dialing.data_to_send()))
        opened: Opened | None = None
        while opened is None:
            data = peer.recv(65536)
            if not data:
                return 1
            opened = dialing.receive(data, 0)
        device = opened.connection
        written = bytearray()
        for number in range(count):
            frame = MessageFrame(number, None, "topic:news", None, b"hello")
            device.send((frame if number % 2 else Ping(),), 0)
            written += mutated(random, b"".join(device.data_to_send()))
        with suppress(OSError):
            peer.sendall(written)
            peer.shutdown(socket.SHUT_WR)
            while peer.recv(65536):
                pass
    return count


def run(
    *,
    frame_count: int,
    request_count: int,
    seed: int,
    directory: Path | None = None,
    as_json: bool = False,
) -> int:
    """Attack a gateway and print the result; return the exit status."""
    said = Console(stderr=True, highlight=False)
    heed_termination()
    with tempfile.TemporaryDirectory(prefix="lasthop-hostile-", dir=directory) as place:
        try:
            result = attack(
                Path(place),
                frame_count=frame_count,
                request_count=request_count,
                seed=seed,
                console=said,
            )
        except Failed as error:
            said.print(f"lasthop bench: {error}")
            return 1
    if as_json:
        sys.stdout.write(msgspec.json.encode(result).decode() + "\n")
    else:
        console = Console(highlight=False, soft_wrap=True)
        for name, one in result.attacks.items():
            console.print(
                f"{name}: {one.sent:,} in {one.seconds:.1f} s; {one.memory_mb:.0f} MB after it,"
                f" /health at most {one.worst_health_ms:.0f} ms"
            )
        console.print(
            f"{'PASS' if result.good else 'FAIL'}: the memory grew by {result.growth_mb:.0f} MB"
            f" (at most {MOST_GROWTH:g}), /health took at most {result.worst_health_ms:.0f} ms"
            f" (at most {SLOWEST:g}) and failed {result.health_failed} times"
        )
    return 0 if result.good else 1


def attack(
    place: Path, *, frame_count: int, request_count: int, seed: int, console: Console
) -> Hostile:
    """Try every attack on one gateway, in order."""
    random = Random(seed)
    plan: dict[str, tuple[Callable[[Gateway, Random, int], int], int]] = {
        "headers": (headers, min(HEADERS, max(1, request_count // 50))),
        "slow_clients": (slow_clients, SLOW_CLIENTS),
        "bombs": (bombs, BOMBS),
        "requests": (requests, request_count),
        "frames": (frames, frame_count),
    }
    attacks: dict[str, Attack] = {}
    with gateway(place / "data") as running, HealthProbe(running.http) as probe:
        watch = GatewayWatch(running, probe)
        time.sleep(1)
        before = highest = watch.sample().memory_mb
        for name, (act, count) in plan.items():
            began = time.monotonic()
            sent = act(running, random, count)
            seen = watch.sample()
            highest = max(highest, seen.memory_mb)
            attacks[name] = Attack(
                sent=sent,
                seconds=round(time.monotonic() - began, 1),
                memory_mb=round(seen.memory_mb, 1),
                worst_health_ms=round(seen.worst_ms, 1),
            )
            console.print(f"{name}: {sent:,} sent")
        worst = max(one.worst_health_ms for one in attacks.values())
        failed = probe.failed
    growth = highest - before
    return Hostile(
        memory_before_mb=round(before, 1),
        growth_mb=round(growth, 1),
        worst_health_ms=worst,
        health_failed=failed,
        attacks=attacks,
        good=growth <= MOST_GROWTH and worst <= SLOWEST and not failed,
    )
