"""Lets the filter worker read large bodies: starts the worker for the first body, tells it of
changed expressions, and replaces it when it dies or takes too long."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterable
from contextlib import suppress
from itertools import islice
from typing import Protocol

import structlog

from lasthop.core.effects import MatchFilters
from lasthop.runtime.filtering.frames import HEAD, Learn, Match, decode_reading, frame
from lasthop_xml.xpath.reading import Outcome, Reading

PATIENCE = 10.0
"""Seconds that the worker may take for one body. Most bodies take less than one second; a large
document with the expressions of thousands of subscribers takes longer."""

START_PATIENCE = 60.0
"""The longest wait, in seconds, until a new worker has loaded all expressions; loading 100,000 of
them takes about ten seconds on an idle machine."""

LEARNED_AT_ONCE = 1000
"""The largest number of expressions in one frame: encoding them takes a millisecond at most, and
other work is done between two frames."""

log = structlog.get_logger()


class FilterGateway(Protocol):
    """The gateway, as the reader of large bodies uses it."""

    def filters_matched(self, message: int, reading: Reading) -> None:
        """Tell the gateway which filters a message's body has matched."""
        ...

    def filter_expressions(self) -> Iterable[tuple[str, str]]:
        """Return all expressions of the gateway, with the app of each."""
        ...


class FilterReader:
    """Runs the filter worker, and asks it about one body after the other."""

    def __init__(self) -> None:
        self._gateway: FilterGateway | None = None
        self._process: asyncio.subprocess.Process | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    def open(self, gateway: FilterGateway) -> None:
        """Set the gateway that gets the answers."""
        self._gateway = gateway

    def match(self, effect: MatchFilters) -> None:
        """Ask the worker which filters a body matches; the gateway asks about one body at a
        time."""
        task = asyncio.get_running_loop().create_task(self._answer(effect))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        """End the worker. The gateway asks again about an unfinished body after a restart."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._end()

    @property
    def pid(self) -> int | None:
        """The worker's process id, or None."""
        return None if self._process is None else self._process.pid

    async def _answer(self, effect: MatchFilters) -> None:
        assert self._gateway is not None
        try:
            reading = await self._reading(effect, self._gateway)
        except TimeoutError:
            log.warning("filter worker took too long", app=effect.app, size=len(effect.body))
            await self._end()
            reading = Reading(Outcome.FAILED, reason="it took too long")
        except Exception as error:  # Later messages wait for this answer, so always give one.
            log.warning("filter worker ended", reason=repr(error))
            await self._end()
            reading = Reading(Outcome.FAILED, reason="the worker that reads it ended")
        self._gateway.filters_matched(effect.message, reading)

    async def _reading(self, effect: MatchFilters, gateway: FilterGateway) -> Reading:
        process = self._process
        if process is None or process.returncode is not None or effect.changes is None:
            await self._end()
            async with asyncio.timeout(START_PATIENCE):
                process = await self._start()
                everything = ((app, xpath, True) for app, xpath in gateway.filter_expressions())
                await self._learn(process, everything)
        else:
            changes = ((*key, there) for key, there in effect.changes.items())
            async with asyncio.timeout(START_PATIENCE):
                await self._learn(process, changes)
        async with asyncio.timeout(PATIENCE):
            await _say(process, frame(Match(effect.app, effect.content_type, effect.body)))
            assert process.stdout is not None
            head = await process.stdout.readexactly(HEAD)
            return decode_reading(await process.stdout.readexactly(int.from_bytes(head)))

    async def _start(self) -> asyncio.subprocess.Process:
        # In a session of its own, so that Ctrl-C in a terminal reaches only the gateway, which then
        # ends it.
        self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "lasthop.runtime.filtering.worker",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
        log.info("filter worker started", pid=self._process.pid)
        return self._process

    async def _learn(
        self, process: asyncio.subprocess.Process, changes: Iterable[tuple[str, str, bool]]
    ) -> None:
        left = iter(changes)
        while some := list(islice(left, LEARNED_AT_ONCE)):
            await _say(process, frame(Learn(some)))
            await asyncio.sleep(0)

    async def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()


async def _say(process: asyncio.subprocess.Process, data: bytes) -> None:
    assert process.stdin is not None
    process.stdin.write(data)
    await process.stdin.drain()
