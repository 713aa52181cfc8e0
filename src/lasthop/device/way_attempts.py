"""Carries out what `ways` decides: makes connections, says HELLO over them, and leaves them."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import msgspec

from lasthop.device.gateway_line import GatewayLine, LineOwner
from lasthop.device.turns import Turns
from lasthop.device.way import GatewayWay, WayIdentity
from lasthop.transport.address import parse
from lasthop.transport.connected import HeldConnection
from lasthop.transport.dial import connect
from lasthop.transport.link import EndsFor
from lasthop.wire.hop.frames import Close, CloseCode, Hello

UNANSWERED = "the gateway did not answer in time"
NOTHING_TO_JOIN = "the device is not connected, so no channel can join"


class WayAttempts:
    """The attempts and channels of a device, by way."""

    def __init__(
        self,
        turns: Turns,
        owner: LineOwner,
        ends: EndsFor,
        *,
        tls: ssl.SSLContext | None,
        connected: Callable[[GatewayWay], None],
        failed: Callable[[GatewayWay, str, Close | None], None],
        broken: Callable[[BaseException], None],
        with_heartbeat: Callable[[Hello], Hello],
    ) -> None:
        """`connected` and `failed` are told what becomes of an attempt before its HELLO, and
        `broken` of an error of the device itself. `with_heartbeat` completes a HELLO."""
        self._turns = turns
        self._owner = owner
        self._ends = ends
        self._tls = tls
        self._connected = connected
        self._failed = failed
        self._broken = broken
        self._with_heartbeat = with_heartbeat
        self._tasks: dict[WayIdentity, asyncio.Task[None]] = {}
        self._others: set[asyncio.Task[None]] = set()
        self._ready: dict[WayIdentity, HeldConnection] = {}
        self._lines: dict[WayIdentity, list[GatewayLine]] = {}
        self.unanswered = 0
        """HELLOs that were given up without an answer: a gateway that reads one of them late
        replaces the channel that this device has now."""

    def connect(self, way: GatewayWay) -> None:
        """Begin to connect over a way."""
        self._run(way, self._connect(way))

    def say(self, way: GatewayWay, *, join: bool) -> None:
        """Say HELLO over the connection of a way."""
        self._run(way, self._say(way, self._ready.pop(way.identity), join=join))

    def leave(self, way: GatewayWay, reason: str) -> None:
        """Give up everything that there is of a way."""
        task = self._tasks.pop(way.identity, None)
        if task is not None and task is not asyncio.current_task():
            task.cancel()
        ready = self._ready.pop(way.identity, None)
        if ready is not None:
            ready.drop()
        for line in self._lines.pop(way.identity, []):
            self.unanswered += not line.answer.done() and not line.hello.join
            line.leave(reason)

    def leave_older(self, line: GatewayLine, reason: str) -> list[GatewayLine]:
        """Leave the other channels of a channel's way; return them."""
        lines = self._lines.get(line.way.identity, [])
        older = [each for each in lines if each is not line]
        self._lines[line.way.identity] = [each for each in lines if each is line]
        for each in older:
            each.leave(reason)
        return older

    def over(self, line: GatewayLine) -> bool:
        """Forget a channel that has ended; return whether it was the last one of its way."""
        lines = self._lines.get(line.way.identity, [])
        if line in lines:
            lines.remove(line)
        if not lines:
            self._lines.pop(line.way.identity, None)
        return not lines

    def lines(self, way: GatewayWay) -> list[GatewayLine]:
        """Return the channels of a way."""
        return self._lines.get(way.identity, [])

    def all_lines(self) -> Iterator[GatewayLine]:
        """Yield the channels of all ways."""
        for lines in list(self._lines.values()):
            yield from lines

    async def another(self, way: GatewayWay) -> GatewayLine | str:
        """Open one more channel over a way that has one; return it, or why the gateway does not
        grant it."""
        try:
            connected = await connect(
                parse(way.url), tls=self._tls, max_frame=self._turns.terms.max_frame
            )
            line = await self._begin(way, connected, join=True)
        except OSError as error:
            return _reason(error)
        return await line.answer or line

    def stop(self) -> None:
        """End all attempts; channels are closed by their owner."""
        tasks, self._tasks = self._tasks, {}
        for task in (*tasks.values(), *self._others):
            task.cancel()
        for ready in self._ready.values():
            ready.drop()
        self._ready.clear()

    def run(self, work: Coroutine[Any, Any, None]) -> None:
        """Run something that belongs to no attempt, until it ends or the device is closed."""
        task = asyncio.ensure_future(work)
        self._others.add(task)
        task.add_done_callback(self._others.discard)

    def _run(self, way: GatewayWay, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks[way.identity] = task
        task.add_done_callback(lambda done: self._done(way, done))

    def _done(self, way: GatewayWay, task: asyncio.Task[None]) -> None:
        if self._tasks.get(way.identity) is task:
            del self._tasks[way.identity]
        error = None if task.cancelled() else task.exception()
        if error is not None:
            self._broken(error)

    async def _connect(self, way: GatewayWay) -> None:
        try:
            connected = await connect(
                parse(way.url), tls=self._tls, max_frame=self._turns.terms.max_frame
            )
        except OSError as error:
            self._failed(way, _reason(error), None)
        else:
            self._ready[way.identity] = connected
            self._connected(way)

    async def _say(self, way: GatewayWay, connected: HeldConnection, *, join: bool) -> None:
        try:
            await self._begin(way, connected, join=join)
        except OSError as error:
            # Without contact there is nothing to join: HELLO may be said over this way instead.
            bye = Close(CloseCode.BYE) if str(error) == NOTHING_TO_JOIN else None
            self._failed(way, _reason(error), bye)

    async def _begin(
        self, way: GatewayWay, connected: HeldConnection, *, join: bool
    ) -> GatewayLine:
        try:
            hello = await self._hello(way, join=join)
        except BaseException:
            connected.drop()
            raise
        line = GatewayLine(way, hello, self._turns, self._owner, self._ends)
        self._lines.setdefault(way.identity, []).append(line)
        try:
            await line.say(connected)
        except BaseException:
            line.left = True
            self.over(line)
            raise
        return line

    async def _hello(self, way: GatewayWay, *, join: bool) -> Hello:
        if join:
            hello = await self._turns.ask(
                lambda session, _now: session.joining(link=way.link, network=way.network)
            )
            if hello is None:
                raise ConnectionError(NOTHING_TO_JOIN)
        else:
            hello = await self._turns.hello(way.link, way.network)
        if way.token is not None:
            hello = msgspec.structs.replace(hello, token=way.token)
        return self._with_heartbeat(hello)


def _reason(error: OSError) -> str:
    if isinstance(error, TimeoutError):
        return UNANSWERED
    return str(error) or type(error).__name__
