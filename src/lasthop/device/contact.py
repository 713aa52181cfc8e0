"""Keeps a device connected over the ways that it has: listens to their channels, reports to `ways`
what becomes of them, and does what `ways` decides."""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType

import msgspec

from lasthop.clock import MILLISECOND, SECOND, Clock, Micros
from lasthop.decision.preferences import Preferences
from lasthop.device import told_ways
from lasthop.device.gateway_line import GatewayLine
from lasthop.device.heartbeats import Heartbeats
from lasthop.device.lines import Lines
from lasthop.device.pricing import round_trip
from lasthop.device.probing import ProbeChannel
from lasthop.device.retry import Backoff, LinkClosed
from lasthop.device.session_events import LinkSpent
from lasthop.device.turns import Turns
from lasthop.device.way import (
    AskWay,
    ConnectWay,
    GatewayWay,
    Origin,
    RenewWay,
    SayHello,
    WayDown,
    WayEvent,
    WayIdentity,
    WayState,
    WayStatus,
    WaySuspect,
    WayUp,
)
from lasthop.device.way_attempts import WayAttempts
from lasthop.device.way_watch import WayWatch
from lasthop.device.ways import Ways
from lasthop.errors import Conflict, HopError
from lasthop.transport.address import parse
from lasthop.transport.alarms import Alarms
from lasthop.transport.link import ChannelLink, Ends, EndsFor
from lasthop.wire.hop.frames import Close, CloseCode, Frame, Hello, Ping
from lasthop.wire.hop.handshake import Opened

log = logging.getLogger("lasthop.device")

GOODBYE = 2.0
"""Seconds that closing a device waits for its last frames to leave."""

ANOTHER_NETWORK = "the device is on another network"


class Contact:
    """The channels of one device to its gateway, which are opened again whenever they end."""

    def __init__(
        self,
        turns: Turns,
        ways: Sequence[GatewayWay],
        *,
        clock: Clock,
        tls: ssl.SSLContext | None,
        backoff: Backoff,
        heartbeats: Heartbeats,
        checksums: bool,
        encrypted: bool,
        report: Callable[[WayEvent], None],
    ) -> None:
        """Prepare without connecting; `report` is called with what an application may want to know
        about its ways."""
        self._heartbeats = heartbeats
        self.problem = "not connected yet"
        """The reason, in words for people, why the device is not connected; if it is connected, why
        it last was not."""
        self._turns = turns
        self._clock = clock
        self._tls = tls
        self._encrypted = encrypted
        self._report = report
        self.usual = ways[0]
        """The way that the device was opened with; `moved` changes its link and network."""
        self.ways = Ways(ways, backoff=backoff.fresh, now=clock.now())
        self._alarms = Alarms(clock)
        self._ends: EndsFor = partial(Ends, clock=clock, alarms=self._alarms, checksums=checksums)
        self._attempts = WayAttempts(
            turns,
            self,
            self._ends,
            tls=tls,
            connected=self._connected,
            failed=self._failed,
            broken=self._break,
            with_heartbeat=self._with_heartbeat,
        )
        self._line_of: dict[ChannelLink, GatewayLine] = {}
        self._watch = WayWatch(self.ways, clock, lines=self._line_of.values, due=self._act)
        self._lines = Lines(turns, clock=clock, way_of=self._way_of)
        self._results: dict[WayIdentity, list[asyncio.Future[str | None]]] = {}
        """Calls that wait for the next result of a way."""
        self.damaged = 0
        """The number of links that ended because the data that came over them could not be
        understood."""
        self._renewing = False
        self._welcome = asyncio.Event()
        self._over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._leaving: set[ChannelLink] = set()
        self._gone = asyncio.Event()

    @property
    def there(self) -> bool:
        """Whether the gateway has welcomed the device and a channel is still open."""
        return self._welcome.is_set()

    async def welcomed_once(self) -> None:
        """Wait until the gateway has welcomed the device."""
        await self._welcome.wait()

    @property
    def round_trip(self) -> int | None:
        """The smoothed round-trip time in microseconds; None while it is unknown."""
        return round_trip(self._lines.open[-1]) if self._lines.open else None

    async def run(self) -> None:
        """Keep the device connected, until an error makes dialling again not_ours; raise that
        error."""
        self.ways.tick(self._clock.now())
        self._act()
        await self._over

    # What the application wants.

    async def join(self, way: GatewayWay) -> None:
        """Keep one more channel open, and send over it from now on. Without contact the way is
        opened when there is contact. Raises LinkClosed if the link has used up a limit, or Conflict
        if the channel cannot be opened now."""
        self._check_limit(way)
        found = self.ways.find(way)
        self.ways.join(way, self._clock.now())
        await self._opened(way, found)

    async def switch(self, way: GatewayWay) -> None:
        """Use a way in place of all others; without contact, as soon as it works. Errors are those
        of `join`."""
        self._check_limit(way)
        found = self.ways.find(way)
        if found is not None and found.state is WayState.OPEN:
            problem = await self._another(way, instead=True)
            if problem is not None:
                raise Conflict(f"the channel was not joined: {problem}")
            found = None
        self.ways.switch(way, self._clock.now())
        await self._opened(way, found)

    async def _opened(self, way: GatewayWay, found: WayStatus | None) -> None:
        """Wait until a way is open, if there is contact; one that was open gets a further
        channel."""
        there, status = self.there, self.ways.find(way)
        problem: str | None = None
        if found is not None and found.state is WayState.OPEN:
            self._act()
            problem = await self._another(way, instead=False)
        elif status is not None and status.state is not WayState.OPEN:
            result: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()
            self._results.setdefault(way.identity, []).append(result)
            self._act()
            problem = await result if there else None
        else:
            self._act()
        if problem is not None:
            raise Conflict(f"the channel was not joined: {problem}")

    def _check_limit(self, way: GatewayWay) -> None:
        wait = self._lines.closed.get(way.link or "", 0) - self._clock.now()
        if wait > 0:
            raise LinkClosed(
                f"the link {way.link} has reached its limit", retry_after=wait / SECOND
            )

    async def _another(self, way: GatewayWay, *, instead: bool) -> str | None:
        """Open one more channel over a way that has one, with `instead` in its place; return the
        reason if that failed."""
        line = await self._attempts.another(way)
        if isinstance(line, str):
            return line
        if instead:
            for older in self._attempts.leave_older(line, "a newer channel took over"):
                self._remove(older)
        return None

    async def renew(self, way: GatewayWay | None = None) -> None:
        """Move to a new channel on the same network; if that fails, keep the old one."""
        way = way or self.main
        problem = await self._another(way, instead=True)
        if problem is not None:
            log.info("%s was not renewed: %s", way, problem)

    def change(self, act: Callable[[Ways, Micros], None]) -> None:
        """Change the ways, and do at once what follows from that."""
        act(self.ways, self._clock.now())
        self._act()

    def moved(self, link: str | None, network: str | None) -> None:
        """Dial at once over new connections, because the device is on another network. The ways
        without a link of their own go over this one now."""
        now = self._clock.now()
        before = self.usual.link, self.usual.network
        for status in self.ways.status():
            if (status.way.link, status.way.network) == before:
                self.ways.move_way(status.way, link=link, network=network, now=now)
        self.usual = msgspec.structs.replace(self.usual, link=link, network=network)
        self.problem = ANOTHER_NETWORK
        self.ways.network_changed(now)
        self._act()

    def prefer(self, preferences: Preferences) -> None:
        """Send over the best link according to these preferences; without preferences, over the
        newest link."""
        self._lines.prefer(preferences)

    # Facts about the channels.

    @property
    def main(self) -> GatewayWay:
        """The way over which the device sends; without contact, the one that is tried first."""
        if self._lines.open:
            return self._way_of(self._lines.open[-1])
        return self.ways.first() or self.usual

    @property
    def place(self) -> str:
        """The name of the present network, under which the device remembers facts about it."""
        return self.main.place

    @property
    def closed(self) -> dict[str, Micros]:
        """The links that have reached a limit, each with the time until which it must not be
        used."""
        return self._lines.closed

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of the open links."""
        return tuple(self._way_of(link).link or "" for link in self._lines.open)

    @property
    def links(self) -> int:
        """The number of links that are open."""
        return len(self._lines.open)

    def _way_of(self, link: ChannelLink) -> GatewayWay:
        return self._line_of[link].way

    def _with_heartbeat(self, hello: Hello) -> Hello:
        place = hello.network or hello.link or ""
        return msgspec.structs.replace(hello, heartbeat=self._heartbeats.asks(place))

    async def probe(self, heartbeat: int) -> tuple[ProbeChannel, Micros | None]:
        """Open a channel for a trial, which may break it. Return the channel and the silence that
        the gateway allows on it; the silence is None if the gateway could not be reached."""
        terms, way = self._turns.terms, self.main
        hello = Hello(
            app=terms.app,
            device=terms.name,
            token=way.token or terms.token,
            link=way.link,
            network=way.network,
            heartbeat=heartbeat,
            probe=True,
        )
        probe, address = ProbeChannel(hello, self._ends), parse(way.url)
        # An address without lasting connections cannot show how long a silent connection lives.
        return probe, await probe.open(address, self._tls) if address.lasting else None

    # What the session wants.

    def spent(self, session_event: LinkSpent) -> None:
        """Leave a link that has reached a limit on what this device may send, as soon as there is
        another; over the last one the device still receives."""
        self._lines.closed[session_event.link] = session_event.until
        self.ways.spent(session_event.link, session_event.until, self._clock.now())
        self._act()

    def begin_anew(self) -> None:
        """Dial again over a link that has worked before; the gateway's new WELCOME tells which
        messages it lacks."""
        # Once is enough: the session stays stuck until the new channel is open.
        if self._lines.open and not self._renewing:
            self._renewing = True
            self.ways.again(self.main, self._clock.now())
            self._act()

    def send(
        self, frames: Sequence[Frame], routed: Mapping[int, Sequence[Frame]] = MappingProxyType({})
    ) -> None:
        """Send the session's frames over the main link, and the `routed` frames over the channels
        chosen for them."""
        if frames and self._lines.open:
            self._watch.spoke(self._line_of[self._lines.open[-1]], frames)
        self._lines.send(frames)
        for channel, chosen in routed.items():
            link = self._lines.numbered(channel)
            if link is not None:
                self._watch.spoke(self._line_of[link], chosen)
            self._lines.send_over(channel, chosen)

    def fail(self, error: HopError) -> None:
        """Close all links because the gateway broke the protocol."""
        for link in list(self._lines.open):
            link.fail(error)

    async def close(self) -> None:
        """Close all links, and wait a moment for the gateway to close them too."""
        self._attempts.stop()
        self._watch.stop()
        for line in self._attempts.all_lines():
            line.leave("the device closed")
            if line.link is not None and not line.link.over:
                self._leaving.add(line.link)
        if self._leaving:
            self._gone.clear()
            try:
                async with asyncio.timeout(GOODBYE):
                    await self._gone.wait()
            except TimeoutError:
                for link in list(self._leaving):
                    link.cut()
        self._alarms.close()

    # What channels report.

    def granted(self, line: GatewayLine, opened: Opened) -> None:
        """Use a channel that the gateway has granted."""
        link, now = line.link, self._clock.now()
        assert link is not None
        if opened.welcome.found and not line.hello.join:
            self._heartbeats.told(line.way.place, opened.welcome.found * SECOND)
        self._line_of[link] = line
        self._heartbeats.welcomed(link, line.way.place)
        self._lines.add(link)
        self._renewing = False
        self._welcome.set()
        self.ways.welcomed(line.way, now)
        self._act()
        for suspect in self._lines.suspects():
            self._lines.passed_over(suspect)

    def not_ours(self, line: GatewayLine) -> None:
        """Dial again, because the numbers of this conversation are not the device's."""
        self.ways.again(line.way, self._clock.now())
        self._act()

    def told(self, line: GatewayLine, ways: Sequence[tuple[str, str]]) -> None:
        """Learn other ways from the gateway, if nobody else can have named them."""
        if not told_ways.is_safe(line.way.url, self._tls):
            log.warning("the gateway's ways are not used: %s is not safe", line.way)
            return
        self._learn(told_ways.believed(ways, self._tls))

    def _learn(self, ways: list[GatewayWay]) -> None:
        usable = [way for way in ways if not self._encrypted or parse(way.url).secure]
        self._turns.keep(told_ways.MEMORY, told_ways.dump(usable))
        self.ways.told(usable, self._clock.now())
        self._act()

    def _moved_to(self, line: GatewayLine, url: str) -> None:
        """Go to another host, because this one says so; it still serves if the other does not."""
        safe = told_ways.is_safe(line.way.url, self._tls)
        found = told_ways.believed([(line.way.link or "", url)], self._tls) if safe else []
        told = [each.way for each in self.ways.status() if each.way.origin is Origin.GATEWAY]
        for way in found:
            best = max(each.way.preference for each in self.ways.status())
            better = msgspec.structs.replace(way, preference=best + 1)
            self._learn([better, *(each for each in told if each.identity != way.identity)])

    def paused(self, link: ChannelLink, paused: bool) -> None:
        self._lines.paused(link, paused)

    def drained(self, link: ChannelLink) -> None:
        self._lines.drained(link)

    def lost(self, line: GatewayLine, link: ChannelLink, reason: str) -> None:
        self._leaving.discard(link)
        if not self._leaving:
            self._gone.set()  # For `close`, which waits until all are gone.
        if line.left:
            return
        if link.machine.error is not None:
            self.damaged += 1
            reason = f"what the gateway said could not be understood: {reason}"
            log.warning("a link was given up: %s", reason)
        now, close = self._clock.now(), line.said
        if close is not None and close.code == CloseCode.LINK_CLOSED:
            self._lines.closed[line.way.link or ""] = now + close.retry_after_ms * MILLISECOND
        if line.welcomed_here:
            self._remove(line)
            if close is not None and close.code == CloseCode.MOVED:
                self._moved_to(line, close.reason)
        if not self._lines.open:
            self.problem = reason
        if not self._attempts.over(line):
            return  # Another channel goes the same way.
        if line.welcomed_here:
            ours = close is not None and close.code == CloseCode.REPLACED and self._excuse()
            self.ways.lost(line.way, reason, now, close, ours=ours)
        else:
            self.ways.failed(line.way, reason, now, close)
        self._act()

    def _excuse(self) -> bool:
        """Whether a HELLO of this device may have replaced the channel, which the gateway read only
        after the device had given it up."""
        excused = self._attempts.unanswered > 0
        self._attempts.unanswered -= excused
        return excused

    def _remove(self, line: GatewayLine) -> None:
        """Send over a channel no longer, and again over the others what was lost with it."""
        link = line.link
        if link is None or link not in self._lines.open:
            return
        self._heartbeats.lost(link, line.way.place)
        channel = self._lines.remove(link)
        del self._line_of[link]
        # A buffer that ended with its link must not hold up the others.
        self._turns.room = self._turns.drained = True
        if self._lines.open:
            self._turns.post(lambda session, _now: session.rerouted(channel))
            return
        self._welcome.clear()
        self._turns.post(lambda session, _now: session.lost())

    # What ways decide.

    def _connected(self, way: GatewayWay) -> None:
        self.ways.connected(way, self._clock.now())
        self._act()

    def _failed(self, way: GatewayWay, problem: str, close: Close | None) -> None:
        self.problem = problem if not self._lines.open else self.problem
        self.ways.failed(way, problem, self._clock.now(), close)
        self._act()

    def _act(self) -> None:
        """Do what `ways` has decided, and tell what has happened."""
        while actions := self.ways.take():
            for action in actions:
                if isinstance(action, ConnectWay):
                    self._attempts.connect(action.way)
                elif isinstance(action, SayHello):
                    self._attempts.say(action.way, join=action.join)
                elif isinstance(action, RenewWay):
                    self._attempts.run(self.renew(action.way))
                elif isinstance(action, AskWay):
                    self._ask(action.way)
                else:
                    self._leave(action.way, action.reason)
        for event in self.ways.events():
            self._tell(event)
        if self.ways.final is not None:
            self._break(self.ways.final)
        self._watch.arm()

    def _break(self, error: BaseException) -> None:
        if not self._over.done():
            self._over.set_exception(error)

    def _ask(self, way: GatewayWay) -> None:
        for line in self._attempts.lines(way):
            if line.link is not None and line.welcomed_here:
                line.link.send([Ping()])
                self._lines.suspect(line.link)

    def _leave(self, way: GatewayWay, reason: str) -> None:
        lines = list(self._attempts.lines(way))
        self._attempts.leave(way, reason)
        for line in lines:
            self._remove(line)

    def _tell(self, event: WayEvent) -> None:
        if isinstance(event, WayUp | WayDown):
            problem = event.problem if isinstance(event, WayDown) else None
            for result in self._results.pop(event.way.identity, []):
                if not result.done():
                    result.set_result(problem)
        if isinstance(event, WayUp):
            for line in self._attempts.lines(event.way):
                if line.link is not None:
                    self._lines.trusted(line.link)
        if isinstance(event, WayDown | WaySuspect):
            log.info("%s: %s", event.way, getattr(event, "problem", "the gateway does not answer"))
        self._report(event)
