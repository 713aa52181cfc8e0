"""The REST door in front of a gateway in memory, and callers that knock."""

from __future__ import annotations

from collections.abc import AsyncIterator
from itertools import count

import httpx
import pytest

from lasthop.access.rest import Door, RestSettings, make_app
from tests.access.knocking import WayIn, knock
from tests.access.live import LiveInMemory


@pytest.fixture
def live() -> LiveInMemory:
    return LiveInMemory()


@pytest.fixture
def door(live: LiveInMemory) -> Door:
    numbers = count(1)
    return make_app(
        live, RestSettings(open_house=True), make_token=lambda: f"secret-{next(numbers)}"
    )


@pytest.fixture
async def http(door: Door) -> AsyncIterator[httpx.AsyncClient]:
    async with knock(door) as client:
        yield client


@pytest.fixture(params=["asgi", "direct"])
def both_ways_in(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Publishing requests come in by ASGI, and as whole requests."""
    monkeypatch.setattr(WayIn, "direct", request.param == "direct")
