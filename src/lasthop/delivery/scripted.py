"""A channel in memory: a test or a rehearsal plays the device's side."""

from __future__ import annotations

from collections.abc import Sequence

from lasthop.delivery.channel import Switchboard
from lasthop.wire.hop.frames import Close, CloseCode, Frame


class ScriptedChannel:
    """A channel without a network, which keeps the gateway's frames until the script takes them."""

    def __init__(
        self, switchboard: Switchboard, *, local: bool = True, reliable: bool = True
    ) -> None:
        self.number = 0
        self.local = local
        self.reliable = reliable
        self.closed: Close | None = None
        """The CLOSE with which the gateway ended the channel; None while it is open."""
        self._switchboard = switchboard
        self._sent: list[Frame] = []
        self._lost = False
        self._asked = False
        switchboard.opened(self)

    # For the gateway: what a `Channel` does.

    def send(self, frames: Sequence[Frame]) -> None:
        if not self._lost:
            self._sent += frames

    def sent_elsewhere(self, frames: Sequence[Frame]) -> None:
        """Ignore these frames: a script has no window that it could exceed."""

    def report_drained(self) -> None:
        """Remember to report that everything was sent; `take` does so, since a script accepts all
        at once."""
        self._asked = True

    def close(self, code: CloseCode, reason: str, retry_after_ms: int = 0) -> None:
        if not self._lost:
            self.closed = Close(code, retry_after_ms, reason)
            self.hang_up(reason)

    # For the script.

    def say(self, *frames: Frame) -> None:
        """Let frames arrive at the gateway; after the channel's end none do."""
        if not self._lost:
            self._switchboard.received(self, frames)

    def take(self) -> list[Frame]:
        """Return the frames that the gateway sent since the last call."""
        sent, self._sent = self._sent, []
        asked, self._asked = self._asked, False
        if asked and not self._lost:
            self._switchboard.drained(self)
        return sent

    def pause(self, paused: bool) -> None:
        """Pretend that the unsent buffer is full (true) or has room again (false)."""
        if not self._lost:
            self._switchboard.paused(self, paused)

    def hang_up(self, reason: str = "the script hung up") -> None:
        """End the channel from the device's side."""
        if not self._lost:
            self._lost = True
            self._switchboard.lost(self, reason)
