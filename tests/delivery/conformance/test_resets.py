"""A TCP reset after any byte of a session, in either direction: nothing is lost, doubled
or out of order. `make nightly` has every byte of every kind that runs over TCP; here it is every
third byte of a session over TCP and some of the others.

About `delivery/` and `transport/`.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from tests.delivery.board import until
from tests.delivery.conformance.house import House, housed
from tests.delivery.conformance.relay import DOWN, UP, Relay, relaying
from tests.transport.certificates import Authority

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(1800 if "RESETS" in os.environ else 120)]

STEPS = {"tcp": 3, "beep": 23, "ws": 23, "http": 61, "poll+http": 61}
"""Every so manieth byte; with RESETS=1 it is every byte of each."""


async def converse(house: House, url: str, name: str) -> None:
    """A short session: some messages down, some up; checked at the end."""
    house.urls["relayed"] = url
    async with house.device("relayed", name=name) as device:
        heard: list[str] = []
        device.on_message(lambda message: heard.append(message.text))
        await device.contact(timeout=20)
        for n in range(2):
            await house.publish(b"down %d" % n, b"again %d" % n, name=name)
            await until(lambda n=n: len(heard) >= 3 * n + 2)  # type: ignore[misc]
            await device.send(f"device:{name}", f"up {n}")
            await until(lambda n=n: len(heard) >= 3 * n + 3)  # type: ignore[misc]
    assert heard == ["down 0", "again 0", "up 0", "down 1", "again 1", "up 1"]


async def record(house: House, relay: Relay, url: str) -> dict[str, int]:
    """How many bytes pass in each direction when nothing happens."""
    relay.expect(UP, None)
    await converse(house, url, "recorded")
    return dict(relay.passed)


@pytest.mark.parametrize("kind", STEPS)
async def test_a_reset_after_any_byte_changes_nothing(
    kind: str, authority: Authority, tmp_path: Path
) -> None:
    step = 1 if os.environ.get("RESETS") else STEPS[kind]
    async with housed(authority, tmp_path, kind) as house:
        port = int(re.findall(r":(\d+)", house.urls[kind])[0])
        async with relaying(port) as (relay, own):
            url = house.urls[kind].replace(f":{port}", f":{own}")
            lengths = await record(house, relay, url)
            tried = 0
            for direction in (UP, DOWN):
                for offset in range(0, lengths[direction], step):
                    relay.expect(direction, offset)
                    await converse(house, url, f"{direction}-{offset}")
                    tried += 1
    assert house.needless == []
    # Acknowledgements may be grouped differently, so that a session is a few bytes shorter; how
    # many polls it takes depends on how busy the machine is.
    assert relay.cuts > (0.5 if kind == "poll+http" else 0.9) * tried
