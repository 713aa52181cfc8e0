"""The child's end of the conversation between a benchmark run and its processes."""

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
    """The answer of a child that is connected and can take orders."""


class Conversation:
    """Reads orders from the parent process and writes answers to it."""

    def __init__(self, reader: asyncio.StreamReader) -> None:
        self._reader = reader

    async def hear(self, kind: type[Order]) -> Order | None:
        """Return the next order, or None when there are no more."""
        line = await self._reader.readline()
        return msgspec.json.decode(line, type=kind) if line else None

    def say(self, answer: msgspec.Struct) -> None:
        """Send an answer to the parent process."""
        sys.stdout.buffer.write(msgspec.json.encode(answer) + b"\n")
        sys.stdout.buffer.flush()


def run(main: Callable[[Conversation], Coroutine[Any, Any, None]]) -> None:
    """Run a child process until its input ends."""

    async def talk() -> None:
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader()
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
        # Keep the garbage collector from scanning imported modules in the middle of a run.
        gc.freeze()
        await main(Conversation(reader))

    uvloop.run(talk())


def own_cpu() -> float:
    """Return the seconds of CPU that this process has used."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime
