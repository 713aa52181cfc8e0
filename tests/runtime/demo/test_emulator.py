"""The demo's links: in order, at their rate, after their delay, until they break."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from hypothesis import given, strategies as st

from lasthop.runtime.demo.emulator import MOST_UNDER_WAY, EmulatedLink
from lasthop.runtime.demo.pace import DirectionPace
from lasthop.runtime.demo.profiles import MNO, PROFILES, LinkProfile

CLEAR = LinkProfile(name="clear", delay=0.0, jitter=0.0, rate=1 << 30, up=1.0, down=1.0)
PATIENCE = 30.0


@given(
    st.lists(st.tuples(st.floats(0, 5), st.integers(1, 5000), st.floats(0, 0.999)), max_size=40),
    st.sampled_from(PROFILES),
)
def test_bytes_keep_their_order_and_no_rate_is_exceeded(
    entries: list[tuple[float, int, float]], profile: LinkProfile
) -> None:
    chances = iter([chance for _, _, chance in entries])
    pace = DirectionPace(profile, lambda: next(chances))
    now, last, total, began = 0.0, 0.0, 0, None
    for gap, size, _ in entries:
        now += gap
        began = now if began is None else began
        leaves = pace.leaves(size, now)
        total += size
        assert leaves >= last, "a stream keeps its order"
        assert leaves >= now + size / profile.rate + profile.delay - 1e-9
        assert leaves >= began + total / profile.rate + profile.delay - 1e-6
        last = leaves


def test_what_queues_for_the_rate_leaves_one_after_the_other() -> None:
    pace = DirectionPace(
        LinkProfile(name="x", delay=1.0, jitter=0.0, rate=100, up=1, down=1), lambda: 0.5
    )
    assert pace.leaves(100, 0.0) == 2.0
    assert pace.leaves(50, 0.0) == 2.5
    assert pace.leaves(100, 10.0) == 12.0, "an idle link has nobody to wait for"


def test_jitter_is_at_most_what_the_profile_says() -> None:
    for chance, leaves in ((0.0, MNO.delay), (1.0, MNO.delay + MNO.jitter)):
        pace = DirectionPace(MNO, lambda chance=chance: chance)  # type: ignore[misc]
        assert pace.leaves(0, 0.0) == pytest.approx(leaves)


@asynccontextmanager
async def echoing() -> AsyncIterator[tuple[str, int]]:
    """A server that says everything again."""
    tasks: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        try:
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
        except ConnectionError:
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield "127.0.0.1", server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def test_everything_passes_both_ways_and_is_counted() -> None:
    async with echoing() as target, EmulatedLink(CLEAR, target, random=lambda: 0.0) as link:
        reader, writer = await asyncio.open_connection("127.0.0.1", link.port)
        sent = bytes(range(256)) * (4 * MOST_UNDER_WAY // 256)
        writer.write(sent)
        async with asyncio.timeout(PATIENCE):
            assert await reader.readexactly(len(sent)) == sent
        assert (link.up_bytes, link.down_bytes) == (len(sent), len(sent))
        writer.write_eof()
        async with asyncio.timeout(PATIENCE):
            assert await reader.read() == b"", "a goodbye is passed on"
        writer.close()


async def test_a_delay_is_kept() -> None:
    slow = LinkProfile(name="slow", delay=0.05, jitter=0.0, rate=1 << 30, up=1, down=1)
    loop = asyncio.get_running_loop()
    async with echoing() as target, EmulatedLink(slow, target, random=lambda: 0.0) as link:
        reader, writer = await asyncio.open_connection("127.0.0.1", link.port)
        began = loop.time()
        writer.write(b"hello")
        async with asyncio.timeout(PATIENCE):
            await reader.readexactly(5)
        assert loop.time() - began >= 0.1, "there and back"
        writer.close()


async def test_an_outage_resets_what_is_open_and_refuses_what_comes() -> None:
    async with echoing() as target, EmulatedLink(CLEAR, target, random=lambda: 0.0) as link:
        reader, writer = await asyncio.open_connection("127.0.0.1", link.port)
        writer.write(b"hello")
        async with asyncio.timeout(PATIENCE):
            await reader.readexactly(5)
            link.lose()
            with pytest.raises(ConnectionError):
                await reader.readexactly(1)
            assert link.resets == 1
            again, other = await asyncio.open_connection("127.0.0.1", link.port)
            other.write(b"hello")
            with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
                await again.readexactly(1)
            assert link.refused == 1
            link.restore()
            third, last = await asyncio.open_connection("127.0.0.1", link.port)
            last.write(b"again")
            assert await third.readexactly(5) == b"again"
        for one in (writer, other, last):
            one.close()


async def test_a_silence_that_ends_in_time_breaks_nothing() -> None:
    quiet = LinkProfile(name="quiet", delay=0, jitter=0, rate=1 << 30, up=1, down=1, silence=3600)
    async with echoing() as target, EmulatedLink(quiet, target, random=lambda: 0.0) as link:
        reader, writer = await asyncio.open_connection("127.0.0.1", link.port)
        async with asyncio.timeout(PATIENCE):
            writer.write(b"a")
            await reader.readexactly(1)
            link.lose()
            writer.write(b"b")
            passed = asyncio.ensure_future(reader.readexactly(1))
            for _ in range(100):
                await asyncio.sleep(0)
            assert not passed.done()
            link.restore()
            assert await passed == b"b"
            assert link.resets == 0
        writer.close()


async def test_a_gateway_that_is_not_there_is_a_reset() -> None:
    async with echoing() as target:
        pass
    async with EmulatedLink(CLEAR, target, random=lambda: 0.0) as link:
        reader, writer = await asyncio.open_connection("127.0.0.1", link.port)
        async with asyncio.timeout(PATIENCE):
            with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
                await reader.readexactly(1)
        writer.close()
