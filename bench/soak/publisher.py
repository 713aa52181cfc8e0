"""The process of a publisher at a steady rate: `python -m bench.soak.publisher JOB`."""

from __future__ import annotations

import asyncio
import sys

import msgspec

from bench.hop import http
from bench.hop.conversation import Conversation, Ready, run
from bench.soak.jobs import Poured, Pouring, Report, device_name

CONNECTIONS = 32
TICK = 0.02
"""Seconds between two bundles of requests."""


class Source:
    """Publishes numbers, which grow for every device."""

    def __init__(self, job: Pouring) -> None:
        self._job = job
        head = http.request_head("/v1/messages", content_type="application/json")
        self._pool = http.Pool(head, size=CONNECTIONS)
        self._number = 0
        self._open: set[asyncio.Future[None]] = set()
        self.seen = Poured(accepted=0, refused=0)

    async def pour(self) -> None:
        """Publish until cancelled. What is late is sent at once: the rate holds in the mean."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        while True:
            await self._pool.fill(self._job.port)
            for _ in range(int((loop.time() - began) * self._job.rate) - self._number):
                self._send()
            await asyncio.sleep(TICK)

    async def settled(self) -> None:
        """Wait for the answers that are still to come."""
        await asyncio.gather(*self._open, return_exceptions=True)

    def _send(self) -> None:
        number, self._number = self._number, self._number + 1
        device = device_name(number % self._job.devices)
        answer = self._pool.post(msgspec.json.encode({"device": device, "body": str(number)}))
        self._open.add(answer)
        answer.add_done_callback(self._answered)

    def _answered(self, answer: asyncio.Future[None]) -> None:
        self._open.discard(answer)
        if answer.exception() is None:
            self.seen.accepted += 1
        else:
            self.seen.refused += 1


async def main(parent: Conversation) -> None:
    """Publish, and report until no more orders come."""
    source = Source(msgspec.json.decode(sys.argv[1], type=Pouring))
    pouring = asyncio.ensure_future(source.pour())
    parent.say(Ready())
    while (order := await parent.hear(Report)) is not None:
        if order.last:
            pouring.cancel()
            await source.settled()
        elif pouring.done():
            pouring.result()
        parent.say(source.seen)


if __name__ == "__main__":
    run(main)
