"""The process of a publisher at a steady rate: `python -m bench.soak.publisher JOB`."""

from __future__ import annotations

import asyncio
import sys
from collections import deque

import msgspec

from bench.hop import http
from bench.hop.conversation import Conversation, Ready, run
from bench.soak.jobs import Poured, Pouring, Report, device_name

CONNECTIONS = 32
TICK = 0.02
"""Seconds between two bundles of requests."""


class Source:
    """Publishes numbers, which grow for every device.

    Requests over several connections may overtake each other, so a device's next message is sent
    when the one before it was answered.
    """

    def __init__(self, job: Pouring) -> None:
        self._job = job
        head = http.request_head("/v1/messages", content_type="application/json")
        self._pool = http.Pool(head, size=CONNECTIONS)
        self._number = 0
        self._open: set[asyncio.Future[None]] = set()
        self._waiting: dict[int, deque[int]] = {}
        """The numbers that wait for an answer about their device, for each device with a request
        that is not answered."""
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
        while self._open:
            await asyncio.wait(self._open)

    def _send(self) -> None:
        number, self._number = self._number, self._number + 1
        device = number % self._job.devices
        if device in self._waiting:
            self._waiting[device].append(number)
        else:
            self._waiting[device] = deque()
            self._post(device, number)

    def _post(self, device: int, number: int) -> None:
        body = {"device": device_name(device), "body": str(number)}
        answer = self._pool.post(msgspec.json.encode(body))
        self._open.add(answer)
        answer.add_done_callback(lambda answer: self._answered(device, answer))

    def _answered(self, device: int, answer: asyncio.Future[None]) -> None:
        self._open.discard(answer)
        if answer.exception() is None:
            self.seen.accepted += 1
        else:
            self.seen.refused += 1
        if self._waiting[device]:
            self._post(device, self._waiting[device].popleft())
        else:
            del self._waiting[device]


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
