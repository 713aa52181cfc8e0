"""The history of a delivery as the gateway tells it, with what it waits for now."""

from __future__ import annotations

from pathlib import Path

import pytest

from lasthop.clock import HOUR, SECOND
from lasthop.core.gateway import Gateway
from lasthop.runtime.history import tell_now
from lasthop.store.base import Reader
from tests.core.rig import APP, Rig, to


class Live:
    """A gateway that a test drives by hand."""

    def __init__(self, rig: Rig) -> None:
        self._rig = rig

    def now(self) -> int:
        return self._rig.now

    def look(self, ask):  # type: ignore[no-untyped-def]
        gateway: Gateway = self._rig.gateway
        return ask(gateway)

    async def read(self, ask):  # type: ignore[no-untyped-def]
        store: Reader = self._rig.store
        return ask(store)


pytestmark = pytest.mark.anyio


async def test_an_open_delivery_ends_with_what_it_waits_for(tmp_path: Path) -> None:
    rig = Rig()
    rig.add("phone")
    (key,) = rig.publish(to("phone", deliver_before=rig.now + HOUR))
    rig.run()
    rig.now += 90 * SECOND
    number = rig.gateway.registry.named(APP, "phone").number
    *past, last = await tell_now(Live(rig), tmp_path, key, number)  # type: ignore[arg-type]
    assert [event.what for event in past] == ["accepted"]
    assert str(last) == (
        "2025-11-15T09:48:10.000000Z    +0:01:30  waits: the device is not in contact;"
        " it expires then (until 2025-11-15T10:46:40.000000Z)"
    )


async def test_one_that_has_ended_waits_for_nothing(tmp_path: Path) -> None:
    rig = Rig()
    channel = rig.connect()
    (key,) = rig.publish(to("phone"))
    rig.run()
    rig.ack(channel, 1)
    number = rig.gateway.registry.named(APP, "phone").number
    events = await tell_now(Live(rig), tmp_path, key, number)  # type: ignore[arg-type]
    assert events[-1].what == "delivered"
