"""The push initiator of a run: submits pushes as fast as they are answered, or at a steady rate."""

from __future__ import annotations

import asyncio
import sys
import time

import msgspec
import uvloop

from bench.hop.http import Refused, content_length, request_head
from bench.hop.link import Link
from bench.pap.jobs import Initiator, Ready, Submit, Submitted
from bench.pap.payload import CONTENT_TYPE, push

ACCEPTED = b'"1001"'
"""PAP's code of a push that was accepted; the HTTP status of every answer is 202."""


class _Connection(Link):
    """One connection, one request in flight."""

    def __init__(self) -> None:
        super().__init__()
        self._rest = b""
        self._waiting: asyncio.Future[bytes] | None = None

    def post(self, request: bytes) -> asyncio.Future[bytes]:
        self._waiting = self._loop.create_future()
        self.transport.write(request)
        return self._waiting

    def data_received(self, data: bytes) -> None:
        data = self._rest = self._rest + data
        end = data.find(b"\r\n\r\n")
        if end < 0 or len(data) < end + 4 + content_length(data[:end]):
            return
        self._rest = b""
        if self._waiting is not None:
            self._waiting.set_result(data)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_exception(Refused(f"connection lost: {exc}"))


async def _submit(job: Initiator, order: Submit) -> Submitted:
    head = request_head(job.path, content_type=CONTENT_TYPE)
    numbers = range(order.first, order.first + order.count)
    hosts = order.hosts
    # Made beforehand, so that making requests does not count as the gateway's time.
    requests = []
    for number in numbers:
        body = push(number, run=order.run, host=hosts[number % len(hosts)])
        requests.append(b"%b%d\r\n\r\n%b" % (head, len(body), body))
    said = Submitted({}, {}, 0)
    connections = [_Connection() for _ in range(job.connections)]
    for connection in connections:
        await connection.dial(job.port)
    start = time.monotonic()
    todo = iter(enumerate(requests))

    async def work(connection: _Connection) -> None:
        for index, request in todo:
            due = start + index / order.rate if order.rate else time.monotonic()
            if (early := due - time.monotonic()) > 0:
                await asyncio.sleep(early)
            number = order.first + index
            said.began[number] = due
            answer = await connection.post(request)
            said.answered[number] = time.monotonic()
            if ACCEPTED not in answer:
                said.refused += 1
                said.why = answer.decode(errors="replace")[-600:]

    await asyncio.gather(*(work(connection) for connection in connections))
    for connection in connections:
        connection.hang_up()
    return said


async def _run(job: Initiator) -> None:
    loop = asyncio.get_running_loop()
    _say(Ready())
    while line := await loop.run_in_executor(None, sys.stdin.buffer.readline):
        _say(await _submit(job, msgspec.json.decode(line, type=Submit)))


def _say(what: msgspec.Struct) -> None:
    sys.stdout.buffer.write(msgspec.json.encode(what) + b"\n")
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    uvloop.run(_run(msgspec.json.decode(sys.argv[1], type=Initiator)))
