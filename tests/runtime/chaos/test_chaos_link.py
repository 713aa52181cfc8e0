"""The proxy of chaos: everything passes but what a fault takes, delays or damages."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random

import pytest

from lasthop.runtime.chaos.chaos_link import ChaosLink
from tests.runtime.demo.test_emulator import PATIENCE, echoing


@asynccontextmanager
async def talking() -> AsyncIterator[tuple[ChaosLink, asyncio.StreamReader, asyncio.StreamWriter]]:
    """A link to a server that says everything again, and a connection over it that works."""
    async with echoing() as target, ChaosLink(target, Random(1)) as link:
        reader, writer = await asyncio.open_connection("127.0.0.1", link.port)
        writer.write(b"hello")
        async with asyncio.timeout(PATIENCE):
            assert await reader.readexactly(5) == b"hello"
            yield link, reader, writer
        writer.close()


async def test_a_cut_resets_what_is_open_and_lets_new_ones_through() -> None:
    async with talking() as (link, reader, _):
        assert link.cut() == 2
        with pytest.raises(ConnectionResetError):
            await reader.read(1)
        again, writer = await asyncio.open_connection("127.0.0.1", link.port)
        writer.write(b"again")
        assert await again.readexactly(5) == b"again"
        writer.close()


async def test_a_cut_of_nothing_meets_nobody() -> None:
    async with echoing() as target, ChaosLink(target, Random(1)) as link:
        assert link.cut() == 0
        assert link.half_close(towards_device=True) == 0


async def test_a_fault_can_wait_for_a_connection() -> None:
    async with echoing() as target, ChaosLink(target, Random(1)) as link:
        waiting = asyncio.ensure_future(link.occupied())
        await asyncio.sleep(0.01)
        assert not waiting.done()
        _, writer = await asyncio.open_connection("127.0.0.1", link.port)
        async with asyncio.timeout(PATIENCE):
            await waiting
            assert link.cut() == 2
        writer.close()


async def test_a_delay_makes_everything_late_and_keeps_its_order() -> None:
    async with talking() as (link, reader, writer):
        loop = asyncio.get_running_loop()
        link.late, began = 0.1, loop.time()
        writer.write(b"slow")
        await asyncio.sleep(0.02)
        link.calm()
        writer.write(b" and fast")
        assert await reader.readexactly(13) == b"slow and fast"
        assert loop.time() - began >= 0.099  # uvloop counts whole milliseconds.


async def test_a_corrupting_link_flips_one_bit_in_so_many_pieces() -> None:
    async with talking() as (link, reader, writer):
        assert link.corrupt(1) == 0
        writer.write(b"\x00" * 64)
        damaged = await reader.readexactly(64)
        assert sum(byte.bit_count() for byte in damaged) == 1
        assert link.corrupt(0) == 0, "nothing is left to damage"
        writer.write(b"\x00" * 64)
        assert await reader.readexactly(64) == b"\x00" * 64


async def test_what_nobody_sent_was_not_corrupted() -> None:
    async with talking() as (link, _, _):
        link.corrupt(3)
        assert link.corrupt(0) == 3


async def test_a_half_close_ends_one_direction_alone() -> None:
    async with talking() as (link, reader, writer):
        assert link.half_close(towards_device=True) == 1
        assert await reader.read() == b""
        before = link.up_bytes
        writer.write(b"still there")
        async with asyncio.timeout(PATIENCE):
            while link.up_bytes < before + 11:  # noqa: ASYNC110
                await asyncio.sleep(0.005)


async def test_a_half_close_towards_the_gateway_tells_it_that_nothing_more_comes() -> None:
    async with talking() as (link, reader, _):
        assert link.half_close(towards_device=False) == 1
        assert await reader.read() == b"", "the server has closed too"


async def test_a_black_hole_is_silent_until_it_ends() -> None:
    async with talking() as (link, reader, writer):
        link.hold()
        writer.write(b"is anybody there?")
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await reader.read(1)
        link.calm()
        assert await reader.readexactly(17) == b"is anybody there?"
