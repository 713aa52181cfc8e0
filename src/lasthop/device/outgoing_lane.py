"""One lane in which a device sends: its numbers, and how far the gateway is."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from lasthop.clock import Micros
from lasthop.device.change import OutgoingLaneNumbers
from lasthop.device.outgoing import Outgoing
from lasthop.message import DEFAULT_PRIORITY
from lasthop.wire.hop.frames import Ack, Credit, LaneFrame, MessageFrame, Skip
from lasthop.wire.hop.ranges import RangeSet
from lasthop.wire.hop.sequence import DEFAULT_WINDOW, Outbound

UNORDERED_WINDOW = 512
"""The most messages of a lane without order that may be under way: the gateway can then say with
256 ranges exactly which of them it has."""


class LaneName(NamedTuple):
    """The messages that share a lane: those of one queue and priority, which keep their order
    unless the queue says that it does not matter."""

    queue: str | None = None
    priority: int = DEFAULT_PRIORITY
    unordered: bool = False


DEFAULT_LANE = LaneName()
"""The messages that always travel in lane 0."""


class OutgoingLane:
    """The numbers of one lane in the present epoch, and the messages under them."""

    __slots__ = (
        "confirmed",
        "cursor",
        "durable",
        "flight",
        "id",
        "idle_since",
        "last",
        "name",
        "outbound",
        "peer_received",
        "said_last",
        "skips",
        "window",
    )

    def __init__(self, lane: int, name: LaneName) -> None:
        self.id = lane
        self.name = name
        self.outbound: Outbound[Outgoing] = Outbound()
        self.durable = 0
        """The numbers below this one are durable."""
        self.window: Credit | None = None
        """The lane's own window, if the gateway has set one."""
        self.cursor = 0
        """The next number to leave, for an order that sends by number."""
        self.flight = 0
        """The number of messages that left and are not acknowledged."""
        self.idle_since: Micros = 0
        """When the last message was acknowledged."""
        self.last: int | None = None
        """The number of the LAST that closes the lane; None while it is open."""
        self.said_last = False
        """Whether the LAST has left in this contact."""
        self.reset()

    def restore(self, assigned: int, accepted: int, items: Iterable[Outgoing]) -> None:
        """Restore the numbers, and the messages that the gateway may not have."""
        self.outbound.restore(
            assigned=assigned,
            received=accepted,
            delivered=accepted,
            items=[(item.number, item) for item in items if item.number >= accepted],
        )
        self.durable = assigned
        self.reset()
        self.cursor = accepted

    @property
    def waiting(self) -> int:
        """The number of messages that the gateway may not have."""
        return self.outbound.in_flight - (self.last is not None)

    @property
    def idle(self) -> bool:
        """Whether the gateway has all messages of the lane."""
        return not self.outbound.in_flight

    def numbers(self) -> OutgoingLaneNumbers:
        """Return the numbers to store for a lane other than lane 0."""
        return OutgoingLaneNumbers(
            queue=self.name.queue,
            priority=self.name.priority,
            assigned=self.outbound.assigned,
            accepted=self.outbound.received,
            last=self.last,
        )

    def close(self) -> None:
        """Give the lane's last number to a LAST."""
        last = Outgoing(MessageFrame(None, None), 0, lane=self.id, taken=True)
        self.last = last.number = self.outbound.push(last)

    def most(self, window: Credit) -> int:
        """Return how many numbers beyond the received count may leave, for a session's window."""
        own = (self.window or window).messages
        return min(own, UNORDERED_WINDOW) if self.name.unordered else own

    @property
    def limit(self) -> int:
        """The first number that is too far ahead for the gateway, even in a SKIP."""
        most = UNORDERED_WINDOW if self.name.unordered else DEFAULT_WINDOW
        return self.peer_received + most

    def reset(self) -> None:
        """Forget what the gateway said on an earlier channel."""
        self.window = None
        self.flight = 0
        self.said_last = False
        self.peer_received = self.confirmed = self.outbound.received
        """The count of numbers that the gateway has, with and without skips on their way."""
        self.skips = RangeSet()
        """The numbers for which the gateway need not wait."""

    def resume(self, ack: Ack) -> None:
        """Start on a new channel, for which the gateway has said what it has."""
        self.peer_received = self.confirmed = ack.received
        self.cursor = ack.received
        self.said_last = False

    def find_skips(self, ack: Ack) -> None:
        """Find the numbers for which the gateway must not wait, because this device no longer has
        the messages: the gateway may be restored from a backup."""
        there = RangeSet(ack.individual)
        for number, item in self.outbound.unacknowledged():
            if not item.taken or number == self.last:
                there.add(number, number + 1)
        assigned = self.outbound.assigned
        there.add(assigned, assigned + 1)
        self.skips = RangeSet(there.gaps(ack.received))

    def heard(self, received: int) -> None:
        """Note the received count of an acknowledgement."""
        self.peer_received = max(self.peer_received, received)
        self.confirmed = max(self.confirmed, received)

    def wrap(self, skip: Skip) -> Skip | LaneFrame:
        """Return the frame that says this of the lane."""
        return LaneFrame(self.id, skip) if self.id else skip

    def said_skip(self, number: int, count: int) -> None:
        """Note that the gateway is being told to skip these numbers."""
        if self.peer_received == number:
            self.peer_received += count

    def again(self) -> None:
        """Note that messages under way may have been lost with one of several channels."""
        # A skip that was sent counts as received for the window, but it may have been lost too.
        self.peer_received = self.confirmed
        self.cursor = self.confirmed
        self.said_last = False
