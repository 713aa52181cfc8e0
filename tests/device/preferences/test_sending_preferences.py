"""A device that chooses a link for each message it sends, with a real gateway and two interconnects
on loopback: TCP and WebSocket."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from lasthop.clock import MILLISECOND, MINUTE, Micros
from lasthop.core.contacts.reception import Reception
from lasthop.core.preferences.feature import preferences_of
from lasthop.decision.budgets import Limit, Measure
from lasthop.decision.choice import QueueTerms
from lasthop.decision.constraints import QuietHours
from lasthop.decision.link_calendar import CalendarEntry, LinkCalendar
from lasthop.decision.links import Link, Tariff
from lasthop.decision.localtime import Period
from lasthop.decision.preferences import Preferences
from lasthop.device.client import Device
from lasthop.device.handle import MessageRefused, Status
from lasthop.device.outgoing import ordinary
from lasthop.device.retry import LinkClosed
from lasthop.device.terms import DeviceTerms
from lasthop.transport.link import ChannelLink as Channel
from lasthop.wire.hop.frames import Frame, MessageFrame, Piece
from tests.device.gateway import APP, LiveGateway, live_gateway, until, websocket_server
from tests.device.test_client import device, quick_backoff, take, texts
from tests.device.test_lines import session_of

pytestmark = pytest.mark.anyio

WIFI = Link("wifi", Tariff(), latency=5 * MILLISECOND)
MNO = Link("mno", Tariff(per_unit=1000), latency=50 * MILLISECOND)


class Ears:
    """What the gateway has heard, with the link that it came over."""

    def __init__(self) -> None:
        self.messages: list[tuple[str, str]] = []
        self.pieces: list[tuple[str, int]] = []

    def hear(self, reception: Reception, channel: int, frames: Sequence[Frame]) -> None:
        session = reception._contacts.session(channel)
        line = None if session is None else session.line_of(channel)
        link = "" if line is None else line.link
        for frame in frames:
            if isinstance(frame, MessageFrame) and ordinary(frame):
                self.messages.append((link, frame.body.decode()))
            elif isinstance(frame, Piece) and frame.body:
                self.pieces.append((link, len(frame.body)))


@pytest.fixture
def ears(monkeypatch: pytest.MonkeyPatch) -> Ears:
    ears, receive = Ears(), Reception.receive

    def heard(
        self: Reception, channel: int, frames: Sequence[Frame], now: Micros, *, local: bool
    ) -> None:
        ears.hear(self, channel, frames)
        receive(self, channel, frames, now, local=local)

    monkeypatch.setattr(Reception, "receive", heard)
    return ears


@pytest.fixture
async def gateway() -> AsyncIterator[LiveGateway]:
    async with live_gateway() as live, websocket_server(live):
        yield live


def per_day(amount: int, link: str | None = None) -> Limit:
    return Limit(amount, Measure.MESSAGES, Period.DAY, link=link)


async def meet(phone: Device, gateway: LiveGateway, preferences: Preferences) -> None:
    """Contact over wifi (TCP) and mno (WebSocket), with these wishes."""
    await phone.contact(timeout=5)
    await phone.join(gateway.websocket_url, link="mno")
    await (await phone.prefer(preferences)).accepted(timeout=5)


async def test_each_message_goes_over_the_link_of_its_queue(
    gateway: LiveGateway, ears: Ears
) -> None:
    preferences = Preferences(
        links=(WIFI, MNO), queues=(QueueTerms("dear", links=("mno",)), QueueTerms(""))
    )
    async with device(gateway) as phone:
        await meet(phone, gateway, preferences)
        sent = [
            await phone.send("device:phone", str(n), queue="dear" if n % 2 else "plain")
            for n in range(10)
        ]
        for handle in sent:
            await handle.accepted(timeout=5)
        assert sorted(texts(await take(phone, 10))) == [str(n) for n in range(10)]
        assert {link for link, body in ears.messages if int(body) % 2} == {"mno"}
        assert {link for link, body in ears.messages if not int(body) % 2} == {"wifi"}
        explanation = await phone.explain(sent[1])
        assert explanation is not None
        assert (explanation.outlook, explanation.link) == ("sent", "mno")


async def test_limits_hold_across_a_restart_of_the_device(
    gateway: LiveGateway, ears: Ears, tmp_path: Path
) -> None:
    preferences = Preferences(links=(WIFI, MNO), limits=(per_day(2),))
    async with device(gateway, inbox=tmp_path / "inbox") as phone:
        await phone.contact(timeout=5)
        await (await phone.prefer(Preferences(), sending=preferences)).accepted(timeout=5)
        first = await phone.send("topic:news", "a")
        await first.accepted(timeout=5)
        (meter,) = await phone.spending()
        assert meter.used == 1
    async with device(gateway, inbox=tmp_path / "inbox") as phone:
        await phone.contact(timeout=5)
        second, third = [await phone.send("topic:news", body) for body in "bc"]
        await second.accepted(timeout=5)
        (waiting,) = await phone.held_back()
        assert waiting.id == third.id
        assert "2 of 2 messages per day used" in str(waiting)
        assert third.status is Status.QUEUED
        await (await phone.prefer(Preferences())).accepted(timeout=5)
        await third.accepted(timeout=5)
        assert await phone.explain(third) is None
    assert [body for _, body in ears.messages] == ["a", "b", "c"]


async def test_what_waits_for_a_link_leaves_when_it_comes(gateway: LiveGateway, ears: Ears) -> None:
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
        await (await phone.prefer(preferences)).accepted(timeout=5)
        handle = await phone.send("topic:news", "patient")
        await until(lambda: bool(wanted))
        assert wanted[0] == ("home",)
        (waiting,) = await phone.held_back()
        assert "home is better" in str(waiting)
        await phone.join(gateway.websocket_url, link="home")
        await handle.accepted(timeout=5)
        assert ears.messages == [("home", "patient")]


async def test_a_spent_link_is_closed_and_not_joined_again(
    gateway: LiveGateway, ears: Ears
) -> None:
    preferences = Preferences(
        links=(WIFI, MNO),
        limits=(per_day(1, "mno"),),
        queues=(QueueTerms("dear", links=("mno",)), QueueTerms("")),
    )
    async with device(gateway) as phone:
        await meet(phone, gateway, preferences)
        await (await phone.send("topic:news", "a", queue="dear")).accepted(timeout=5)
        await until(lambda: phone.channels == 1)
        assert list(phone.closed_links) == ["mno"]
        with pytest.raises(LinkClosed, match="mno has reached its limit"):
            await phone.join(gateway.websocket_url, link="mno")
        await (await phone.send("topic:news", "b")).accepted(timeout=5)
        assert ears.messages == [("mno", "a"), ("wifi", "b")]


async def test_the_last_link_stays_open_to_hear_when_it_is_spent(
    gateway: LiveGateway, ears: Ears
) -> None:
    sending = Preferences(links=(WIFI,), limits=(per_day(1, "wifi"),))
    async with device(gateway) as phone:
        await phone.contact(timeout=5)
        await (await phone.prefer(Preferences(), sending=sending)).accepted(timeout=5)
        await (await phone.send("topic:news", "a")).accepted(timeout=5)
        await until(lambda: "wifi" in phone.closed_links)
        await gateway.publish("still here")
        assert texts(await take(phone, 1)) == ["still here"]


async def test_a_message_for_one_link_only_does_not_stop_the_others_when_that_is_lost(
    gateway: LiveGateway, ears: Ears
) -> None:
    preferences = Preferences(
        links=(WIFI, MNO), queues=(QueueTerms("home", links=("wifi",)), QueueTerms(""))
    )
    async with device(gateway) as phone:
        await meet(phone, gateway, preferences)
        (tcp,) = gateway.tcp._links
        tcp.cut()
        home = await phone.send("topic:news", "photo", queue="home")
        chat = await phone.send("topic:news", "chat")
        await chat.accepted(timeout=5)
        assert home.status < Status.ACCEPTED
        await phone.join(gateway.tcp_url, link="wifi")
        await home.accepted(timeout=5)
        assert ("mno", "photo") not in ears.messages


async def test_what_was_lost_with_the_only_link_it_may_use_is_taken_back(
    gateway: LiveGateway, ears: Ears, monkeypatch: pytest.MonkeyPatch
) -> None:
    preferences = Preferences(
        links=(WIFI, MNO), queues=(QueueTerms("home", links=("wifi",)), QueueTerms(""))
    )
    async with device(gateway) as phone:
        await meet(phone, gateway, preferences)
        lines = phone._contact._lines
        (wifi,) = (link for link in lines.open if phone._contact._way_of(link).link == "wifi")
        hand_over = lines._hand_over

        def swallow(link: Channel, frames: Sequence[Frame]) -> None:
            if link is not wifi:
                hand_over(link, frames)

        monkeypatch.setattr(lines, "_hand_over", swallow)
        home = await phone.send("topic:news", "photo", queue="home")
        await home.reached(Status.SENT, timeout=5)
        wifi.cut()
        await until(lambda: phone.links == ("mno",))
        chat = await phone.send("topic:news", "chat")
        await chat.accepted(timeout=5)
        assert home.status < Status.ACCEPTED
        assert [held.id for held in await phone.held_back()] == [home.id]
        await phone.join(gateway.tcp_url, link="wifi")
        await home.accepted(timeout=5)
        assert ("wifi", "photo") in ears.messages
        assert ("mno", "photo") not in ears.messages


async def test_a_deadline_that_no_link_may_meet_is_told_by_the_device_itself(
    gateway: LiveGateway, ears: Ears
) -> None:
    async with device(gateway) as phone:
        await phone.contact(timeout=5)
        sending = Preferences(links=(WIFI,), limits=(per_day(0),))
        await (await phone.prefer(Preferences(), sending=sending)).accepted(timeout=5)
        handle = await phone.send("topic:news", "a", expires_in=0.05)
        with pytest.raises(MessageRefused, match="has passed"):
            await handle.accepted(timeout=5)
        assert ears.messages == []


async def test_a_large_body_goes_over_the_link_of_its_queue(
    gateway: LiveGateway, ears: Ears
) -> None:
    preferences = Preferences(
        links=(WIFI, MNO), queues=(QueueTerms("dear", links=("mno",)), QueueTerms(""))
    )
    phone = Device(
        gateway.tcp_url,
        app=APP,
        name="phone",
        backoff=quick_backoff(),
        link="wifi",
        terms=DeviceTerms(app=APP, name="phone", segment=4096),
    )
    async with phone:
        await meet(phone, gateway, preferences)
        sent = await phone.send("device:phone", b"x" * 100_000, queue="dear")
        await sent.accepted(timeout=5)
        (message,) = await take(phone, 1)
        assert await message.fetch() == b"x" * 100_000
        assert {link for link, _ in ears.pieces} == {"mno"}
        assert sum(size for _, size in ears.pieces) == 100_000


async def test_the_gateway_and_the_device_count_what_they_send_each(
    gateway: LiveGateway, ears: Ears
) -> None:
    async with device(gateway) as phone:
        await phone.contact(timeout=5)
        preferences = Preferences(links=(WIFI,), limits=(per_day(5),))
        await (await phone.prefer(preferences)).accepted(timeout=5)
        await (await phone.send("topic:news", "up")).accepted(timeout=5)
        await gateway.publish("down", "down")
        await take(phone, 2)
        (ours,) = await phone.spending()
        device_preferences = preferences_of(session_of(gateway))
        assert device_preferences is not None
        (theirs,) = device_preferences.budgets.usage(gateway.clock.now())
        assert (ours.used, theirs.used) == (1, 2)


async def test_what_another_device_can_never_have_is_refused_with_why(gateway: LiveGateway) -> None:
    always = Preferences(quiet=(QuietHours("UTC", start=0, end=1440),))
    async with device(gateway) as phone, device(gateway, name="watch") as watch:
        await watch.contact(timeout=5)
        await (await watch.prefer(always)).accepted(timeout=5)
        handle = await phone.send("device:watch", "hush", expires_in=60)
        await handle.reached(Status.REFUSED, timeout=5)
        with pytest.raises(MessageRefused, match="quiet hours 00:00-24:00 UTC") as refused:
            await handle.accepted()
        assert refused.value.reason == "contradiction"
