"""Flow control: a receiver says how much the sender may have unacknowledged.

The sender asks `admits`; the receiver's `Meter` detects a sender that does not. Messages are
counted by their numbers: with a window of n, none is sent at or beyond the received count plus n
(docs/hop-protocol.md, "Acknowledgements and credit").
"""

from __future__ import annotations

from lasthop.errors import CreditExceeded
from lasthop.wire.hop.frames import Credit


def admits(window: Credit, *, ahead: int, bytes_in_flight: int, size: int) -> bool:
    """Whether a message of `size` bytes may be sent now.

    `ahead` is its number minus the received count. A message that exceeds the byte window goes when
    nothing else is in flight, so that no size is stuck.
    """
    # Exactly one message may exceed the byte window, when nothing is in flight.
    fits = bytes_in_flight == 0 or bytes_in_flight + size <= window.bytes
    return fits and ahead < window.messages


class Meter:
    """Checks that a peer stays within the window that it was given on one channel.

    What was granted once is never an error: a smaller window takes effect when the peer hears of
    it, and the receiver cannot know when that is.
    """

    __slots__ = ("_byte_limit", "_bytes", "_freed", "_limit", "_received", "_sizes", "_window")

    def __init__(self, window: Credit, *, received: int = 0) -> None:
        self._window = window
        self._received = received
        self._limit = 0
        self._byte_limit = 0
        self._bytes = 0
        self._freed = 0
        self._sizes: dict[int, int] | None = None
        self._raise_limits()

    def take(self, seq: int, size: int) -> None:
        """Count an arrived message; raise CreditExceeded if it is beyond the window."""
        if seq >= self._limit:
            raise CreditExceeded(
                "a message is beyond the window", number=seq, window=self._window.messages
            )
        if seq < self._received:
            return
        sizes = self._sizes
        if sizes is None:
            sizes = self._sizes = {}
        elif seq in sizes:
            return
        total = self._bytes + size
        if total > self._byte_limit and self._bytes > self._freed:
            raise CreditExceeded(
                "unacknowledged bytes are beyond the window",
                bytes=total - self._freed,
                window=self._window.bytes,
            )
        self._bytes = total
        sizes[seq] = size

    def acknowledge(self, received: int) -> None:
        """Note the received count that the peer was told, over this channel or another."""
        if received <= self._received:
            return
        if self._sizes is not None:
            for seq in range(self._received, received):
                self._freed += self._sizes.pop(seq, 0)
            if not self._sizes:
                self._sizes = None
        self._received = received
        self._raise_limits()

    def grant(self, window: Credit) -> None:
        """Note the window that the peer is given from now on."""
        self._window = window
        self._raise_limits()

    def _raise_limits(self) -> None:
        self._limit = max(self._limit, self._received + self._window.messages)
        self._byte_limit = max(self._byte_limit, self._freed + self._window.bytes)
