"""The child's end of the lines between a run and its processes."""

from __future__ import annotations

import asyncio
import gc
import resource
import sys
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import msgspec
import uvloop

Order = TypeVar("Order", bound=msgspec.Struct)


class Ready(msgspec.Struct, kw_only=True):
    """Connected; orders may come."""


class Conversation:
    """Orders in, answers out."""

    def __init__(self, reader: asyncio.StreamReader) -> None:
        self._reader = reader

    async def hear(self, kind: type[Order]) -> Order | None:
        """The next order; `None` when there will be none."""
        line = await self._reader.readline()
        return msgspec.json.decode(line, type=kind) if line else None

    def say(self, answer: msgspec.Struct) -> None:
        """Answer."""
        sys.stdout.buffer.write(msgspec.json.encode(answer) + b"\n")
        sys.stdout.buffer.flush()


def run(main: Callable[[Conversation], Coroutine[Any, Any, None]]) -> None:
    """Run a child until its input ends."""

    async def talk() -> None:
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader()
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
        # What was imported need not be looked through again in the middle of a run.
        gc.freeze()
        await main(Conversation(reader))

    uvloop.run(talk())


def own_cpu() -> float:
    """Seconds of CPU that this process has used."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime
