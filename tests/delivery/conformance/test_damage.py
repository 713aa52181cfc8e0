"""A device and a gateway under load over a link that damages frames now and then, in both
directions: nothing is lost, doubled or out of order.

Without TLS nobody notices when only a payload is damaged; here it is what tells frames apart.

About `delivery/` and `device/runner.py`.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from pathlib import Path

import pytest

from lasthop.wire.hop import layout
from tests.delivery.conformance.house import housed
from tests.delivery.conformance.relay import DOWN, UP, relaying
from tests.delivery.conformance.test_garbage import identity
from tests.delivery.conformance.test_sessions import in_contact
from tests.transport.certificates import Authority

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("unchecked")]

ONE_IN = 25
"""Frames of which one is damaged, on average."""

ROUNDS, EACH = 30, 15
"""Of messages each way."""

HANDSHAKE = {layout.HELLO, layout.WELCOME, layout.CLOSE}
"""These pass: a name or token that was damaged would be refused for good."""


class Frames:
    """One direction of one connection, frame by frame, some of them damaged so that whoever
    decodes them has to notice."""

    def __init__(self, chance: random.Random, done: Counter[tuple[str, str]], way: str) -> None:
        self._random = chance
        self._done = done
        self._way = way
        self._buffer = b""

    def __call__(self, data: bytes) -> tuple[bytes, bool]:
        self._buffer += data
        out = b""
        while (end := self._whole()) is not None:
            frame, self._buffer = self._buffer[:end], self._buffer[end:]
            kind = frame[self._start(frame)]
            if kind in HANDSHAKE or self._random.randrange(ONE_IN):
                out += frame
                continue
            how = self._random.choice(("flip", "length", "truncate", "insert"))
            self._done[self._way, how] += 1
            out += self._damaged(frame, how)
            if how == "truncate":
                return out, True
        return out, False

    def _start(self, data: bytes) -> int:
        """Where a frame begins behind its length."""
        return next(n for n, byte in enumerate(data) if byte < 0x80) + 1

    def _whole(self) -> int | None:
        """Where the first frame ends, if all of it is here."""
        if not any(byte < 0x80 for byte in self._buffer[:9]):
            return None
        start = self._start(self._buffer)
        length = sum((byte & 0x7F) << 7 * n for n, byte in enumerate(self._buffer[:start]))
        return start + length if start + length <= len(self._buffer) else None

    def _damaged(self, frame: bytes, how: str) -> bytes:
        start = self._start(frame)
        match how:
            case "flip":
                # A message gets into a lane, anything else a frame that nobody knows.
                bit = layout.IN_LANE if frame[start] >= layout.MESSAGE else 0x20
                return frame[:start] + bytes((frame[start] ^ bit,)) + frame[start + 1 :]
            case "length":
                return b"\xff\xff\xff\x7f" + frame[start:]
            case "truncate":
                return frame[: self._random.randrange(len(frame))]
            case _:
                return self._random.choice((b"\x00", b"\x03\x70??", b"\x02\x81?")) + frame


@pytest.mark.parametrize("seed", range(3))
async def test_frames_that_are_damaged_now_and_then_change_nothing(
    seed: int, authority: Authority, tmp_path: Path
) -> None:
    done: Counter[tuple[str, str]] = Counter()
    chance = random.Random(seed)
    async with housed(authority, tmp_path, "tcp") as house:
        port = int(re.findall(r":(\d+)", house.urls["tcp"])[0])
        async with relaying(port) as (relay, own):
            relay.damage = lambda way: Frames(chance, done, way)
            house.urls["damaged"] = f"tcp://127.0.0.1:{own}"
            async with in_contact(house, "damaged") as traffic:
                before = identity(traffic.device)
                for _ in range(ROUNDS):
                    await traffic.some(EACH)
                    await traffic.arrived()
                assert identity(traffic.device) == before, "the numbering goes on"
                assert traffic.device.damaged > 0
    ways = Counter(way for way, _ in done.elements())
    assert min(ways[UP], ways[DOWN]) >= 3
    assert {how for _, how in done} == {"flip", "length", "truncate", "insert"}
