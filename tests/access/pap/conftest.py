"""The PAP door in front of a gateway in memory."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from lasthop.access.pap import PapDoor, PapSettings
from lasthop.access.pap.destinations import Destinations
from lasthop.access.rest import RestSettings, make_app
from tests.access.desk import MemoryDesk
from tests.access.pap.initiating import Initiator

MakeDoor = Callable[..., PapDoor]


@pytest.fixture(autouse=True, params=["asgi", "direct"])
def way_in(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every test knocks in both ways."""
    monkeypatch.setattr(Initiator, "direct", request.param == "direct")


@pytest.fixture
def make_door(desk: MemoryDesk) -> MakeDoor:
    def make(rest: RestSettings | None = None, **settings: object) -> PapDoor:
        clerk = make_app(desk, rest or RestSettings(open_house=True)).clerk
        chosen = PapSettings(**settings)  # type: ignore[arg-type]
        return PapDoor(
            desk,
            chosen,
            callers=clerk.callers,
            intake=clerk.intake,
            charge=clerk.charge,
            destinations=Destinations(hosts=chosen.notify_hosts, private=chosen.notify_private),
        )

    return make


@pytest.fixture
def pap(make_door: MakeDoor) -> PapDoor:
    return make_door()


@pytest.fixture
def initiator(pap: PapDoor, desk: MemoryDesk) -> Initiator:
    """An initiator, and two people to push to."""
    desk.register("phone", "news", user="alice", capabilities={"Model": "A1", "OSName": "x"})
    desk.register("tablet", "news", user="alice", capabilities={"Model": "B2", "OSName": "x"})
    desk.register("watch", user="bob")
    return Initiator(pap)
