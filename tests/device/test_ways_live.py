"""A device with three ways over real sockets, of which any two are taken away in turn: closed, or
silent. About `device/contact.py` and `device/way_attempts.py`."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from random import Random

import pytest

from lasthop.device.client import Device
from lasthop.device.handle import MessageHandle
from lasthop.device.way import GatewayWay, WayDown, WayEvent, WayState, WaySuspect, WayUp
from tests.device.gateway import APP, LiveGateway, live_gateway, until

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
