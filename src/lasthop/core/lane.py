"""One ordered conversation between the gateway and a device: the sequence numbers both ways, the
window, and what is in flight. Every session has lane 0; `core.lanes` has those beside it."""

from __future__ import annotations

from typing import Generic, TypeAlias, TypeVar

from lasthop.wire.hop.frames import (
    DEFAULT_WINDOW,
    Ack,
    Credit,
    Dropped,
    Frame,
    LaneFrame,
    Last,
    MessageFrame,
    Skip,
)
from lasthop.wire.hop.sequence import Inbound as InboundNumbers, Outbound as OutboundNumbers

T = TypeVar("T")
"""What an outbound sequence number stands for."""

LaneName: TypeAlias = tuple[str, str | None, int, bool]
"""A ranked topic or nothing, a queue, a priority, and whether the order does not matter: messages
of one name share a lane of the hop protocol, whoever sent them."""

ALL = 1 << 62
"""A sequence number above every number that is ever assigned."""


class Lane(Generic[T]):
    """A numbered sequence of messages in each direction; lanes beside lane 0 use only one."""

    __slots__ = (
        "flight_bytes",
        "id",
        "inbound",
        "leaving",
        "outbound",
        "sendable",
        "sent_to",
        "window",
    )

    def __init__(self, lane: int = 0) -> None:
        self.id = lane
        self.outbound: OutboundNumbers[T] = OutboundNumbers()
        self.inbound: InboundNumbers[MessageFrame] = InboundNumbers()
        self.sendable = 0
        """Numbers below this one are durable and may have left; the device cannot know any higher
        ones."""
        self.sent_to = ALL
        """Numbers from this one on left in an earlier contact and wait for room in the present
        one."""
        self.window: Credit = DEFAULT_WINDOW
        """The window of the device: messages and bytes that it accepts before it acknowledges."""
        self.flight_bytes = 0
        """Bytes of the messages that are released and not received."""
        self.leaving = 0
        """Number of best-effort messages that are released and not handed to the link yet."""

    @property
    def ahead(self) -> int:
        """How many numbers are assigned and not received."""
        return self.outbound.assigned - self.outbound.received

    def about(self, frame: Ack | Skip | Credit | Dropped | Last) -> Frame:
        """Return a frame as one that is about this lane."""
        if self.id:
            return LaneFrame(self.id, frame)
        assert not isinstance(frame, Last), "lane 0 never closes"
        return frame

    def has_credit(self, size: int) -> bool:
        """Return whether the device accepts one more message of `size` bytes.

        One message may exceed the window of bytes when nothing is under way, so that a message of
        any size is sent at some time.
        """
        window = self.window
        outbound = self.outbound
        # By number, as the device counts: a gap that is not acknowledged holds back what follows.
        if outbound.assigned - outbound.received + self.leaving >= window.messages:
            return False
        # The same comparison as `wire.hop.credit`, which the device applies.
        return self.flight_bytes == 0 or self.flight_bytes + size <= window.bytes

    def arrive(self, seq: int, size: int) -> None:
        """Count a message as no longer under way, whatever became of it; `seq` is below 0 if the
        message had no number."""
        self.flight_bytes -= size
        if seq < 0:
            self.leaving -= 1

    def restart(self) -> None:
        """Begin a new epoch: count from 0 again in both directions."""
        self.outbound = OutboundNumbers()
        self.inbound = InboundNumbers()
        self.sendable = 0
        self.sent_to = ALL
