"""Staying in touch: dial, hear the gateway, notice the end, wait, dial again."""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Sequence

import msgspec

from lasthop.clock import MILLISECOND, SECOND, Clock, Micros
from lasthop.decision.preferences import Preferences
from lasthop.device import desk
from lasthop.device.heartbeats import Heartbeats
from lasthop.device.joining import Joining
from lasthop.device.pricing import dearest_first, round_trip
from lasthop.device.probing import Probe
from lasthop.device.retry import Backoff, LinkClosed, verdict
from lasthop.device.turns import Turns
from lasthop.errors import Conflict, HopError
from lasthop.transport.address import Address
from lasthop.transport.dial import dial
from lasthop.transport.link import Ends, Link
from lasthop.wire.hop.frames import Close, CloseCode, Frame, Hello, Piece
from lasthop.wire.hop.handshake import Opened

log = logging.getLogger("lasthop.device")

GOODBYE = 2.0
"""Seconds that the end of a device waits for its last words to be carried."""

LASTING: Micros = 2 * SECOND
"""A gateway that takes us in and throws us out at once is not dialled more and more eagerly."""

ANOTHER_NETWORK = "the device is on another network"


class Contact:
    """One device's connection to its gateway, again and again."""

    def __init__(
        self,
        turns: Turns,
        address: Address,
        *,
        clock: Clock,
        tls: ssl.SSLContext | None,
        backoff: Backoff,
        link: str | None,
        network: str | None,
        heartbeats: Heartbeats,
    ) -> None:
        self._heartbeats = heartbeats
        self.link_label = link
        self.network = network
        self.problem = "not connected yet"
        """Why there is no contact."""
        self._turns = turns
        self.address = address
        self._tls = tls
        self._backoff = backoff
        self._ends = Ends(self, clock)
        self._hello: Hello | None = None
        self._link: Link | None = None
        """The link that is dialled or open."""
        self._open: list[Link] = []
        """The links over which the gateway has welcomed us, the one that we speak over last."""
        self._labels: dict[Link, str] = {}
        """What each of them was dialled as."""
        self.closed: dict[str, Micros] = {}
        """Links over which the gateway does not want us before then: a limit of ours is reached."""
        self._wishes: Preferences | None = None
        self._last_word: Close | None = None
        self._fed_at: Micros = 0
        self._dialling: asyncio.Future[Link] | None = None
        self._welcomed_at: Micros = 0
        self._gone = asyncio.Event()
        self._redial = False
        self._welcome = asyncio.Event()
        self._hurry = asyncio.Event()

    @property
    def there(self) -> bool:
        """Whether the gateway has welcomed us and is still there."""
        return self._welcome.is_set()

    async def welcomed_once(self) -> None:
        """Until there is contact."""
        await self._welcome.wait()

    @property
    def round_trip(self) -> int | None:
        """The smoothed round-trip time in microseconds, when it is known."""
        return round_trip(self._open[-1]) if self._open else None

    async def run(self) -> None:
        """Stay in touch until that makes no sense any more; then raise why."""
        while True:
            hello = await self._turns.hello(self.link_label, self.network)
            self._hello = self._paced(hello)
            close = await self._one_channel(self._hello)
            error = verdict(close)
            if error is not None:
                raise error
            if self._redial:
                self._redial = False
                continue
            delay = self._backoff.delay(close)
            log.info("no contact: %s; next attempt in %.1f s", self.problem, delay)
            await self._pause(delay)

    async def _one_channel(self, hello: Hello) -> Close | None:
        """From the first packet to the last; returns the last word."""
        self._gone.clear()
        self._last_word = None
        self._dialling = asyncio.ensure_future(dial(self.address, hello, self._ends, tls=self._tls))
        try:
            link = await self._dialling
        except asyncio.CancelledError:
            if not self._redial:
                raise
            self.problem = ANOTHER_NETWORK
            return None
        except TimeoutError:
            self.problem = "nobody answered in time"
            return None
        except OSError as error:
            self.problem = str(error) or type(error).__name__
            return None
        await self._gone.wait()
        return self._final_word(link)

    def _final_word(self, link: Link) -> Close | None:
        """What was said last on the last link, which need not be the first one."""
        return self._last_word or link.closed

    async def join(self, address: Address | None, link: str | None, network: str | None) -> None:
        """Open one more channel, and speak over it from now on."""
        wait = self.closed.get(link or "", 0) - self._ends.clock.now()
        if wait > 0:
            raise LinkClosed(f"{link} has reached its limit", retry_after=wait / SECOND)
        hello = await self._turns.ask(
            lambda session, _now: session.joining(link=link, network=network)
        )
        if hello is None:
            raise Conflict("there is no contact yet that a channel could join")
        joining = Joining(self._paced(hello), self._turns, self, self._ends, labels=self._labels)
        problem = await joining.dial(address or self.address, self._tls)
        if problem is not None:
            raise Conflict(f"the channel was not joined: {problem}")

    @property
    def place(self) -> str:
        """What is learned here holds wherever this is the same."""
        return self.network or self.link_label or ""

    def _paced(self, hello: Hello) -> Hello:
        """With the heartbeat that this network allows."""
        place = hello.network or hello.link or ""
        return msgspec.structs.replace(hello, heartbeat=self._heartbeats.asks(place))

    async def probe(self, heartbeat: int) -> tuple[Probe, Micros | None]:
        """Open a channel that may be lost; how much silence the gateway allows on it, if it could
        be reached."""
        terms = self._turns.terms
        hello = Hello(
            app=terms.app,
            device=terms.name,
            token=terms.token,
            link=self.link_label,
            network=self.network,
            heartbeat=heartbeat,
            probe=True,
        )
        probe = Probe(hello, self._ends)
        # What several requests show is not how long one connection lives.
        lasting = self.address.lasting
        return probe, await probe.open(self.address, self._tls) if lasting else None

    async def renew(self) -> None:
        """Go over to a new channel on the same network; if that fails, the old one will do."""
        try:
            await self.join(None, self.link_label, self.network)
        except Conflict as problem:
            log.info("%s", problem)
        else:
            self.leave(but=1)

    def prefer(self, wishes: Preferences) -> None:
        """Speak over the link that these make the best one; without them it is the newest."""
        self._wishes = wishes
        self._choose()

    def _choose(self) -> None:
        if self._wishes is not None and len(self._open) > 1:
            self._open = dearest_first(self._open, self._labels, self._wishes)
            self._turns.room = True

    def leave(self, *, but: int) -> None:
        """End all links but the newest few."""
        for link in self._open[: len(self._open) - but]:
            link.close(CloseCode.BYE, ANOTHER_NETWORK)

    @property
    def links(self) -> int:
        """How many links are open."""
        return len(self._open)

    async def _pause(self, seconds: float) -> None:
        self._hurry.clear()
        try:
            async with asyncio.timeout(seconds):
                await self._hurry.wait()
        except TimeoutError:
            pass

    def reconnect(self) -> None:
        """Dial at once, over a new connection: the network has changed."""
        self._hurry.set()
        if self._link is not None or self._open:
            self._redial = True
            for link in {*self._open, self._link} - {None}:
                assert link is not None
                link.close(CloseCode.BYE, ANOTHER_NETWORK)
        elif self._dialling is not None and not self._dialling.done():
            self._redial = True
            self._dialling.cancel()

    def send(self, frames: Sequence[Frame]) -> None:
        """What the session says, to the gateway that welcomed it."""
        if self._open and frames:
            speaking, others = self._open[-1], self._open[:-1]
            speaking.send(frames)
            if type(frames[-1]) is Piece and frames[-1].body:
                self._turns.drained = False
                self._fed_at = self._ends.clock.now()
                speaking.report_drained()
            for link in others:
                link.overheard(frames)

    def fail(self, error: HopError) -> None:
        """The gateway said something impossible."""
        for link in list(self._open):
            link.fail(error)

    async def close(self) -> None:
        """Say goodbye."""
        links = {*self._open, self._link} - {None}
        for link in links:
            assert link is not None
            link.close(CloseCode.BYE, "the device closed")
        if links:
            try:
                async with asyncio.timeout(GOODBYE):
                    await self._gone.wait()
            except TimeoutError:
                for link in links:
                    assert link is not None
                    link.cut()
        self._ends.alarms.close()

    # What links report.

    def connected(self, link: Link) -> None:
        self._link = link
        self._labels[link] = self.link_label or ""

    def received(self, link: Link, frames: Sequence[Frame]) -> None:
        if link is self._link:
            self._turns.post(lambda session, now: session.received(frames, now))

    def welcomed(self, link: Link, opened: Opened) -> None:
        assert self._hello is not None

        def then(useful: object) -> None:
            if isinstance(useful, HopError):
                link.fail(useful)
            elif not useful:
                self._redial = True
                link.close(CloseCode.BYE, "these numbers are not ours")
            elif not link.over:
                if opened.welcome.found:
                    self._heartbeats.told(self.place, opened.welcome.found * SECOND)
                self.granted(link)
                self._welcomed_at = self._ends.clock.now()
                self._welcome.set()

        act = desk.welcomed(self._hello, opened.welcome, opened.frames, ordered=link.ordered)
        self._turns.post(act, then)

    def granted(self, link: Link) -> None:
        """We are welcome over this link, and speak over it from now on."""
        self._open.append(link)
        self._heartbeats.welcomed(link, self.place)
        self._turns.room = self._turns.drained = True
        self._choose()

    def paused(self, link: Link, paused: bool) -> None:
        if self._open and link is self._open[-1]:
            self._turns.room = not paused
            if not paused:
                self._turns.nudge()

    def drained(self, link: Link) -> None:
        if self._open and link is self._open[-1] and not self._turns.drained:
            elapsed = self._ends.clock.now() - self._fed_at
            self._turns.drained = True
            self._turns.post(lambda session, _now: session.transfers.pace.left(elapsed))

    def lost(self, link: Link, reason: str) -> None:
        label = self._labels.pop(link, "")
        last = link.closed
        if last is not None and last.code == CloseCode.LINK_CLOSED:
            now = self._ends.clock.now()
            self.closed[label] = now + last.retry_after_ms * MILLISECOND
        welcome = link in self._open
        if welcome:
            self._open.remove(link)
            self._heartbeats.lost(link, self.place)
            self._last_word = link.closed
        if link is self._link:
            self._link = None
        elif not welcome:
            return  # It was never more than an attempt to join.
        self._turns.drained = True
        if self._open:
            self._turns.room = True
            self._turns.post(lambda session, _now: session.rerouted())
            return
        self.problem = reason
        if welcome and self._ends.clock.now() - self._welcomed_at >= LASTING:
            self._backoff.succeeded()
        self._turns.room = True
        self._welcome.clear()
        self._turns.post(lambda session, _now: session.lost())
        self._gone.set()
