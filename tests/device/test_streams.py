"""Streams, large bodies and pulled bodies between real devices and a real gateway on loopback."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path

import pytest

from lasthop.core.apps.behaviour import Behaviour
from lasthop.core.gateway import Gateway
from lasthop.core.pieces.stream import Stream
from lasthop.core.publishing.submission import Submission
from lasthop.device.client import Device
from lasthop.device.inbox_memory import MemoryInbox
from lasthop.device.message import Message
from lasthop.device.streams import OutgoingStream
from lasthop.errors import Conflict, InvalidRequest, TooLarge
from lasthop.message import Target, TargetKind
from lasthop.store.streams import StreamRow
from tests.device.gateway import APP, LiveGateway, live_gateway, until, websocket_server
from tests.device.test_client import quick_backoff

pytestmark = pytest.mark.anyio


@pytest.fixture
async def gateway() -> AsyncIterator[LiveGateway]:
    async with live_gateway() as live:
        live.engine.gateway.admin.behave(APP, Behaviour(max_size=8 << 20))
        yield live


def device(
    gateway: LiveGateway, name: str = "phone", inbox: Path | MemoryInbox | None = None
) -> Device:
    return Device(gateway.tcp_url, app=APP, name=name, inbox=inbox, backoff=quick_backoff())


def content(size: int, seed: int = 1) -> bytes:
    return random.Random(seed).randbytes(size)


async def first(phone: Device) -> Message:
    async with asyncio.timeout(10), aclosing(phone.messages(automatic=False)) as messages:
        message = await anext(messages)
        await phone.done(message)
        return message


async def read_all(phone: Device, message: Message) -> bytes:
    async with asyncio.timeout(20):
        return b"".join([chunk async for chunk in phone.stream(message)])


async def open_for(gateway: LiveGateway, name: str = "phone") -> Stream:
    submission = Submission(target=Target(TargetKind.DEVICE, name), title="film")
    return await gateway.engine.call(
        lambda g, now: g.streams.open(APP, "publisher:p", submission, now)
    )


async def feed(gateway: LiveGateway, key: int, body: bytes) -> None:
    """Send like the REST door: what fits, when it fits."""
    offset = 0

    def act(g: Gateway, now: int) -> int:
        return g.streams.append(g.streams.find(APP, key), offset, body[offset:], now)

    def room(g: Gateway) -> bool | None:
        record = g.streams.find(APP, key).record
        return record.received < record.taken + g.streams.window or None

    while offset < len(body):
        offset = await gateway.engine.call(act)
        await gateway.engine.watch(key, room, 10)


async def test_a_large_body_travels_whole_in_both_directions(gateway: LiveGateway) -> None:
    body = content(3 << 20)
    async with device(gateway, "tablet") as tablet, device(gateway) as phone:
        await tablet.contact(timeout=5)
        await phone.contact(timeout=5)
        await tablet.send("device:phone", body, title="large")
        await tablet.send("device:phone", b"behind it")
        large, small = await first(phone), await first(phone)
        assert (large.body, large.title) == (body, "large")
        assert small.body == b"behind it"


async def test_a_body_above_the_limit_of_the_app_is_refused(gateway: LiveGateway) -> None:
    async with device(gateway) as phone:
        handle = await phone.send("device:phone", bytes((8 << 20) + 1))
        with pytest.raises(Exception, match="a body has at most 8388608 bytes here"):
            await handle.accepted(timeout=10)
        # And the next one is not held up by it.
        await phone.send("device:phone", "next")
        assert (await first(phone)).text == "next"


async def test_a_stream_from_a_publisher_reaches_the_application(gateway: LiveGateway) -> None:
    body = content(2 << 20)
    async with device(gateway) as phone:
        await phone.contact(timeout=5)
        stream = await open_for(gateway)
        message = await first(phone)
        assert message.opens_stream
        assert message.title == "film"
        reading = asyncio.create_task(read_all(phone, message))
        await feed(gateway, stream.key, body)
        await gateway.engine.call(
            lambda g, now: g.streams.end(g.streams.find(APP, stream.key), now, size=len(body))
        )
        assert await reading == body
        await until(lambda: gateway.engine.gateway.streams.get(stream.key) is None)
        assert await phone.incoming_streams() == []
        await until(lambda: not gateway.store.find(StreamRow, [stream.key])[stream.key].open)


async def test_a_stream_between_devices_is_held_back_by_its_reader(gateway: LiveGateway) -> None:
    body = content(2 << 20, seed=2)
    async with device(gateway, "sensor") as sensor, device(gateway) as phone:
        await phone.contact(timeout=5)
        await sensor.contact(timeout=5)
        outgoing = await sensor.open_stream("device:phone", content_type="application/x-signs")
        writing = asyncio.create_task(outgoing.write(body))
        message = await first(phone)
        window = gateway.engine.gateway.streams.window
        streams = gateway.engine.gateway.streams.of(APP)
        await until(lambda: streams[0].record.taken >= window)
        # Nobody reads: what is under way is three windows at most, and the sender waits.
        for _ in range(50):
            await asyncio.sleep(0)
        assert streams[0].record.received <= 2 * window
        assert not writing.done()
        assert outgoing.position <= 3 * window
        received = b""
        async for chunk in phone.stream(message):
            received += chunk
            if len(received) == len(body) and writing.done():
                await outgoing.end()
            elif len(received) == len(body):
                await writing
                await outgoing.end()
        assert received == body
        async with asyncio.timeout(5):
            await outgoing.closed()


async def test_a_stream_goes_on_after_a_crash_of_everything(
    gateway: LiveGateway, tmp_path: Path
) -> None:
    body = content(1 << 20, seed=3)
    received: dict[int, bytes] = {}
    async with device(gateway, "sensor", tmp_path / "sensor.db") as sensor:
        await sensor.contact(timeout=5)
        async with device(gateway, "phone", tmp_path / "phone.db") as phone:
            await phone.contact(timeout=5)
            outgoing = await sensor.open_stream("device:phone")
            writing = asyncio.create_task(outgoing.write(body[: 700 << 10]))
            message = await first(phone)
            stream = phone.stream(message)
            for _ in range(2):
                chunk = await stream.read()
                assert chunk is not None
                received[stream.position] = chunk
            await gateway.crash()
            chunk = await stream.read()
            assert chunk is not None
            received[stream.position] = chunk
        async with device(gateway, "phone", tmp_path / "phone.db") as phone:
            (again,) = await phone.incoming_streams()

            async def read() -> None:
                async for chunk in again:
                    received[again.position] = chunk

            reading = asyncio.create_task(read())
            async with asyncio.timeout(20):
                await writing
            await sensor.close()
            async with device(gateway, "sensor", tmp_path / "sensor.db") as reborn:
                (rest,) = await reborn.outgoing_streams()
                assert rest.position == 700 << 10
                async with asyncio.timeout(20):
                    async with rest:
                        await rest.write(body[rest.position :])
                    await reading
    whole = b""
    for offset in sorted(received):
        whole = whole[:offset] + received[offset]
    assert whole == body


async def test_a_stream_that_its_sender_gives_up_ends_for_the_reader(
    gateway: LiveGateway,
) -> None:
    async with device(gateway) as phone:
        await phone.contact(timeout=5)
        with pytest.raises(RuntimeError):
            await _give_up(await phone.open_stream("device:phone"))
        message = await first(phone)
        with pytest.raises(Conflict, match="no more"):
            await read_all(phone, message)


async def test_a_reader_can_stop_a_stream(gateway: LiveGateway) -> None:
    async with device(gateway, "sensor") as sensor, device(gateway) as phone:
        await phone.contact(timeout=5)
        outgoing = await sensor.open_stream("device:phone")
        message = await first(phone)
        await phone.stream(message).stop("seen enough")
        with pytest.raises(Conflict, match=r"seen enough|over"):
            await _write_for_ever(outgoing)
        async with asyncio.timeout(5):
            await outgoing.closed()


async def test_a_poke_leaves_the_body_until_it_is_pulled(gateway: LiveGateway) -> None:
    body = content(300_000, seed=4)
    gateway.engine.gateway.admin.behave(APP, Behaviour(pull=True, max_size=1 << 20))
    async with device(gateway) as phone:
        await phone.contact(timeout=5)
        await gateway.publish("small")
        submission = Submission(
            target=Target(TargetKind.DEVICE, "phone"), body=body, unsaid=frozenset(("pull",))
        )
        await gateway.engine.call(lambda g, now: g.publish(APP, "test", [submission], now))
        async with asyncio.timeout(10):
            bodies = []
            async for message in phone.messages():
                if message.pull_size is not None:
                    assert message.body == b""
                    assert message.pull_size == len(body)
                    assert await message.fetch() == body
                bodies.append(await message.fetch())
                if len(bodies) == 2:
                    break
        assert bodies == [b"small", body]


async def test_a_body_that_is_gone_is_not_waited_for(gateway: LiveGateway) -> None:
    submission = Submission(target=Target(TargetKind.DEVICE, "phone"), body=b"hello", pull=True)
    async with device(gateway) as phone:
        await phone.contact(timeout=5)
        await gateway.engine.call(lambda g, now: g.publish(APP, "test", [submission], now))
        message = await first(phone)
        async with asyncio.timeout(10):
            while gateway.engine.gateway.deliveries.items:  # noqa: ASYNC110
                await asyncio.sleep(0)
            with pytest.raises(Conflict, match="the body is no longer available"):
                await phone.fetch(message)


async def test_large_bodies_travel_over_a_websocket(gateway: LiveGateway) -> None:
    body = content(1 << 20, seed=5)
    async with websocket_server(gateway):
        phone = Device(gateway.websocket_url, app=APP, name="phone", backoff=quick_backoff())
        async with phone:
            await phone.contact(timeout=5)
            await phone.send("device:phone", body)
            assert (await first(phone)).body == body


async def test_bad_streams_are_refused(gateway: LiveGateway) -> None:
    async with device(gateway) as phone:
        with pytest.raises(
            InvalidRequest, match="a stream must go to device:NAME or to publisher:"
        ):
            await phone.open_stream("topic:news")
        with pytest.raises(InvalidRequest, match="a deadline, rank, reliability or delay"):
            await phone.open_stream("device:phone", expires_in=3)
        with pytest.raises(InvalidRequest, match="a deadline, rank, reliability or delay"):
            await phone.open_stream("device:phone", delay_tolerance=3)
        with pytest.raises(TooLarge, match="send it as a stream"):
            await phone.send("device:phone", bytes((64 << 20) + 1))
        await phone.contact(timeout=5)
        lost = await phone.open_stream("device:nobody")
        with pytest.raises(Conflict, match=r"the stream is over|given up"):
            await _write_for_ever(lost)


async def _give_up(outgoing: OutgoingStream) -> None:
    async with outgoing:
        await outgoing.write(b"some")
        raise RuntimeError("no more")


async def _write_for_ever(outgoing: OutgoingStream) -> None:
    async with asyncio.timeout(10):
        while True:
            await outgoing.write(bytes(100_000))
