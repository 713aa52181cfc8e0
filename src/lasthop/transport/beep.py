"""Links over BEEP: one session on a TCP connection, one link on each of its channels."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import cast

from lasthop.errors import LasthopError
from lasthop.transport.link import ChannelLink, Ends, Machine
from lasthop.transport.locality import is_local
from lasthop.transport.stream import HIGH_WATER
from lasthop.wire.beep import hop
from lasthop.wire.beep.channel import BeepMessage
from lasthop.wire.beep.session import (
    BeepSession,
    ChannelClosed,
    ChannelRefused,
    Event,
    Greeted,
    Over,
    Started,
)


class BeepLink(ChannelLink):
    """A link over one channel of a BEEP session."""

    __slots__ = ("_channel", "_connection", "_ending", "_full")

    def __init__(
        self, ends: Ends, machine: Machine, connection: BeepConnection, channel: int
    ) -> None:
        super().__init__(ends, machine, local=connection.local)
        self._connection = connection
        self._channel = channel
        self._ending = False
        self._full = False

    def write(self, units: list[bytes]) -> None:
        for unit in units:
            hop.send(self._connection.session, self._channel, unit)
        self._connection.flush()

    def hang_up(self) -> None:
        self._ending = True
        self._connection.flush()

    @property
    def unsent(self) -> int:
        return self._connection.session.waiting(self._channel)

    def cut(self) -> None:
        self._connection.abort()

    def settle(self, *, paused: bool) -> None:
        """Report whether the channel has room, and end the link once its CLOSE was sent."""
        if self.over:
            return
        unsent = self._connection.session.waiting(self._channel)
        full = paused or unsent >= (HIGH_WATER // 4 if self._full else HIGH_WATER)
        if full is not self._full:
            self._full = full
            self.full(full)
        self.look_drained()
        if self._ending and not unsent:
            self._connection.leave(self._channel)
            self.ended("the channel is over")


class BeepConnection(asyncio.Protocol):
    """A TCP connection with a BEEP session, and the links on its channels."""

    def __init__(
        self, ends: Ends, make: Callable[[], Machine], *, initiator: bool, max_unit: int
    ) -> None:
        """Create the session; `make` returns the protocol state of each new channel."""
        self._ends = ends
        self._make = make
        self.session = BeepSession(
            initiator=initiator,
            profiles=() if initiator else (hop.PROFILE,),
            max_message=max_unit + hop.OVERHEAD,
            throttle=not initiator,
        )
        self.local = False
        self.links: dict[int, BeepLink] = {}
        self._transport: asyncio.Transport | None = None
        self._initiator = initiator
        self._paused = False
        self._flushing = False
        self.opened: asyncio.Future[BeepLink] = asyncio.get_running_loop().create_future()
        """The first link, for the side that opened the connection."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=HIGH_WATER)
        self.local = is_local(self._transport.get_extra_info("peername"))
        self.flush()

    def data_received(self, data: bytes) -> None:
        try:
            for event in self.session.receive(data):
                self._handle(event)
        except LasthopError as error:
            # A poorly formed frame ends the session without a reply (RFC 3080, 2.2.1.1).
            self._fail(str(error))
            return
        for channel, link in self.links.items():
            self.session.limit(channel, link.machine.max_unit + hop.OVERHEAD)
        self.flush()

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._ended(str(exc) if exc is not None else "the peer hung up")

    def pause_writing(self) -> None:
        self._paused = True
        if not self._initiator and self._transport is not None:
            self._transport.pause_reading()
        self._settle()

    def resume_writing(self) -> None:
        self._paused = False
        if not self._initiator and self._transport is not None:
            self._transport.resume_reading()
        self._settle()

    def flush(self) -> None:
        """Write the octets that the session has to send."""
        data = self.session.data_to_send()
        if data and self._transport is not None:
            self._transport.write(data)
        self._settle()

    def leave(self, channel: int) -> None:
        """Close the channel of a link that has ended, and with the last one the session."""
        self.links.pop(channel, None)
        self.session.close(channel if self.links else 0)
        data = self.session.data_to_send()
        if self._transport is not None:
            self._transport.write(data)
            if not self.links:
                self._transport.close()

    def abort(self) -> None:
        """End the connection at once, without closing the session."""
        if self._transport is not None:
            self._transport.abort()

    def _handle(self, event: Event) -> None:
        match event:
            case Greeted(profiles):
                if self._initiator and hop.PROFILE not in profiles:
                    self._fail("the peer does not speak the hop protocol")
                elif self._initiator:
                    self.session.start(hop.PROFILE)
            case Started(channel):
                link = self.links[channel] = BeepLink(self._ends, self._make(), self, channel)
                if not self.opened.done():
                    self.opened.set_result(link)
                link.begin()
            case BeepMessage(channel):
                unit = hop.hear(self.session, event)
                if unit is not None and channel in self.links:
                    self.links[channel].arrived(unit)
            case ChannelClosed(channel, _, text):
                ended = self.links.pop(channel, None)
                if ended is not None:
                    ended.ended(text or "the peer closed the channel")
            case ChannelRefused(_, code, text):
                self._fail(f"the peer does not start the channel: {code} {text}".rstrip())
            case Over(text):
                if self._transport is not None:
                    self._transport.write(self.session.data_to_send())
                    self._transport.close()
                self._ended(text)

    def _fail(self, reason: str) -> None:
        self._ended(reason)
        self.abort()

    def _ended(self, reason: str) -> None:
        links, self.links = self.links, {}
        for link in links.values():
            link.ended(reason)
        if not self.opened.done():
            self.opened.set_exception(ConnectionError(reason))
            self.opened.exception()  # Mark the error as retrieved, in case nobody waits.

    def _settle(self) -> None:
        for link in list(self.links.values()):
            link.settle(paused=self._paused)
