"""A device that has preferences, with a real gateway on loopback."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

import pytest

from lasthop.clock import DAY, MILLISECOND, MINUTE
from lasthop.core.preferences.feature import preferences_of
from lasthop.core.publishing.submission import Submission
from lasthop.decision.budgets import Limit, Measure
from lasthop.decision.choice import QueueTerms
from lasthop.decision.link_calendar import CalendarEntry, LinkCalendar
from lasthop.decision.links import Link, Tariff
from lasthop.decision.localtime import Period
from lasthop.decision.preferences import Preferences
from lasthop.device.retry import LinkClosed
from lasthop.message import Target, TargetKind
from tests.device.gateway import APP, LiveGateway, live_gateway, until, websocket_server
from tests.device.test_client import device, take, texts
from tests.device.test_lines import session_of

pytestmark = pytest.mark.anyio

WIFI = Link("wifi", Tariff(), latency=5 * MILLISECOND)
MNO = Link("mno", Tariff(per_unit=1000), latency=50 * MILLISECOND)


@pytest.fixture
async def gateway() -> AsyncIterator[LiveGateway]:
    async with live_gateway() as live, websocket_server(live):
        yield live


async def test_both_sides_use_the_cheaper_link(gateway: LiveGateway) -> None:
    async with device(gateway) as phone:
        await phone.contact(timeout=5)
        await (await phone.prefer(Preferences(links=(WIFI, MNO)))).accepted()
        await phone.join(gateway.websocket_url, link="mno")
        await gateway.publish("a")
        assert texts(await take(phone, 1)) == ["a"]
        session = session_of(gateway)
        assert preferences_of(session) is not None
        assert phone.links[-1] == "wifi"
        (message,) = await take_sent(gateway)
        assert message == "wifi"


async def take_sent(gateway: LiveGateway) -> list[str]:
    """The links over which messages have left."""
    links: list[str] = []
    await gateway.engine.call(lambda gateway, now: gateway.hurry())
    for page in gateway.store.events(0, 1 << 30):
        for line in page.lines.splitlines():
            event = json.loads(line)
            if event["kind"] == "transmitted":
                links.append(event["link"])
    return links


async def test_the_device_is_told_which_link_is_wanted(gateway: LiveGateway) -> None:
    calendar = LinkCalendar.of(
        [CalendarEntry("home", tuple(range(7)), 0, 24, 1.0)], zone_name="UTC"
    )
    home = Link("home", Tariff(), latency=MILLISECOND)
    preferences = Preferences(
        links=(home, MNO), calendar=calendar, queues=(QueueTerms("", max_delay=10 * MINUTE),)
    )
    wanted: list[tuple[str, ...]] = []
    async with device(gateway) as phone:
        phone.on_links_wanted(wanted.append)
        await phone.contact(timeout=5)
        await phone.switch(link="mno")
        await (await phone.prefer(preferences)).accepted()
        await gateway.publish("a")
        await until(lambda: bool(wanted))
        assert wanted == [("home",)]
        await phone.join(link="home")
        assert texts(await take(phone, 1)) == ["a"]


async def test_a_link_that_is_used_up_is_closed_and_not_opened_again(gateway: LiveGateway) -> None:
    limit = Limit(1, Measure.MESSAGES, Period.DAY, link="mno")
    async with device(gateway) as phone:
        await phone.contact(timeout=5)
        await phone.join(gateway.websocket_url, link="mno")
        # Only the dear one may be used by this queue.
        preferences = Preferences(
            links=(WIFI, MNO), limits=(limit,), queues=(QueueTerms("dear", links=("mno",)),)
        )
        await (await phone.prefer(preferences)).accepted()
        await publish_to(gateway, "dear", "first")
        assert texts(await take(phone, 1)) == ["first"]
        await until(lambda: phone.channels == 1)
        assert "mno" in phone.closed_links
        assert phone.closed_links["mno"] <= phone._clock.now() + DAY
        with pytest.raises(LinkClosed, match="mno has reached its limit"):
            await phone.join(gateway.websocket_url, link="mno")
        assert phone.connected
        await gateway.publish("over wifi")
        assert texts(await take(phone, 1)) == ["over wifi"]


async def publish_to(gateway: LiveGateway, queue: str, body: str) -> None:
    prefer = Submission(target=Target(TargetKind.DEVICE, "phone"), body=body.encode(), queue=queue)
    await gateway.engine.call(lambda core, now: core.publish(APP, "test", [prefer], now))
