"""The interface of every channel: frames go out, frames come in, and the channel ends.

A channel is one live way to reach one device. Whatever carries it (TCP, WebSocket, a script in a
test), a `Listener` makes it and `Switchboard` is told what it receives. A channel answers
heartbeats and keeps its codec's memory by itself; it knows nothing of messages.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from lasthop.wire.hop.frames import CloseCode, Frame


class Channel(Protocol):
    """One live connection to a device."""

    number: int
    """The channel's number, set by the switchboard when the channel opens; 0 before."""

    @property
    def local(self) -> bool:
        """Whether the peer is on this machine."""
        ...

    @property
    def reliable(self) -> bool:
        """Whether everything that was sent before the channel's end arrives. If not, frames that
        are not acknowledged in time are sent again."""
        ...

    def send(self, frames: Sequence[Frame]) -> None:
        """Hand frames to the link, in order; after the end of the channel they are dropped."""
        ...

    def sent_elsewhere(self, frames: Sequence[Frame]) -> None:
        """Note that these frames were sent to the device over another of its channels."""
        ...

    def report_drained(self) -> None:
        """Call the switchboard's `drained` when the frames so far have left the unsent buffer."""
        ...

    def close(self, code: CloseCode, reason: str, retry_after_ms: int = 0) -> None:
        """Send a CLOSE with this reason and end the channel; `lost` follows."""
        ...


class Switchboard(Protocol):
    """The object that channels report to. Every call comes from the thread that runs the
    channels."""

    def opened(self, channel: Channel) -> None:
        """Set `channel.number` for a peer that has connected; its HELLO has not arrived yet."""
        ...

    def received(self, channel: Channel, frames: Sequence[Frame]) -> None:
        """Handle frames that a channel received, in order."""
        ...

    def paused(self, channel: Channel, paused: bool) -> None:
        """Note that a channel's unsent buffer is full (true) or has room again (false)."""
        ...

    def drained(self, channel: Channel) -> None:
        """Note that a channel's unsent buffer is empty, after `report_drained`."""
        ...

    def lost(self, channel: Channel, reason: str) -> None:
        """Note that a channel has ended; called once, after everything that the channel
        received."""
        ...
