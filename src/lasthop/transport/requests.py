"""Links over HTTP requests, on the device's side. `wire.requests` decides what to request and
when."""

from __future__ import annotations

import asyncio
from urllib.parse import urljoin, urlsplit

from lasthop.clock import SECOND, Micros
from lasthop.errors import DamagedWrite, HopError
from lasthop.transport.http import HttpAnswer, HttpFailure
from lasthop.transport.keepalive import HttpServer
from lasthop.transport.link import ChannelLink, Ends, Machine
from lasthop.transport.stream import HIGH_WATER
from lasthop.wire.hop.checksums import CHANGED, TRAILER
from lasthop.wire.hop.connection import Open
from lasthop.wire.requests.asking import HeldRequests, Polling, RequestClient, RequestToMake
from lasthop.wire.requests.bodies import (
    CONTENT_TYPE,
    UnitsToSend,
    answer_label,
    request_label,
    unpack_checked,
    with_checksum,
)

SLACK = 15.0
"""Seconds that an answer may take beyond the time for which the gateway may hold the request."""

LAST_WORD = 2.0
"""Seconds to wait for outstanding answers after a request was refused because its connection is
gone: one of them may have the CLOSE that says why."""


class RequestsLink(ChannelLink):
    """A link whose units travel in HTTP requests and their answers."""

    __slots__ = (
        "_asking",
        "_every",
        "_full",
        "_refusal",
        "_server",
        "_tasks",
        "_timer",
        "_url",
    )

    ordered = False

    def __init__(
        self, ends: Ends, machine: Machine, server: HttpServer, *, every: Micros | None
    ) -> None:
        """Create the link; with `every` it polls, without it requests wait at the gateway."""
        super().__init__(ends, machine, local=False)
        self._server = server
        self._every = every
        self._asking: RequestClient = (
            HeldRequests() if every is None else Polling(ends.clock.now(), every=every)
        )
        self._full = False
        self._refusal = ""
        """Why no more requests are made; empty while they are."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._url = ""

    async def open(self, path: str) -> None:
        """Send HELLO and learn the URL of this connection; raise OSError when that fails."""
        hello = UnitsToSend()
        hello.add(self.machine.data_to_send())
        every = "" if self._every is None else f"?poll={self._every / SECOND:g}"
        try:
            answer = await self._server.post(path + every, CONTENT_TYPE, hello.pack())
        except HttpFailure as failure:
            raise ConnectionError(failure.reason) from None
        place = urlsplit(urljoin(path, answer.header("location")))
        if answer.status != 201 or not place.path:
            raise ConnectionError(f"there is no gateway at this address: {_complaint(answer)}")
        # Only the path counts, so that no answer can lead the device to another server.
        self._url = place.path
        self.begin()
        self._take(answer.body, 0)
        self._pump()

    # What a carrier of `ChannelLink` implements.

    def write(self, units: list[bytes]) -> None:
        self._asking.write(units)
        self._pump()

    @property
    def unsent(self) -> int:
        return self._asking.unsent

    def hang_up(self) -> None:
        self._asking.finish()
        self._pump()

    def cut(self) -> None:
        self._end("cut off")

    def _pump(self) -> None:
        """Make the requests that are due now, and set a timer for the next ones."""
        if self.over or not self._url:
            return
        if self._asking.over:
            self._end("the connection is over")
            return
        if self._refusal:
            if not self._others():
                self._end(self._refusal)
            return
        if isinstance(self._asking, HeldRequests):
            self._asking.greeted = type(self.machine) is Open
        now = self._ends.clock.now()
        for ask in self._asking.requests(now):
            task = asyncio.get_running_loop().create_task(self._ask(ask))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        self._watch(now)
        full = self._asking.unsent >= (HIGH_WATER // 4 if self._full else HIGH_WATER)
        if full is not self._full:
            self._full = full
            self.full(full)
        self.look_drained()

    def _watch(self, now: Micros) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        due = self._asking.next_timeout()
        if due is not None:
            delay = max(0, due - now) / SECOND
            self._timer = asyncio.get_running_loop().call_later(delay, self._pump)

    async def _ask(self, ask: RequestToMake) -> None:
        wait = ask.wait / SECOND
        target = f"{self._url}/{ask.number}?seen={ask.seen}" + (f"&wait={wait:g}" if wait else "")
        problem, pause = "", 0
        try:
            async with asyncio.timeout(wait + SLACK):
                answer = await self._server.post(target, CONTENT_TYPE, self._body(ask))
            if answer.status == 200:
                self._answered(ask.number, answer.body)
                return
            problem = _complaint(answer)
            if answer.status not in (429, 502, 503, 504):
                self._refused(problem)
                return
            pause = _seconds(answer.header("retry-after"))
        except TimeoutError:
            problem = "no answer came in time"
        except HttpFailure as failure:
            problem = failure.reason
        except OSError as error:
            problem = str(error) or type(error).__name__
        if not self._asking.failed(ask.number, self._ends.clock.now(), pause=pause):
            self._end(problem)
        else:
            self._pump()

    def _refused(self, reason: str) -> None:
        """Note that the server refuses requests of this connection. An answer that it gave before
        may still arrive and say why."""
        if not self._refusal:
            self._refusal = reason
            if self._timer is not None:
                self._timer.cancel()
            self._timer = asyncio.get_running_loop().call_later(LAST_WORD, self._end, reason)
        self._pump()

    def _answered(self, number: int, body: bytes) -> None:
        brought = len(body) > (TRAILER if self.checked else 0)
        if self._asking.answered(number, self._ends.clock.now(), brought=brought):
            self._take(body, number)
        self._pump()

    def _body(self, ask: RequestToMake) -> bytes:
        if not self.checked:
            return ask.body
        # Only now, because `seen` may be another one when the request is repeated.
        return with_checksum(ask.body, request_label(ask.number, ask.seen))

    def _take(self, body: bytes, number: int) -> None:
        try:
            units, checked = unpack_checked(body, answer_label(number))
            if units and self.checked and not checked:
                raise DamagedWrite(CHANGED)
        except HopError as error:
            self.fail(error)
            return
        for unit in units:
            self.arrived(unit, number)

    def _end(self, reason: str) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for task in self._others():
            task.cancel()
        self._server.close()
        self.ended(reason)

    def _others(self) -> set[asyncio.Task[None]]:
        """Return the tasks of open requests, except the one that is running now."""
        current = asyncio.current_task()
        return {task for task in self._tasks if task is not current}


def _complaint(answer: HttpAnswer) -> str:
    """Return what an error answer says, in one line."""
    said = answer.body[:200].decode("utf-8", "replace").strip()
    line = said.splitlines()[0] if said else "nothing more"
    return f"the server answered {answer.status}: {line}"


def _seconds(text: str) -> Micros:
    """Return the pause that the server asks for in `Retry-After`, at most a minute; 0 if
    unreadable."""
    known = text.isascii() and text.isdigit() and len(text) < 6
    return min(int(text), 60) * SECOND if known else 0
