"""Sends in an open loop: messages leave when they are due, whether or not earlier ones arrived.

A payload carries the time at which it was due, not the time at which its publisher sent it, so that
a publisher that is held up does not hide the delay. Event loops wake to the millisecond; a thread
that sleeps is exact to some 60 µs.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable

from bench.hop.payload import now, stamp

LEAD = 0.05
"""Seconds before the first message is due, in which all processes get ready."""


async def paced(
    send: Callable[[bytes], None], *, first: int, count: int, rate: float
) -> list[float]:
    """Send `count` messages at a constant rate; return how late each left, in seconds."""
    loop = asyncio.get_running_loop()
    late: list[float] = []
    finished = loop.create_future()
    start = now() + LEAD

    def leave(index: int, due: float) -> None:
        late.append(now() - due)
        send(stamp(first + index, due))
        if index == count - 1:
            finished.set_result(None)

    def tick() -> None:
        for index in range(count):
            due = start + index / rate
            left = due - now()
            if left > 0:
                time.sleep(left)
            loop.call_soon_threadsafe(leave, index, due)

    threading.Thread(target=tick, name="pace", daemon=True).start()
    await finished
    return late
