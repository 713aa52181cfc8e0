"""The PAP door in front of a gateway in memory."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from lasthop.access.pap import PapDoor, PapSettings
from lasthop.access.pap.destinations import Destinations
from lasthop.access.rest import RestSettings, make_app
from tests.access.live import LiveInMemory
from tests.access.pap.initiating import Initiator

MakeDoor = Callable[..., PapDoor]


@pytest.fixture(autouse=True, params=["asgi", "direct"])
def way_in(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every test knocks in both ways."""
    monkeypatch.setattr(Initiator, "direct", request.param == "direct")


@pytest.fixture
def make_door(live: LiveInMemory) -> MakeDoor:
    def make(rest: RestSettings | None = None, **settings: object) -> PapDoor:
        context = make_app(live, rest or RestSettings(open_house=True)).context
        chosen = PapSettings(**settings)  # type: ignore[arg-type]
        return PapDoor(
            live,
            chosen,
            callers=context.callers,
            intake=context.intake,
            charge=context.charge,
            destinations=Destinations(hosts=chosen.notify_hosts, private=chosen.notify_private),
        )

    return make


@pytest.fixture
def pap(make_door: MakeDoor) -> PapDoor:
    return make_door()


@pytest.fixture
def initiator(pap: PapDoor, live: LiveInMemory) -> Initiator:
    """An initiator, and two people to push to."""
    live.register("phone", "news", user="alice", capabilities={"Model": "A1", "OSName": "x"})
    live.register("tablet", "news", user="alice", capabilities={"Model": "B2", "OSName": "x"})
    live.register("watch", user="bob")
    return Initiator(pap)
