"""A device over several channels at once, and going over from one to another, on real sockets."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

import pytest

from lasthop.clock import Micros
from lasthop.core.contacts.retransmission import LEAST_TIMEOUT, patience
from lasthop.core.session import Session
from lasthop.delivery.channel import Channel
from lasthop.device.client import Device
from lasthop.device.clock import DeviceClock
from lasthop.device.terms import DeviceTerms
from lasthop.errors import Conflict
from lasthop.wire.hop.frames import Credit, Frame
from tests.device.gateway import APP, LiveGateway, live_gateway, until, websocket_server
from tests.device.test_client import device, quick_backoff, take, texts

pytestmark = pytest.mark.anyio


@pytest.fixture
async def gateway() -> AsyncIterator[LiveGateway]:
    async with live_gateway() as live, websocket_server(live):
        yield live


def session_of(gateway: LiveGateway, name: str = "phone") -> Session:
    core = gateway.engine.gateway
    return core.deliveries.named(APP, name)


async def test_one_more_channel_is_joined_and_spoken_over(gateway: LiveGateway) -> None:
    async with device(gateway) as phone:
        await phone.contact(timeout=5)
        await phone.join(gateway.websocket_url, link="mno", network="operator")
        assert phone.channels == 2
        session = session_of(gateway)
        assert [line.link for line in session.lines] == ["wifi", "mno"]
        await gateway.publish("a")
        assert texts(await take(phone, 1)) == ["a"]
        handle = await phone.send("device:phone", "to myself")
        await handle.accepted()
        assert texts(await take(phone, 1)) == ["to myself"]


async def test_a_device_without_contact_joins_when_it_can(gateway: LiveGateway) -> None:
    phone = Device("tcp://127.0.0.1:1", app=APP, name="phone", backoff=quick_backoff())
    async with phone:
        await phone.join(gateway.tcp_url, link="mno")
        assert not phone.connected
        await phone.contact(timeout=5)
        assert phone.links == ("mno",)


async def test_a_device_without_contact_switches_when_it_can(gateway: LiveGateway) -> None:
    phone = Device("tcp://127.0.0.1:1", app=APP, name="phone", backoff=quick_backoff())
    async with phone:
        await phone.switch(gateway.tcp_url, link="mno")
        await phone.contact(timeout=5)
        assert phone.links == ("mno",)


async def test_a_joined_link_that_drops_is_joined_again(gateway: LiveGateway) -> None:
    async with device(gateway) as phone:
        await phone.contact(timeout=5)
        await phone.join(gateway.websocket_url, link="mno")
        for link in list(gateway.websocket._links):
            link.cut()
        await until(lambda: phone.channels == 1)
        await until(lambda: phone.channels == 2)
        assert set(phone.links) == {"wifi", "mno"}
        assert session_of(gateway).contacts == 1


async def test_a_channel_that_nobody_answers_is_not_joined(gateway: LiveGateway) -> None:
    async with device(gateway) as phone:
        await phone.contact(timeout=5)
        with pytest.raises(Conflict, match="the channel was not joined: "):
            await phone.join("tcp://127.0.0.1:1")
        assert phone.channels == 1
        await gateway.publish("a")
        assert texts(await take(phone, 1)) == ["a"]


async def test_the_loss_of_one_channel_is_not_the_loss_of_contact(gateway: LiveGateway) -> None:
    async with device(gateway) as phone:
        await phone.contact(timeout=5)
        await phone.join(gateway.websocket_url, link="mno")
        for link in list(gateway.tcp._links):
            link.cut()
        await until(lambda: phone.channels == 1)
        assert phone.connected
        await gateway.publish("a")
        assert texts(await take(phone, 1)) == ["a"]
        session = session_of(gateway)
        assert session.contacts == 1


async def test_the_loss_of_all_channels_is(gateway: LiveGateway) -> None:
    async with device(gateway) as phone:
        await phone.contact(timeout=5)
        await phone.join()
        for link in list(gateway.tcp._links):
            link.cut()
        session = session_of(gateway)
        await until(lambda: session.contacts == 2 and session.greeted)
        await gateway.publish("a")
        assert texts(await take(phone, 1)) == ["a"]


async def test_a_small_window_is_one_window_over_all_channels(gateway: LiveGateway) -> None:
    """What is acknowledged over one channel gives room on the other, for both sides."""
    terms = DeviceTerms(app=APP, name="phone", window=Credit(2, 1 << 20))
    phone = Device(gateway.tcp_url, app=APP, name="phone", terms=terms, backoff=quick_backoff())
    async with phone:
        await phone.contact(timeout=5)
        await gateway.publish(*(f"first {n}" for n in range(10)))
        assert len(await take(phone, 10)) == 10
        await phone.join(gateway.websocket_url, link="mno")
        await gateway.publish(*(f"second {n}" for n in range(10)))
        assert texts(await take(phone, 10)) == [f"second {n}" for n in range(10)]
        # Back over the first channel, which has heard of none of these.
        session = session_of(gateway)
        session.line = session.lines[0]
        await gateway.publish(*(f"third {n}" for n in range(10)))
        assert texts(await take(phone, 10)) == [f"third {n}" for n in range(10)]
        assert session.contacts == 1
        assert len(session.lines) == 2


async def test_switching_back_and_forth_under_load(gateway: LiveGateway) -> None:
    """TCP to WebSocket and back, again and again, with traffic both ways: nothing is lost, doubled
    or out of order, and what was acknowledged does not travel again."""
    count, rounds = 400, 6
    async with device(gateway) as phone, device(gateway, name="tablet") as tablet:
        await phone.contact(timeout=5)
        await tablet.contact(timeout=5)

        async def publish() -> None:
            for number in range(count):
                await gateway.publish(f"{number}")

        async def send() -> None:
            for number in range(count):
                await phone.send("device:tablet", f"{number}")

        async def switch() -> None:
            for number in range(rounds):
                urls = [gateway.websocket_url, gateway.tcp_url]
                await phone.switch(urls[number % 2], link="mno" if number % 2 == 0 else "wifi")
                await until(lambda: phone.channels == 1)

        _, _, _, down, up = await asyncio.gather(
            publish(), send(), switch(), take(phone, count), take(tablet, count)
        )
        assert texts(down) == [f"{number}" for number in range(count)]
        assert texts(up) == [f"{number}" for number in range(count)]
        session = session_of(gateway)
        assert session.contacts == 1, "a switch must not need a fresh contact"
        await until(lambda: not session.mailbox)


async def test_after_a_switch_the_device_comes_back_over_the_new_way(gateway: LiveGateway) -> None:
    async with device(gateway) as phone:
        await phone.contact(timeout=5)
        await phone.switch(gateway.websocket_url, link="mno")
        await until(lambda: phone.channels == 1)
        for link in list(gateway.websocket._links):
            link.cut()
        session = session_of(gateway)
        await until(lambda: session.contacts == 2 and session.greeted)
        assert session.link == "mno"
        assert gateway.tcp.connections == 0


class Stopwatch(DeviceClock):
    """A clock that can be stopped and set."""

    at: Micros | None = None

    def now(self) -> Micros:
        return super().now() if self.at is None else self.at


async def test_a_missing_receipt_is_missed_as_soon_as_receipts_usually_come(
    gateway: LiveGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Stopwatch()
    monkeypatch.setattr(gateway.engine, "_clock", clock)
    async with device(gateway) as phone:
        await phone.contact(timeout=5)
        await phone.join(gateway.websocket_url, link="mno")
        session = session_of(gateway)
        line = session.lines[-1]
        for _ in range(5):
            await gateway.publish("known")
            await take(phone, 1)
        await until(lambda: line.receipts is not None and not session.lane.outbound.in_flight)
        # From now on the newer channel swallows what it is given.
        channel = gateway.engine._channels[line.channel]
        send = type(channel).send

        def swallow(self: Channel, frames: Sequence[Frame]) -> None:
            if self is not channel:
                send(self, frames)

        monkeypatch.setattr(type(channel), "send", swallow)
        clock.at = clock.now()
        await gateway.publish("swallowed")
        timer = session.retransmission
        assert timer is not None
        await until(lambda: bool(session.lane.outbound.in_flight) and timer.due is not None)
        assert timer.due is not None
        (delivery,) = session.mailbox.values()
        assert delivery.sent_over == line.channel
        assert timer._timeout == patience(line.receipts) >= LEAST_TIMEOUT
        clock.at = timer.due
        gateway.engine._wake()
        assert texts(await take(phone, 1)) == ["swallowed"]
        assert delivery.sent_over == session.lines[0].channel
