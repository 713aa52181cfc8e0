"""Over a proxy that flips bits, on links without TLS: no text arrives changed, and all arrive once
and in order.

About `wire/hop/checksums.py`.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from lasthop.clock import MILLISECOND
from lasthop.transport import requests
from lasthop.wire.hop import connection
from lasthop.wire.requests.bodies import with_checksum
from tests.delivery.board import until
from tests.delivery.conformance.house import House, housed
from tests.delivery.conformance.kinds import KINDS, SECURE, UNORDERED, calling, listening
from tests.delivery.conformance.relay import DOWN, UP, relaying
from tests.delivery.conformance.test_sessions import Traffic, in_contact
from tests.transport.certificates import Authority

pytestmark = pytest.mark.anyio

ONE_IN = 3000
"""Bytes of which one has a bit flipped, on average."""

ROUNDS, EACH = 50, 50
"""Of texts each way: 5,000 altogether."""


def anywhere(data: bytes) -> int:
    """A stream is the hop protocol's from its first byte."""
    return 0


def in_the_body(data: bytes) -> int:
    """Behind the head of an HTTP request: what the server reads by itself is not ours to check."""
    head = data.find(b"\r\n\r\n")
    return head + 4 if head >= 0 else len(data)


def in_the_message(data: bytes) -> int:
    """Behind the head of a WebSocket message, and not in the handshake of HTTP."""
    return len(data) if data.startswith((b"GET", b"HTTP")) else max(14, len(data) // 2)


PLACES: dict[str, Callable[[bytes], int]] = {
    "tcp": anywhere,
    "ws": in_the_message,
    "http": in_the_body,
}


class Flips:
    """One direction of one connection; now and then a bit arrives flipped."""

    def __init__(
        self,
        chance: random.Random,
        done: Counter[str],
        way: str,
        place: Callable[[bytes], int],
        *,
        bits: int = 8,
    ) -> None:
        self._random = chance
        self._done = done
        self._way = way
        self._place = place
        self._bits = bits

    def __call__(self, data: bytes) -> tuple[bytes, bool]:
        out = bytearray(data)
        for at in range(self._place(data), len(out)):
            if not self._random.randrange(ONE_IN):
                out[at] ^= 1 << self._random.randrange(self._bits)
                self._done[self._way] += 1
        return bytes(out), False


async def relayed(
    house: House,
    kind: str,
    damage: Callable[[str], Flips],
    act: Callable[[Traffic], Awaitable[None]],
) -> None:
    """Let a device of this kind and the gateway speak over a bad proxy."""
    port = int(re.findall(r":(\d+)", house.urls[kind])[0])
    async with relaying(port) as (relay, own):
        relay.damage = damage
        house.urls["damaged"] = house.urls[kind].replace(str(port), str(own))
        async with in_contact(house, "damaged") as traffic:
            await act(traffic)


@pytest.mark.parametrize("kind", PLACES)
async def test_of_5000_texts_over_a_link_that_flips_bits_none_arrives_changed(
    kind: str, authority: Authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "STALLED", 300 * MILLISECOND)
    done: Counter[str] = Counter()
    chance = random.Random(7)

    async def speak(traffic: Traffic) -> None:
        for _ in range(ROUNDS):
            await traffic.some(EACH)
            await traffic.arrived()
        assert traffic.device.damaged > 0

    async with housed(authority, tmp_path, kind) as house:
        damage = lambda way: Flips(chance, done, way, PLACES[kind])  # noqa: E731
        await relayed(house, kind, damage, speak)
    assert min(done[UP], done[DOWN]) >= 3


@pytest.mark.usefixtures("unchecked")
async def test_without_checksums_such_a_link_changes_texts(
    authority: Authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: Counter[str] = Counter()
    chance = random.Random(7)

    def in_a_text(data: bytes) -> int:
        """The last bytes of what is written are the end of a text."""
        return len(data) - 2 if data[-1:].isdigit() else len(data)

    async def speak(traffic: Traffic) -> None:
        monkeypatch.setattr("tests.delivery.conformance.test_checksums.ONE_IN", 20)
        for n in range(100):
            await traffic.house.publish(b"published %d" % n)
            await until(lambda: len(traffic.heard) > n)  # noqa: B023
        assert traffic.heard != [f"published {n}" for n in range(100)]

    async with housed(authority, tmp_path, "tcp") as house:
        damage = lambda way: Flips(chance, done, way, in_a_text, bits=4)  # noqa: E731
        await relayed(house, "tcp", damage, speak)


UNCHECKED = (*SECURE, "seqpacket")
"""TLS has better checksums of its own, and a socket of this machine damages nothing."""


@pytest.mark.parametrize("kind", KINDS)
async def test_checksums_are_offered_where_nothing_else_checks(
    kind: str, authority: Authority, tmp_path: Path
) -> None:
    async with listening(kind, tmp_path, authority) as place, calling(place) as caller:
        assert caller.link.checked is (kind not in UNCHECKED)


@pytest.mark.parametrize("kind", ["tcp", "ws", "beep", "http", "poll+http"])
async def test_a_damaged_write_costs_a_device_its_channel_and_is_counted(
    kind: str, authority: Authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with listening(kind, tmp_path, authority) as place, calling(place) as caller:
        before = len(place.board.frames)
        if kind in UNORDERED:
            other = lambda body, label: with_checksum(body, b"?")  # noqa: E731
            monkeypatch.setattr(requests, "with_checksum", other)
            caller.link.write([b"\x01"])
        else:
            caller.link.write([b"\x01\x01\x00bad!" if kind == "tcp" else b"\x01bad!"])
        await until(lambda: bool(place.board.ends))
        assert place.listener.errors == {"damaged_write": 1}
        assert len(place.board.frames) == before
        await until(lambda: caller.link.over)
