"""A channel in memory: what a test or a rehearsal says is what the gateway hears."""

from __future__ import annotations

from collections.abc import Sequence

from lasthop.delivery.channel import Switchboard
from lasthop.wire.hop.frames import Close, CloseCode, Frame


class ScriptedChannel:
    """A peer without a network. It keeps what it is sent until somebody takes it."""

    def __init__(
        self, switchboard: Switchboard, *, local: bool = True, reliable: bool = True
    ) -> None:
        self.number = 0
        self.local = local
        self.reliable = reliable
        self.closed: Close | None = None
        """The gateway's last word."""
        self._switchboard = switchboard
        self._sent: list[Frame] = []
        self._lost = False
        self._asked = False
        switchboard.opened(self)

    # As the gateway sees it.

    def send(self, frames: Sequence[Frame]) -> None:
        if not self._lost:
            self._sent += frames

    def sent_elsewhere(self, frames: Sequence[Frame]) -> None:
        """A script has no window that it could exceed."""

    def report_drained(self) -> None:
        """A script takes everything at once; it says so when it is asked for what was sent."""
        self._asked = True

    def close(self, code: CloseCode, reason: str, retry_after_ms: int = 0) -> None:
        if not self._lost:
            self.closed = Close(code, retry_after_ms, reason)
            self.hang_up(reason)

    # As the script sees it.

    def say(self, *frames: Frame) -> None:
        """Let frames arrive at the gateway; after the end nothing does."""
        if not self._lost:
            self._switchboard.received(self, frames)

    def take(self) -> list[Frame]:
        """What was sent since the last time."""
        sent, self._sent = self._sent, []
        asked, self._asked = self._asked, False
        if asked and not self._lost:
            self._switchboard.drained(self)
        return sent

    def pause(self, paused: bool) -> None:
        """Pretend that the unsent buffer is full, or has room again."""
        if not self._lost:
            self._switchboard.paused(self, paused)

    def hang_up(self, reason: str = "the script hung up") -> None:
        """End the channel."""
        if not self._lost:
            self._lost = True
            self._switchboard.lost(self, reason)
