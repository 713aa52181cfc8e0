"""What is kept in order between the gateway and a device: the numbers both ways, the window, and
what is in flight."""

from __future__ import annotations

from typing import Generic, TypeVar

from lasthop.wire.hop.frames import DEFAULT_WINDOW, Credit, MessageFrame
from lasthop.wire.hop.sequence import Inbound as InboundNumbers, Outbound as OutboundNumbers

T = TypeVar("T")
"""What a number stands for."""

ALL = 1 << 62
"""Beyond every number."""


class Lane(Generic[T]):
    """One line of numbers in each direction. A session has one of them."""

    __slots__ = (
        "flight_bytes",
        "inbound",
        "leaving",
        "outbound",
        "sendable",
        "sent_to",
        "window",
    )

    def __init__(self) -> None:
        self.outbound: OutboundNumbers[T] = OutboundNumbers()
        self.inbound: InboundNumbers[MessageFrame] = InboundNumbers()
        self.sendable = 0
        """Numbers below are durable and may have left; the device can know of no others."""
        self.sent_to = ALL
        """Numbers from here on have left in an earlier contact and wait for room in this one."""
        self.window: Credit = DEFAULT_WINDOW
        """What the device takes at a time."""
        self.flight_bytes = 0
        """Bytes of what is released and not received."""
        self.leaving = 0
        """Best-effort messages that are released and not handed to the link yet."""

    def has_credit(self, size: int) -> bool:
        """Whether the device takes one more message of so many bytes.

        One message may exceed the window of bytes when nothing is under way, so that no size is
        stuck for ever.
        """
        window = self.window
        outbound = self.outbound
        # By number, as the device counts: a gap that is not acknowledged holds back what follows.
        if outbound.assigned - outbound.received + self.leaving >= window.messages:
            return False
        # The same comparison as `wire.hop.credit`, which the device applies.
        return self.flight_bytes == 0 or self.flight_bytes + size <= window.bytes

    def arrive(self, seq: int, size: int) -> None:
        """Something is under way no longer, whatever became of it; `seq` is below 0 if it had no
        number."""
        self.flight_bytes -= size
        if seq < 0:
            self.leaving -= 1

    def restart(self) -> None:
        """Count from 0 again, in both directions."""
        self.outbound = OutboundNumbers()
        self.inbound = InboundNumbers()
        self.sendable = 0
        self.sent_to = ALL
