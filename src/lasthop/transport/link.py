"""One channel on the event loop: bytes come in and frames go to its owner; frames go out as bytes.

A `ChannelLink` owns the channel's protocol state (`wire.hop`), which changes from handshake to open
connection. A subclass carries the bytes and decides nothing. A link is also what the gateway calls
a channel, so that an idle device costs one object and its protocol state.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias

from lasthop.clock import SECOND, Clock, Micros
from lasthop.errors import HopError, LasthopError
from lasthop.transport.alarms import Alarms
from lasthop.wire.hop.connection import Open
from lasthop.wire.hop.frames import Close, CloseCode, Feature, Frame, Welcome
from lasthop.wire.hop.handshake import Dialing, Opened, Waiting

Machine: TypeAlias = Waiting | Dialing | Open

LINGER = 5 * SECOND
"""How long a peer may take to read the CLOSE before the link is cut."""


class Owner(Protocol):
    """The object that is told what happens on links."""

    def connected(self, link: ChannelLink) -> None:
        """Note that a link can carry bytes; no frame has been sent yet."""
        ...

    def received(self, link: ChannelLink, frames: Sequence[Frame]) -> None:
        """Handle frames that a link received, in order; on the gateway's side the first one is the
        HELLO."""
        ...

    def welcomed(self, link: ChannelLink, opened: Opened) -> None:
        """Handle the gateway's answer to HELLO on the device's side, and the frames behind it."""
        ...

    def paused(self, link: ChannelLink, paused: bool) -> None:
        """Note that a link's unsent buffer is full (true) or has room again (false)."""
        ...

    def drained(self, link: ChannelLink) -> None:
        """Note that a link's unsent buffer is empty, after `report_drained`."""
        ...

    def lost(self, link: ChannelLink, reason: str) -> None:
        """Note that a link has ended; called once, after everything that the link received."""
        ...


class Ends:
    """What all links of one listener or device share: their owner, clock and alarms."""

    __slots__ = ("alarms", "checksums", "clock", "owner")

    def __init__(
        self,
        owner: Owner,
        clock: Clock,
        alarms: Alarms | None = None,
        *,
        checksums: bool = True,
    ) -> None:
        self.checksums = checksums
        """Whether to offer checksums where a link has no TLS, on the device's side."""
        self.owner = owner
        self.clock = clock
        self.alarms = alarms or Alarms(clock)


EndsFor: TypeAlias = Callable[[Owner], Ends]
"""Makes the ends of a link with an owner of its own; clock and alarms are shared."""


class ChannelLink:
    """A channel on the event loop; subclasses carry its bytes."""

    __slots__ = ("_cut_at", "_draining", "_ends", "_lost", "local", "machine", "number", "slot")

    ordered = True
    """Whether what is sent cannot overtake what was sent before it."""
    reliable = True
    """Whether everything that was sent before the link's end arrives."""

    def __init__(self, ends: Ends, machine: Machine, *, local: bool) -> None:
        self._ends = ends
        self.machine = machine
        self.local = local
        """Whether the peer is on this machine."""
        self.number = 0
        """The channel's number, set by the owner."""
        self.slot = 0
        self._cut_at: Micros | None = None
        self._lost = False
        self._draining = False

    # For the owner.

    def send(self, frames: Sequence[Frame]) -> None:
        """Send frames, in order; after the link's end they are dropped."""
        machine = self.machine
        if machine.closed is not None or not frames:
            return
        now = self._ends.clock.now()
        if type(machine) is Waiting and isinstance(frames[0], Welcome):
            machine = self.machine = machine.welcome(frames[0], now)
            frames = frames[1:]
            self._ends.alarms.set(self)
        if type(machine) is not Open:
            raise ValueError("before the WELCOME nothing can be sent")
        try:
            machine.send(frames, now)
        except LasthopError as error:
            # A frame that cannot be encoded fails after a reconnect as well; only this channel
            # suffers.
            machine.close(Close(CloseCode(error.hop_code), 0, str(error)), now)
        self._flush()

    def sent_elsewhere(self, frames: Sequence[Frame]) -> None:
        """Note that these frames were sent to the peer over another channel of the same session."""
        if type(self.machine) is Open:
            self.machine.sent_elsewhere(frames)

    def close(self, code: CloseCode, reason: str, retry_after_ms: int = 0) -> None:
        """Send a CLOSE with this reason and end the link; the owner's `lost` follows."""
        if self.machine.closed is None:
            self._close(Close(code, retry_after_ms, reason))
            self._flush()

    def fail(self, error: HopError) -> None:
        """Close the link because of an error of the peer."""
        if self.machine.closed is None:
            self.machine.error = error
            self.close(CloseCode(error.hop_code), str(error))

    @property
    def checked(self) -> bool:
        """Whether both sides add checksums to what they write."""
        machine = self.machine
        return type(machine) is Open and bool(machine.features & Feature.CHECKSUMS)

    def report_drained(self) -> None:
        """Call the owner's `drained` when the frames so far have left the unsent buffer, but never
        from within this call."""
        self._draining = True
        asyncio.get_running_loop().call_soon(self.look_drained)

    def look_drained(self) -> None:
        """Tell the owner if the unsent buffer is empty; the carrier calls this whenever the buffer
        shrinks."""
        if self._draining and not self._lost and not self.unsent:
            self._draining = False
            self._ends.owner.drained(self)

    def hasten(self) -> None:
        """Set the alarm again, because the next timeout may have become earlier."""
        self._ends.alarms.hasten(self)

    @property
    def closed(self) -> Close | None:
        """The CLOSE that ended the link, from either side; None while it is open."""
        return self.machine.closed

    @property
    def over(self) -> bool:
        """Whether the owner has been told of the link's end."""
        return self._lost

    def next_timeout(self) -> Micros | None:
        """Return when to call `timeout`; None after the link's end."""
        if self._lost:
            return None
        return self._cut_at if self._cut_at is not None else self.machine.next_timeout()

    def timeout(self) -> None:
        """Send or expect a heartbeat, or cut the link because the peer did not read the CLOSE in
        time."""
        if self._cut_at is not None:
            self.cut()
        else:
            self.machine.timeout(self._ends.clock.now())
            self._flush()

    # For the carrier.

    def begin(self) -> None:
        """Start the handshake: the carrier can carry bytes now."""
        self._ends.owner.connected(self)
        self._ends.alarms.set(self)
        self._flush()

    def arrived(self, data: bytes, number: int | None = None) -> None:
        """Handle bytes that arrived: a piece of a stream, or one unit, with its number where units
        may overtake one another."""
        ends = self._ends
        machine = self.machine
        now = ends.clock.now()
        if type(machine) is Open:
            if number is None:
                frames = machine.receive(data, now)
            else:
                frames = machine.receive_unit(data, number, now)
            # If these bytes answer a ping, the next timeout is earlier than the one for the answer.
            ends.alarms.hasten(self)
            if frames:
                ends.owner.received(self, frames)
        elif type(machine) is Waiting:
            hello = machine.receive(data, now)
            if hello is not None:
                ends.owner.received(self, [hello])
        elif type(machine) is Dialing:
            opened = machine.receive(data, now)
            if opened is not None:
                self.machine = opened.connection
                ends.alarms.set(self)
                ends.owner.welcomed(self, opened)
        self._flush()

    def full(self, full: bool) -> None:
        """Note that the carrier's unsent buffer is full, or has room again."""
        if not self._lost:
            self._ends.owner.paused(self, full)

    def ended(self, reason: str) -> None:
        """End the link because the carrier has ended."""
        if self._lost:
            return
        self._lost = True
        closed = self.machine.closed
        if closed is None:
            # Those who still hold the link shall see that it has ended.
            self.machine.closed = Close(CloseCode.BYE, 0, reason)
        self._ends.alarms.forget(self)
        self._ends.owner.lost(self, closed.reason if closed is not None else reason)

    def _close(self, close: Close) -> None:
        machine = self.machine
        if type(machine) is Open:
            machine.close(close, self._ends.clock.now())
        elif isinstance(machine, Waiting | Dialing):
            machine.close(close)

    def _flush(self) -> None:
        units = self.machine.data_to_send()
        if units and not self._lost:
            self.write(units)
        if self.machine.closed is not None and self._cut_at is None and not self._lost:
            self._cut_at = self._ends.clock.now() + LINGER
            self._ends.alarms.set(self)
            self.hang_up()

    # What a carrier implements.

    @property
    def unsent(self) -> int:
        """Bytes that wait to be sent, as far as the carrier can tell."""
        return 0

    def write(self, units: list[bytes]) -> None:
        """Send these units over the connection, in order."""
        raise NotImplementedError

    def hang_up(self) -> None:
        """End the connection when everything that was written has been sent."""
        raise NotImplementedError

    def cut(self) -> None:
        """End the connection now, whatever is unsent."""
        raise NotImplementedError
