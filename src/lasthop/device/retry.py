"""Decides whether and when to dial again after a channel has ended. The caller provides the time
and the random numbers."""

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
    """Another program has connected as the same device, and has taken over its session."""

    code = "replaced"
    fault = Fault.CALLER
    hop_code = int(CloseCode.REPLACED)


class LinkClosed(QuotaExceeded):
    """A link has reached a limit of the device, and cannot be used before `retry_after` seconds."""

    code = "link_closed"


_FINAL: dict[int, type[LasthopError]] = {
    CloseCode.UNSUPPORTED: UnsupportedFrame,
    CloseCode.UNAUTHORIZED: Unauthorized,
    CloseCode.UNKNOWN_DEVICE: NotFound,
    CloseCode.REPLACED: ChannelReplaced,
}
"""Errors that dialling again would only repeat (hop protocol, "Closing")."""


def verdict(close: Close | None, *, welcomed: bool) -> LasthopError | None:
    """Return the error that ends the device's attempts, or None to dial again. `close` is the
    gateway's CLOSE, if it sent one; `welcomed` tells whether it had welcomed the device before."""
    if close is None or (welcomed and close.code == CloseCode.UNSUPPORTED):
        # A gateway that welcomed us speaks our version: an unreadable frame was damaged on the way.
        return None
    error = _FINAL.get(close.code)
    return error(close.reason or "no reason given") if error is not None else None


class Backoff:
    """The delay before the next attempt: it doubles each time, and up to half of it is taken off at
    random.

    Devices that lost the same gateway at the same moment must not come back at the same moment:
    hence `random`, which returns numbers from 0 to below 1.
    """

    def __init__(
        self, *, first: float = 0.5, longest: float = 60.0, random: Callable[[], float]
    ) -> None:
        self._first = first
        self._longest = longest
        self._random = random
        self._attempts = 0

    def fresh(self) -> Backoff:
        """Return pauses of the same length that start with the shortest."""
        return Backoff(first=self._first, longest=self._longest, random=self._random)

    def succeeded(self) -> None:
        """Start again with the shortest delay, after a contact that lasted."""
        self._attempts = 0

    def delay(self, close: Close | None = None, *, longest: float | None = None) -> float:
        """Return the seconds to wait now; not less than the gateway asked for. With `longest`, the
        pause of this time is not longer."""
        span = min(self._longest, self._first * (1 << min(self._attempts, 30)))
        if longest is not None:
            span = min(span, longest)
        self._attempts += 1
        asked = close.retry_after_ms / 1000 if close is not None else 0.0
        return asked + span * (0.5 + self._random() / 2)
