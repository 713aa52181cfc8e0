"""What outlives a device's channels: its mailbox, its numbering, and what is under way.

A session keeps order: the mailbox holds what is ours to send, best first; `outbound` what has a
sequence number and has not reached the application yet. It decides nothing and says nothing:
`core.dispatch` and `core.contact` move deliveries through it.
"""

from __future__ import annotations

import heapq
from typing import TypeAlias

from lasthop.clock import Micros
from lasthop.core.delivery import Delivery
from lasthop.core.lifecycle import State
from lasthop.core.registry import Device
from lasthop.store.commit import SessionRow
from lasthop.wire.hop.frames import DEFAULT_WINDOW, MessageFrame, Skip
from lasthop.wire.hop.persistence import Numbering
from lasthop.wire.hop.sequence import Inbound, Outbound

UnderWay: TypeAlias = Delivery | Skip
"""What a number stands for; a skip where the gateway no longer knows, after a restart."""


class Session:
    """The lasting side of one device's conversation with the gateway."""

    __slots__ = (
        "_waiting",
        "ack_due",
        "channel",
        "device",
        "dirty",
        "epoch",
        "events",
        "flight_bytes",
        "inbound",
        "incarnation",
        "link",
        "lost_at",
        "network",
        "open",
        "outbound",
        "paused",
        "previous",
        "replaceable",
        "touched",
        "window",
    )

    def __init__(self, device: Device) -> None:
        self.device = device
        self.epoch = 0
        self.incarnation = bytes(8)
        self.previous: tuple[Numbering, ...] = ()
        self.outbound: Outbound[UnderWay] = Outbound()
        self.inbound: Inbound[MessageFrame] = Inbound()
        self.events = 0
        """How many events the log has of this device."""
        self._waiting: list[tuple[int, int, Delivery]] | None = None
        self.replaceable: dict[str, Delivery] | None = None
        """Pending deliveries by replace key."""
        self.open = 0
        self.flight_bytes = 0
        self.channel = 0
        """The channel to send over; 0 while the device is away."""
        self.link = ""
        self.network = ""
        self.window = DEFAULT_WINDOW
        self.paused = False
        self.lost_at: Micros = 0
        self.ack_due = False
        self.dirty = False
        self.touched = False

    def row(self) -> SessionRow:
        """The session as the store keeps it."""
        outbound = self.outbound
        return SessionRow(
            self.device.number,
            self.epoch,
            outbound.assigned,
            outbound.received,
            outbound.delivered,
            self.inbound.received,
            self.events,
            int.from_bytes(self.incarnation),
            tuple((int.from_bytes(n.incarnation), n.epoch, n.received) for n in self.previous),
        )

    def numbering(self) -> Numbering:
        """The epoch in force."""
        return Numbering(self.incarnation, self.epoch, self.inbound.received)

    @property
    def has_credit(self) -> bool:
        """Whether the device takes one more message now.

        One message may exceed the window of bytes when nothing is under way, so that no size is
        stuck for ever.
        """
        under_way = self.outbound.in_flight
        window = self.window
        if self.paused or under_way >= window.messages:
            return False
        return under_way == 0 or self.flight_bytes < window.bytes

    def enqueue(self, delivery: Delivery) -> None:
        """Put a pending delivery in its place: by priority, then in order of acceptance."""
        if self._waiting is None:
            self._waiting = []
        message = delivery.item.message
        heapq.heappush(self._waiting, (-message.priority, message.key, delivery))

    def best(self) -> Delivery | None:
        """The pending delivery whose turn it is; it stays in place."""
        waiting = self._waiting
        while waiting:
            delivery = waiting[0][2]
            if delivery.state is State.PENDING:
                return delivery
            heapq.heappop(waiting)
        self._waiting = None
        return None

    def take_best(self) -> None:
        """Remove what `best` returned."""
        assert self._waiting is not None
        heapq.heappop(self._waiting)

    def assign(self, delivery: Delivery) -> None:
        """Give a delivery the next sequence number."""
        delivery.epoch = self.epoch
        delivery.seq = self.outbound.push(delivery)
        self.flight_bytes += delivery.item.size

    def under_way(self) -> list[Delivery]:
        """Everything that is released and not at its end."""
        return [
            item
            for _, item in self.outbound.undelivered()
            if isinstance(item, Delivery) and not item.state.final
        ]

    def restart(self, incarnation: bytes, epoch: int, previous: tuple[Numbering, ...]) -> None:
        """Begin a new epoch: both directions count from 0 again."""
        self.incarnation = incarnation
        self.epoch = epoch
        self.previous = previous
        self.outbound = Outbound()
        self.inbound = Inbound()
        self.flight_bytes = 0
