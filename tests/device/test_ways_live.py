"""A device with three ways over real sockets, of which any two are taken away in turn: closed, or
silent. About `device/contact.py`, `device/way_attempts.py`
and `device/told_ways.py`."""

from __future__ import annotations

import asyncio
import os
import ssl
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from random import Random

import pytest

from lasthop.core.apps.behaviour import Behaviour
from lasthop.device import told_ways
from lasthop.device.client import Device
from lasthop.device.handle import MessageHandle
from lasthop.device.way import (
    MOST_TOLD,
    GatewayWay,
    Origin,
    WayDown,
    WayEvent,
    WayState,
    WaySuspect,
    WayUp,
)
from tests.device.gateway import APP, LiveGateway, live_gateway, until, websocket_server

pytestmark = pytest.mark.anyio

SECONDS = float(os.environ.get("LASTHOP_WAYS_SECONDS", "8"))
"""How long ways are taken away; nightly two minutes."""

LINKS = ("wifi", "mno", "ethernet")


class Relay:
    """A network between a device and its gateway, which works, is closed, or swallows everything
    for a while."""

    def __init__(self, port: int) -> None:
        self._gateway = port
        self._works = asyncio.Event()
        self._works.set()
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self.port = 0

    async def listen(self) -> None:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def take_away(self, *, silent: bool) -> None:
        self._works.clear()
        if not silent:
            await self.close()

    async def give_back(self) -> None:
        self._works.set()
        if self._server is None:
            await self.listen()

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None
        for writer in list(self._writers):
            writer.transport.abort()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # A middlebox accepts by itself, and only then asks whether anybody is behind it.
        task = asyncio.ensure_future(self._pass_on(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        try:
            await self._works.wait()
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._gateway)
            self._writers.add(far_writer)
            try:
                await asyncio.gather(self._pump(reader, far_writer), self._pump(far_reader, writer))
            finally:
                far_writer.transport.abort()
                self._writers.discard(far_writer)
        except OSError:
            pass
        finally:
            writer.transport.abort()
            self._writers.discard(writer)

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(1 << 16):
            await self._works.wait()
            writer.write(data)
        writer.close()


@asynccontextmanager
async def three_ways() -> AsyncIterator[tuple[LiveGateway, list[Relay], Device]]:
    async with AsyncExitStack() as stack:
        gateway = await stack.enter_async_context(live_gateway())
        relays = [Relay(gateway.port) for _ in LINKS]
        for relay in relays:
            await relay.listen()
            stack.push_async_callback(relay.close)
        first, *others = (
            GatewayWay(f"tcp://127.0.0.1:{relay.port}", link)
            for relay, link in zip(relays, LINKS, strict=True)
        )
        phone = Device(
            first.url,
            app=APP,
            name="phone",
            link=first.link,
            ways=others,
            learn_heartbeat=False,
        )
        yield gateway, relays, await stack.enter_async_context(phone)


class Speaker:
    """An application that sends a message now and then, and notes when the gateway has it."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self.sent = 0
        self.accepted: list[tuple[float, float]] = []
        """When a message was sent, and when it was accepted."""

    async def run(self) -> None:
        notes: set[asyncio.Task[None]] = set()
        while True:
            at = time.monotonic()
            handle = await self._device.send("device:phone", f"{self.sent}")
            self.sent += 1
            note = asyncio.ensure_future(self._note(at, handle))
            notes.add(note)
            note.add_done_callback(notes.discard)
            await asyncio.sleep(0.1)

    async def _note(self, at: float, handle: MessageHandle) -> None:
        await handle.accepted()
        self.accepted.append((at, time.monotonic()))

    async def next_after(self, moment: float) -> float:
        """How long after a moment the first message was accepted that was sent after it."""
        while True:
            done = [end for at, end in self.accepted if at >= moment]
            if done:
                return min(done) - moment
            await asyncio.sleep(0.02)


async def test_any_two_of_three_ways_may_be_taken_away() -> None:
    random = Random(7)
    alone: dict[str, list[float]] = {"closed": [], "silent": []}
    async with three_ways() as (_, relays, phone):
        got: list[str] = []
        phone.on_message(lambda message: got.append(message.text))
        await phone.contact(timeout=10)
        speaker = Speaker(phone)
        speaking = asyncio.ensure_future(speaker.run())
        end = time.monotonic() + SECONDS
        left = random.choice(relays)
        while time.monotonic() < end:
            left = random.choice([relay for relay in relays if relay is not left])
            how = random.choice(("closed", "silent"))
            await left.give_back()
            for relay in relays:
                if relay is not left:
                    await relay.take_away(silent=how == "silent")
            async with asyncio.timeout(30):
                alone[how].append(await speaker.next_after(time.monotonic()))
            await asyncio.sleep(random.uniform(0, 2))
        speaking.cancel()
        with suppress(asyncio.CancelledError):
            await speaking
        for relay in relays:
            await relay.give_back()
        await until(lambda: len(got) >= speaker.sent)
        assert got == [f"{n}" for n in range(speaker.sent)]
    for how, times in alone.items():
        if times:
            print(f"{how}: {len(times)} times, without contact at most {max(times):.2f} s")
    assert max(alone["closed"] + alone["silent"]) <= 5.0


async def test_a_silent_way_is_suspect_and_left_when_another_one_answers() -> None:
    told: list[WayEvent] = []
    async with three_ways() as (_, relays, phone):
        phone.on_way(told.append)
        await phone.contact(timeout=10)
        assert phone.links == ("wifi",)
        await relays[0].take_away(silent=True)
        handle = await phone.send("device:phone", "hello?")
        await handle.accepted(timeout=10)
        await until(lambda: phone.links[-1:] == ("mno",))
        assert [type(event) for event in told[-2:]] == [WaySuspect, WayUp]


async def test_the_application_hears_what_happens_to_ways() -> None:
    told: list[WayEvent] = []
    async with three_ways() as (_, relays, phone):
        phone.on_way(told.append)
        await phone.contact(timeout=10)
        states = {status.way.link: status.state for status in phone.ways}
        assert states == {"wifi": WayState.OPEN, "mno": WayState.IDLE, "ethernet": WayState.IDLE}
        await relays[0].take_away(silent=False)
        await until(lambda: phone.links == ("mno",))
        kinds = [type(event) for event in told]
        assert kinds == [WayUp, WayDown, WayUp]
        (way,) = [status.way for status in phone.ways if status.way.link == "mno"]
        phone.remove_way(way)
        await until(lambda: phone.links == ("ethernet",))
        phone.add_way(way)
        assert "mno" in {status.way.link for status in phone.ways}


# What the gateway tells.


async def test_a_device_learns_other_ways_and_keeps_them(tmp_path: Path) -> None:
    async with live_gateway() as gateway, websocket_server(gateway):
        other = gateway.websocket_url
        behaviour = Behaviour(ways=(f"mno={other}",))
        await gateway.engine.call(lambda core, _now: core.admin.behave(APP, behaviour))
        inbox = tmp_path / "inbox.db"
        async with Device(gateway.tcp_url, app=APP, name="phone", inbox=inbox) as phone:
            await phone.contact(timeout=10)
            await until(lambda: len(phone.ways) == 2)
        # The first URL leads nowhere now, and the device remembers another one.
        async with Device("tcp://127.0.0.1:1", app=APP, name="phone", inbox=inbox) as phone:
            await phone.contact(timeout=10)
            assert phone.links == ("mno",)


async def test_a_device_goes_where_the_gateway_sends_it() -> None:
    async with (
        live_gateway() as old,
        live_gateway() as new,
        Device(old.tcp_url, app=APP, name="phone") as phone,
    ):
        await phone.contact(timeout=10)
        old.engine.send_away(new.tcp_url)
        await until(lambda: new.tcp.connections == 1)
        await until(lambda: phone.connected)
        await until(lambda: old.tcp.connections == 0)
        await new.publish("here")
        assert (await anext(phone.messages())).text == "here"


async def test_if_the_other_host_does_not_answer_the_old_one_serves() -> None:
    async with live_gateway() as old, Device(old.tcp_url, app=APP, name="phone") as phone:
        await phone.contact(timeout=10)
        old.engine.send_away("tcp://127.0.0.1:1")
        await until(lambda: not phone.connected)
        await phone.contact(timeout=10)
        assert old.tcp.connections == 1


@pytest.mark.parametrize(
    "url, safe",
    [
        ("tcp://127.0.0.1:7300", True),
        ("ws://[::1]:8080/hop", True),
        ("tcp://localhost:7300", True),
        ("unix:/run/gateway", True),
        ("tcps://gateway.example:7300", True),
        ("tcp://gateway.example:7300", False),
        ("http://10.0.0.1/hop", False),
        ("carrier-pigeon://gateway", False),
        ("", False),
    ],
)
def test_who_may_name_ways(url: str, safe: bool) -> None:
    assert told_ways.is_safe(url, None) is safe


def test_an_authority_that_nobody_checks_names_no_ways() -> None:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    assert not told_ways.is_safe("tcps://gateway.example", context)


def test_told_ways_are_believed_only_if_they_are_as_safe() -> None:
    told = [("", "tcps://b.example"), ("mno", "tcp://c.example"), ("", "no address")]
    (way,) = told_ways.believed(told, None)
    assert (way.url, way.origin) == ("tcps://b.example", Origin.GATEWAY)
    many = [("", f"tcps://{n}.example") for n in range(40)]
    assert len(told_ways.believed(many, None)) == MOST_TOLD
    assert told_ways.load(told_ways.dump([way]), None) == [way]
    assert told_ways.load(b"garbage", None) == told_ways.load(None, None) == []
