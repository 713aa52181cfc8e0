"""A device behind an address translator that forgets: over real sockets, on a clock that jumps."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from lasthop.clock import SECOND, Micros
from lasthop.decision.heartbeat import SAFE, Networks
from lasthop.device import heartbeats
from lasthop.device.client import Device
from lasthop.device.clock import DeviceClock
from lasthop.device.heartbeats import MEMORY
from lasthop.device.inbox_sqlite import SqliteInbox
from lasthop.wire.hop.heartbeat import PATIENCE, Pinging
from tests.device.gateway import APP, LiveGateway, until

pytestmark = pytest.mark.anyio


class Jumps:
    """Real time, and what was skipped of it."""

    def __init__(self) -> None:
        self._real = DeviceClock()
        self.skipped: Micros = 0
        self.at_rest = asyncio.Event()
        self.swallowed = asyncio.Event()
        self.silences: list[int] = []
        self.in_silence: Callable[[], None] = lambda: None

    def now(self) -> Micros:
        return self._real.now() + self.skipped

    async def pause(self, micros: Micros) -> None:
        """What a device waits for, without the wait."""
        if micros == heartbeats.LATER:
            self.at_rest.set()
            await asyncio.Event().wait()
        elif micros == PATIENCE:
            # An answer that does not come: that is certain once the question is lost.
            await self.swallowed.wait()
            self.swallowed.clear()
        else:
            if micros not in (heartbeats.FIRST_TRIAL, heartbeats.BETWEEN):
                self.silences.append(micros // SECOND)
                self.in_silence()
            self.skipped += micros
            await asyncio.sleep(0)


class Translator:
    """Carries bytes both ways, and forgets connections that were silent for too long."""

    def __init__(self, clock: Jumps, port: int) -> None:
        self.clock = clock
        self.timeout: Micros = 120 * SECOND
        self.port = 0
        self._to = port
        self._tasks: set[asyncio.Task[None]] = set()
        self._writers: set[asyncio.StreamWriter] = set()

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]

    def vanish(self) -> None:
        """Nothing comes through any more, and nobody gets in."""
        self.timeout = 0
        self._server.close()

    async def stop(self) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for writer in self._writers:
            writer.close()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, out = await asyncio.open_connection("127.0.0.1", self._to)
        self._writers |= {writer, out}
        last = [self.clock.now()]
        for source, sink in ((reader, out), (there, writer)):
            task = asyncio.ensure_future(self._carry(source, sink, last))
            self._tasks.add(task)

    async def _carry(
        self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, last: list[Micros]
    ) -> None:
        while data := await source.read(65536):
            if self.clock.now() - last[0] >= self.timeout:
                self.clock.swallowed.set()
                continue
            last[0] = self.clock.now()
            sink.write(data)
        sink.close()


@pytest.fixture
def clock() -> Jumps:
    return Jumps()


@pytest.fixture
async def gateway(clock: Jumps) -> AsyncIterator[LiveGateway]:
    gateway = LiveGateway()
    gateway.clock = clock  # type: ignore[assignment]
    await gateway.start()
    yield gateway
    await gateway.stop()


@pytest.fixture
async def translator(clock: Jumps, gateway: LiveGateway) -> AsyncIterator[Translator]:
    translator = Translator(clock, gateway.port)
    await translator.start()
    yield translator
    await translator.stop()


@asynccontextmanager
async def phone(translator: Translator, inbox: Path) -> AsyncIterator[Device]:
    async with Device(
        f"tcp://127.0.0.1:{translator.port}",
        app=APP,
        name="phone",
        inbox=inbox,
        network="op:one",
        clock=translator.clock,
        pause=translator.clock.pause,
    ) as device:
        await device.contact(timeout=5)
        yield device


def interval(device: Device) -> Micros:
    (link,) = device._contact._lines.open
    heartbeat = link.machine.heartbeat  # type: ignore[union-attr]
    assert isinstance(heartbeat, Pinging)
    return heartbeat.interval


def events(gateway: LiveGateway, kind: str) -> list[dict[str, object]]:
    pages = gateway.store.events(0, 1 << 40)
    lines = [json.loads(line) for page in pages for line in page.lines.splitlines()]
    return [event for event in lines if event["kind"] == kind]


async def at_rest(clock: Jumps) -> None:
    async with asyncio.timeout(20):
        await clock.at_rest.wait()
    clock.at_rest.clear()


async def test_a_device_finds_out_and_remembers_and_the_log_knows(
    clock: Jumps, gateway: LiveGateway, translator: Translator, tmp_path: Path
) -> None:
    inbox = tmp_path / "inbox.db"
    async with phone(translator, inbox) as device:
        await at_rest(clock)
        assert len(clock.silences) <= 8
        assert sum(silence >= 120 for silence in clock.silences) <= 3
        assert 0.9 * 120 * SECOND <= interval(device) < 120 * SECOND
        assert device.channels == 1  # Trials were beside it.
    # What it learned is in its inbox: the next time it asks for it, and tries nothing.
    tried = list(clock.silences)
    async with phone(translator, inbox) as device:
        await at_rest(clock)
        assert clock.silences == tried
        assert 0.9 * 120 * SECOND <= interval(device) < 120 * SECOND
    await gateway.engine.stop()
    answered = [event for event in events(gateway, "heartbeat") if event["reason"] == "answered"]
    lived = [silence for silence in tried if silence < 120]
    assert [event["interval"] // SECOND for event in answered] == [s + 1 for s in lived]  # type: ignore[operator]
    assert {event["network"] for event in answered} == {"op:one"}
    assert len(events(gateway, "contact_started")) == 2


async def test_what_others_found_is_tried_first_and_one_trial_fails(
    clock: Jumps, gateway: LiveGateway, translator: Translator, tmp_path: Path
) -> None:
    gateway.engine.gateway.contacts.tell_of_networks({"op:one": 119 * SECOND}.get)
    async with phone(translator, tmp_path / "inbox.db") as device:
        await at_rest(clock)
        assert len(clock.silences) <= 3
        assert sum(silence >= 120 for silence in clock.silences) == 1
        assert 0.9 * 120 * SECOND <= interval(device) < 120 * SECOND


async def test_a_patient_network_is_made_use_of_at_once_over_a_new_channel(
    clock: Jumps, gateway: LiveGateway, translator: Translator, tmp_path: Path
) -> None:
    translator.timeout = 900 * SECOND
    async with phone(translator, tmp_path / "inbox.db") as device:
        assert interval(device) == SAFE
        await at_rest(clock)
        assert interval(device) >= 0.9 * 890 * SECOND
        assert device.channels == 1
        assert device.connected


async def test_a_network_that_is_gone_altogether_tells_nothing(
    clock: Jumps, gateway: LiveGateway, translator: Translator, tmp_path: Path
) -> None:
    inbox = tmp_path / "inbox.db"
    clock.in_silence = translator.vanish
    async with phone(translator, inbox):
        await at_rest(clock)
    assert len(clock.silences) == 1
    kept = SqliteInbox(inbox)
    with kept.transaction() as transaction:
        assert transaction.get(MEMORY) is None
    kept.close()


async def test_a_channel_that_dies_of_silence_is_doubted(
    clock: Jumps, gateway: LiveGateway, translator: Translator, tmp_path: Path
) -> None:
    translator.timeout = 250 * SECOND
    inbox = tmp_path / "inbox.db"
    async with phone(translator, inbox) as device:
        await at_rest(clock)
        before = interval(device)
        translator.timeout = 60 * SECOND
        (link,) = device._contact._lines.open
        clock.skipped += before
        link.timeout()  # It asks, and the question is lost.
        clock.skipped += PATIENCE
        link.timeout()
        await until(lambda: device._contact._lines.open not in ([], [link]))
        assert interval(device) == SAFE
    kept = SqliteInbox(inbox)
    with kept.transaction() as transaction:
        assert Networks.load(transaction.get(MEMORY)).on("op:one").doubted >= 0
    kept.close()


async def test_who_does_not_want_to_learn_opens_no_other_connection(
    clock: Jumps, gateway: LiveGateway
) -> None:
    async with Device(
        f"tcp://127.0.0.1:{gateway.port}",
        app=APP,
        name="phone",
        clock=clock,
        pause=clock.pause,
        learn_heartbeat=False,
    ) as device:
        await device.contact(timeout=5)
        await asyncio.sleep(0)
    assert clock.skipped == 0
