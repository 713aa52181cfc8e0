"""When a channel has ended: whether to dial again, and when. No clock, no randomness of its own."""

from __future__ import annotations

from collections.abc import Callable

from lasthop.errors import (
    Fault,
    LasthopError,
    NotFound,
    QuotaExceeded,
    Unauthorized,
    UnsupportedFrame,
)
from lasthop.wire.hop.frames import Close, CloseCode


class ChannelReplaced(LasthopError):
    """Another channel of the same device took over: whoever dialled it has the session now."""

    code = "replaced"
    fault = Fault.CALLER
    hop_code = int(CloseCode.REPLACED)


class LinkClosed(QuotaExceeded):
    """This link has reached a limit of the device, and is not to be used before that has passed."""

    code = "link_closed"


_FINAL: dict[int, type[LasthopError]] = {
    CloseCode.UNSUPPORTED: UnsupportedFrame,
    CloseCode.UNAUTHORIZED: Unauthorized,
    CloseCode.UNKNOWN_DEVICE: NotFound,
    CloseCode.REPLACED: ChannelReplaced,
}
"""To dial again with the same words would be answered in the same way (Closing)."""


def verdict(close: Close | None, *, welcomed: bool) -> LasthopError | None:
    """The error that ends the device's attempts, or None: dial again. `close` is what the gateway
    said last, if it said anything; `welcomed` tells whether it had let the device in before."""
    if close is None or (welcomed and close.code == CloseCode.UNSUPPORTED):
        # A gateway that let us in speaks our version: what it cannot read was damaged on the way.
        return None
    error = _FINAL.get(close.code)
    return error(close.reason or "no reason given") if error is not None else None


class Backoff:
    """How long to wait before the next attempt: twice as long each time, at random within that.

    Devices that lost the same gateway at the same moment must not come back at the same moment:
    hence `random`, which gives numbers from 0 to below 1.
    """

    def __init__(
        self, *, first: float = 0.5, longest: float = 60.0, random: Callable[[], float]
    ) -> None:
        self._first = first
        self._longest = longest
        self._random = random
        self._attempts = 0

    def succeeded(self) -> None:
        """The gateway took us in."""
        self._attempts = 0

    def delay(self, close: Close | None = None) -> float:
        """Seconds to wait now; not less than the gateway asked for."""
        span = min(self._longest, self._first * (1 << min(self._attempts, 30)))
        self._attempts += 1
        asked = close.retry_after_ms / 1000 if close is not None else 0.0
        return asked + span * (0.5 + self._random() / 2)
