"""Keeps a device connected: dial, listen, notice the end of the channel, wait, dial again."""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Mapping, Sequence
from types import MappingProxyType

import msgspec

from lasthop.clock import MILLISECOND, SECOND, Clock, Micros
from lasthop.decision.preferences import Preferences
from lasthop.device import runner
from lasthop.device.heartbeats import Heartbeats
from lasthop.device.joining import Joining
from lasthop.device.lines import GatewayWay, Lines
from lasthop.device.pricing import round_trip
from lasthop.device.probing import ProbeChannel
from lasthop.device.retry import Backoff, LinkClosed, verdict
from lasthop.device.session_events import LinkSpent
from lasthop.device.turns import Turns
from lasthop.errors import Conflict, HopError
from lasthop.transport.address import GatewayAddress
from lasthop.transport.dial import dial
from lasthop.transport.link import ChannelLink, Ends
from lasthop.wire.hop.connection import Open
from lasthop.wire.hop.frames import Close, CloseCode, Frame, Hello
from lasthop.wire.hop.handshake import Opened

log = logging.getLogger("lasthop.device")

GOODBYE = 2.0
"""Seconds that closing a device waits for its last frames to leave."""

LASTING: Micros = 2 * SECOND
"""How long a contact must last before the pause between attempts is reset to the shortest: a
gateway that accepts connections and closes them at once must not be dialled without pauses."""

ANOTHER_NETWORK = "the device is on another network"


class Contact:
    """The connection of one device to its gateway, which is opened again whenever it ends."""

    def __init__(
        self,
        turns: Turns,
        address: GatewayAddress,
        *,
        clock: Clock,
        tls: ssl.SSLContext | None,
        backoff: Backoff,
        link: str | None,
        network: str | None,
        heartbeats: Heartbeats,
        checksums: bool,
    ) -> None:
        self._heartbeats = heartbeats
        self.link_label = link
        self.network = network
        self.problem = "not connected yet"
        """The reason, in words for people, why the device is not connected; if it is connected, why
        it last was not."""
        self._turns = turns
        self.address = address
        self._tls = tls
        self._backoff = backoff
        self._ends = Ends(self, clock, checksums=checksums)
        self._hello: Hello | None = None
        self._link: ChannelLink | None = None
        """The link that is being dialled, or the first of the open ones."""
        self._ways: dict[ChannelLink, GatewayWay] = {}
        self._next: GatewayWay | None = None
        """The way to dial next, in place of the usual one."""
        self._renewing = False
        self._lines = Lines(turns, clock=clock, ways=self._ways)
        self._last: ChannelLink | None = None
        """The link that ended last, of those over which the gateway had welcomed the device."""
        self.damaged = 0
        """The number of links that ended because the data that came over them could not be
        understood."""
        self._dialling: asyncio.Future[ChannelLink] | None = None
        self._dialled = self._usual_way
        self._welcomed_at: Micros = 0
        self._gone = asyncio.Event()
        self._redial = False
        self._welcome = asyncio.Event()
        self._hurry = asyncio.Event()

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
        """Keep the device connected, until an error makes dialling again useless; raise that
        error."""
        while True:
            way, self._next = self._next or self._usual_way, None
            hello = await self._turns.hello(way.label, way.network)
            # The heartbeat is the one that this network allows.
            self._hello = self._paced(hello)
            self._renewing = False
            last = await self._one_channel(self._hello, way)
            close = _said(last)
            error = verdict(close, welcomed=last is not None and type(last.machine) is Open)
            if error is not None:
                raise error
            if self._redial:
                self._redial = False
                continue
            delay = self._backoff.delay(close)
            log.info("no contact: %s; next attempt in %.1f s", self.problem, delay)
            await self._pause(delay)

    @property
    def _usual_way(self) -> GatewayWay:
        return GatewayWay(self.address, self.link_label, self.network)

    async def _one_channel(self, hello: Hello, way: GatewayWay) -> ChannelLink | None:
        """Dial, and wait until all channels have ended; return the link that ended last, None if
        dialling failed."""
        self._gone.clear()
        self._last = None
        self._dialled = way
        self._dialling = asyncio.ensure_future(dial(way.address, hello, self._ends, tls=self._tls))
        try:
            link = await self._dialling
        except asyncio.CancelledError:
            if not self._redial:
                raise
            self.problem = ANOTHER_NETWORK
            return None
        except TimeoutError:
            self.problem = "the gateway did not answer in time"
            return None
        except OSError as error:
            self.problem = str(error) or type(error).__name__
            return None
        await self._gone.wait()
        return self._ended_last(link)

    def _ended_last(self, dialled: ChannelLink) -> ChannelLink:
        """Return the last link of a contact, which need not be the one that was dialled first."""
        return self._last or dialled

    async def join(
        self, address: GatewayAddress | None, link: str | None, network: str | None
    ) -> None:
        """Open one more channel, and send over it from now on. Raises LinkClosed if the link has
        used up a limit, or Conflict if the channel cannot be joined."""
        wait = self._lines.closed.get(link or "", 0) - self._ends.clock.now()
        if wait > 0:
            raise LinkClosed(f"the link {link} has reached its limit", retry_after=wait / SECOND)
        hello = await self._turns.ask(
            lambda session, _now: session.joining(link=link, network=network)
        )
        if hello is None:
            raise Conflict("the device is not connected, so no channel can join")
        way = GatewayWay(address or self.address, link, network)
        joining = Joining(self._paced(hello), self._turns, self, self._ends)
        problem = await joining.dial(way, self._ways, self._tls)
        if problem is not None:
            raise Conflict(f"the channel was not joined: {problem}")

    @property
    def place(self) -> str:
        """The name of the present network, under which the device remembers facts about it."""
        return self.network or self.link_label or ""

    def _paced(self, hello: Hello) -> Hello:
        place = hello.network or hello.link or ""
        return msgspec.structs.replace(hello, heartbeat=self._heartbeats.asks(place))

    async def probe(self, heartbeat: int) -> tuple[ProbeChannel, Micros | None]:
        """Open a channel for a trial, which may break it. Return the channel and the silence that
        the gateway allows on it; the silence is None if the gateway could not be reached."""
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
        probe = ProbeChannel(hello, self._ends)
        # An address without lasting connections cannot show how long a silent connection lives.
        lasting = self.address.lasting
        return probe, await probe.open(self.address, self._tls) if lasting else None

    async def renew(self) -> None:
        """Move to a new channel on the same network; if that fails, keep the old one."""
        try:
            await self.join(None, self.link_label, self.network)
        except Conflict as problem:
            log.info("%s", problem)
        else:
            self.leave(but=1)

    def prefer(self, preferences: Preferences) -> None:
        """Send over the best link according to these preferences; without preferences, over the
        newest link."""
        self._lines.prefer(preferences)

    def spent(self, session_event: LinkSpent) -> None:
        """Close a link that has reached a limit on what this device may send; the last open link is
        not closed, so that the device can receive."""
        self._lines.closed[session_event.link] = session_event.until
        link = self._lines.numbered(session_event.channel)
        # The limit is on sending: over the last link the device still receives.
        if link is not None and len(self._lines.open) > 1:
            link.close(CloseCode.BYE, "it has reached a limit of the device")

    @property
    def closed(self) -> dict[str, Micros]:
        """The links that have reached a limit, each with the time until which it must not be
        used."""
        return self._lines.closed

    def begin_anew(self) -> None:
        """Dial again over a link that has worked before; the gateway's new WELCOME tells which
        messages it lacks."""
        # Once is enough: the session stays stuck until the new channel is open.
        if self._lines.open and not self._renewing:
            self._renewing = True
            self._next = self._ways[self._lines.open[-1]]
            self.reconnect()

    def leave(self, *, but: int) -> None:
        """Close all links except the newest `but`."""
        links = self._lines.open
        for link in links[: len(links) - but]:
            link.close(CloseCode.BYE, ANOTHER_NETWORK)

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of the open links."""
        return tuple(self._ways[link].label or "" for link in self._lines.open)

    @property
    def links(self) -> int:
        """The number of links that are open."""
        return len(self._lines.open)

    async def _pause(self, seconds: float) -> None:
        self._hurry.clear()
        try:
            async with asyncio.timeout(seconds):
                await self._hurry.wait()
        except TimeoutError:
            pass

    def reconnect(self) -> None:
        """Dial at once over a new connection, because the network has changed."""
        self._hurry.set()
        if self._link is not None or self._lines.open:
            self._redial = True
            for link in {*self._lines.open, self._link} - {None}:
                assert link is not None
                link.close(CloseCode.BYE, ANOTHER_NETWORK)
        elif self._dialling is not None and not self._dialling.done():
            self._redial = True
            self._dialling.cancel()

    def send(
        self, frames: Sequence[Frame], routed: Mapping[int, Sequence[Frame]] = MappingProxyType({})
    ) -> None:
        """Send the session's frames over the main link, and the `routed` frames over the channels
        chosen for them."""
        self._lines.send(frames)
        for channel, chosen in routed.items():
            self._lines.send_over(channel, chosen)

    def fail(self, error: HopError) -> None:
        """Close all links because the gateway broke the protocol."""
        for link in list(self._lines.open):
            link.fail(error)

    async def close(self) -> None:
        """Close all links, and wait a moment for the gateway to close them too."""
        links = {*self._lines.open, self._link} - {None}
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

    def connected(self, link: ChannelLink) -> None:
        self._link = link
        self._ways[link] = self._dialled

    def received(self, link: ChannelLink, frames: Sequence[Frame]) -> None:
        if link is self._link:
            self._turns.post(lambda session, now: session.received(frames, now))

    def welcomed(self, link: ChannelLink, opened: Opened) -> None:
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

        act = runner.welcomed(self._hello, opened.welcome, opened.frames, ordered=link.ordered)
        self._turns.post(act, then)

    def granted(self, link: ChannelLink) -> None:
        """Use a link over which the gateway has welcomed the device."""
        self._heartbeats.welcomed(link, self.place)
        self._lines.add(link)

    def paused(self, link: ChannelLink, paused: bool) -> None:
        self._lines.paused(link, paused)

    def drained(self, link: ChannelLink) -> None:
        self._lines.drained(link)

    def lost(self, link: ChannelLink, reason: str) -> None:
        if link.machine.error is not None:
            self.damaged += 1
            reason = f"what the gateway said could not be understood: {reason}"
            log.warning("a link was given up: %s", reason)
        way = self._ways.pop(link, None)
        last = link.closed
        if way is not None and last is not None and last.code == CloseCode.LINK_CLOSED:
            until = self._ends.clock.now() + last.retry_after_ms * MILLISECOND
            self._lines.closed[way.label or ""] = until
        welcome = link in self._lines.open
        channel = self._lines.remove(link)
        if welcome:
            self._heartbeats.lost(link, self.place)
            self._last = link
        if link is self._link:
            self._link = None
        elif not welcome:
            return  # The link was only an attempt to join: nothing was sent over it.
        # A buffer that ended with its link must not hold up the others.
        self._turns.room = self._turns.drained = True
        if self._lines.open:
            self._turns.post(lambda session, _now: session.rerouted(channel))
            return
        self.problem = reason
        if welcome and self._ends.clock.now() - self._welcomed_at >= LASTING:
            self._backoff.succeeded()
        self._welcome.clear()
        self._turns.post(lambda session, _now: session.lost())
        self._gone.set()


def _said(link: ChannelLink | None) -> Close | None:
    """Return the gateway's CLOSE on a link. If the gateway could not be understood, the last CLOSE
    is this device's own, so None is returned."""
    return link.closed if link is not None and link.machine.error is None else None
