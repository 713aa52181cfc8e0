"""The one shape of every channel: frames out, frames in, an end.

A channel is one live way to reach one device. Whatever carries it (TCP, WebSocket, a script in a
test), it looks the same from here: a `Listener` makes it, `Switchboard` hears what it says. A
channel answers heartbeats and keeps its codec's memory by itself; it knows nothing of messages.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from lasthop.wire.hop.frames import CloseCode, Frame


class Channel(Protocol):
    """One live connection to a device."""

    number: int
    """Given by the switchboard when the channel opens; 0 before."""

    @property
    def local(self) -> bool:
        """Whether the peer is on this machine."""
        ...

    @property
    def reliable(self) -> bool:
        """Whether everything arrives that was sent before the end. Otherwise, what is not
        acknowledged in time is sent again."""
        ...

    def send(self, frames: Sequence[Frame]) -> None:
        """Hand frames to the link, in order; after the end of the channel they are dropped."""
        ...

    def sent_elsewhere(self, frames: Sequence[Frame]) -> None:
        """The device was told this over another of its channels."""
        ...

    def report_drained(self) -> None:
        """Say `drained` when what was handed over so far has left the unsent buffer."""
        ...

    def close(self, code: CloseCode, reason: str, retry_after_ms: int = 0) -> None:
        """Say why, and end the channel. `lost` follows."""
        ...


class Switchboard(Protocol):
    """Where channels report. Every call comes from the thread that runs the channels."""

    def opened(self, channel: Channel) -> None:
        """A peer has connected; sets `channel.number`. It has not said who it is."""
        ...

    def received(self, channel: Channel, frames: Sequence[Frame]) -> None:
        """Frames came in, in order."""
        ...

    def paused(self, channel: Channel, paused: bool) -> None:
        """The unsent buffer is full (true) or has room again (false)."""
        ...

    def drained(self, channel: Channel) -> None:
        """The answer to `report_drained`."""
        ...

    def lost(self, channel: Channel, reason: str) -> None:
        """The channel has ended; said once, after everything that it received."""
        ...
