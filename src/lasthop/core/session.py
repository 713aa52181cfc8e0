"""What outlives a device's channels: its mailbox, its numbering, and what is under way.

A session keeps order: the mailbox holds what is ours to send, best first; `outbound` what has a
sequence number and has not reached the application yet. It decides nothing and says nothing:
`core.dispatch` and `core.contact` move deliveries through it.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from types import MappingProxyType
from typing import TypeAlias

from lasthop.clock import Micros
from lasthop.core.contacts.channel_state import AWAY, ChannelState, fits
from lasthop.core.contacts.retransmission import Retransmission
from lasthop.core.delivery import Delivery
from lasthop.core.feature import AwaySender, Sender, SessionPart
from lasthop.core.lane import Lane
from lasthop.core.lifecycle import DELIVERED, PENDING
from lasthop.core.registry import Device
from lasthop.core.transfer import Transfer
from lasthop.decision.routes import RouteRefusal, obstacle
from lasthop.message import Quality
from lasthop.store.commit import SessionRow
from lasthop.wire.hop.frames import Skip
from lasthop.wire.hop.persistence import Numbering

UnderWay: TypeAlias = Delivery | Skip
"""What a number stands for; a skip where the gateway no longer knows, after a restart."""

_NO_INCARNATION = bytes(8)

NO_TRANSFERS: Mapping[int, Transfer] = MappingProxyType({})


class Session:
    """The lasting side of one device's conversation with the gateway.

    There is one for every device, and most are idle: what only a busy one needs is made when it is
    needed.
    """

    __slots__ = (
        "_waiting",
        "ack_due",
        "away_sender",
        "contacts",
        "device",
        "dirty",
        "epoch",
        "events",
        "held_bytes",
        "incarnation",
        "lane",
        "line",
        "lines",
        "lost_at",
        "mailbox",
        "parts",
        "preserve",
        "preserved",
        "previous",
        "replaceable",
        "retransmission",
        "sender",
        "taken_bytes",
        "touched",
        "transfers",
    )

    def __init__(
        self, device: Device, *, preserve: Micros, sender: Sender, away_sender: AwaySender
    ) -> None:
        self.device = device
        self.sender = sender
        """Says whether and over which channel a delivery leaves."""
        self.away_sender = away_sender
        """Sends what no channel can have; most devices have to come for it."""
        self.parts: tuple[SessionPart, ...] = ()
        """What the device has of features."""
        self.transfers: Mapping[int, Transfer] = NO_TRANSFERS
        """What is on its way to the device in pieces, by key."""
        self.epoch = 0
        self.incarnation = _NO_INCARNATION
        self.previous: tuple[Numbering, ...] = ()
        self.lane: Lane[UnderWay] = Lane()
        """Numbers, window, and what is in flight."""
        self.events = 0
        """How many events the log has of this device."""
        self.mailbox: dict[int, Delivery] = {}
        """All its open deliveries, by message key."""
        self._waiting: list[tuple[int, int, Delivery]] | None = None
        self.replaceable: dict[tuple[str, str], Delivery] | None = None
        """Deliveries that nothing of has left, by replace key."""
        self.held_bytes = 0
        """Of what the device sent and is not durable yet,"""
        self.taken_bytes = 0
        """of which nobody has asked for durability yet."""
        self.line: ChannelState = AWAY
        """The line to send over."""
        self.lines: tuple[ChannelState, ...] = ()
        """Every line, `line` among them, the newest last."""
        self.contacts = 0
        """How often the device has come back and said what it has."""
        self.retransmission: Retransmission[Session] | None = None
        """Only while a line may lose frames, or another one could be tried."""
        self.preserve = preserve
        self.preserved = False
        """Whether a timer runs for the end of its preservation; never more than one."""
        self.lost_at: Micros = 0
        self.ack_due = False
        self.dirty = False
        self.touched = False

    def row(self) -> SessionRow:
        """The session as the store keeps it."""
        outbound = self.lane.outbound
        return SessionRow(
            self.device.number,
            self.epoch,
            outbound.assigned,
            outbound.received,
            outbound.delivered,
            self.lane.inbound.received,
            self.events,
            int.from_bytes(self.incarnation),
            tuple((int.from_bytes(n.incarnation), n.epoch, n.received) for n in self.previous),
        )

    @property
    def channel(self) -> int:
        """The channel to send over; 0 while the device is away."""
        return self.line.channel

    @property
    def greeted(self) -> bool:
        """Whether anything may be released, and leave."""
        return self.line.greeted

    @property
    def reachable(self) -> bool:
        """Whether anything may leave, in contact or without."""
        return self.line.greeted or self.away_sender.reaches(self)

    def add_part(self, part: SessionPart) -> None:
        """Let the device have something of a feature."""
        self.parts = (*self.parts, part)

    @property
    def link(self) -> str:
        """The label of the line to send over."""
        return self.line.link

    @property
    def network(self) -> str:
        """The network behind it."""
        return self.line.network

    def open_line(self) -> ChannelState:
        """The line to send over now: its own, or the newest other one that takes something."""
        line = self.line
        if line.paused:
            for other in reversed(self.lines):
                if other.greeted and not other.paused:
                    return other
        return line

    def line_for(self, line: ChannelState, quality: Quality | None) -> ChannelState:
        """This line, or where a publisher requires another one the newest that is it."""
        if quality is not None and not fits(line, quality):
            for other in reversed(self.lines):
                if other.greeted and fits(other, quality):
                    return other
        return line

    def unmet(self, quality: Quality) -> RouteRefusal | None:
        """Why none of the lines is what a publisher requires."""
        line = self.line_for(self.line, quality)
        return obstacle(line.network, line.link, quality)

    def line_besides(self, channel: int) -> ChannelState:
        """Another line than this one, where there is one."""
        for other in reversed(self.lines):
            if other.greeted and other.channel != channel:
                return other
        return self.line

    def line_of(self, channel: int) -> ChannelState | None:
        """The line with this channel, if it is there."""
        if not channel:
            return None  # It has not left: no line has this number.
        if self.line.channel == channel:
            return self.line
        return next((line for line in self.lines if line.channel == channel), None)

    def add(self, line: ChannelState) -> None:
        """One more way to reach the device; the newest is what it wants to be reached by."""
        self.lines = (*self.lines, line)
        self.line = line

    def remove(self, line: ChannelState) -> None:
        """A line has ended; the newest of those that are left and greeted takes over."""
        self.lines = tuple(other for other in self.lines if other is not line)
        if self.line is line:
            self.line = next((other for other in reversed(self.lines) if other.greeted), AWAY)

    def numbering(self) -> Numbering:
        """The epoch in force."""
        return Numbering(self.incarnation, self.epoch, self.lane.inbound.received)

    @property
    def paused(self) -> bool:
        """Whether no line takes anything now."""
        return self.line.paused and all(line.paused for line in self.lines)

    def has_credit(self, size: int) -> bool:
        """Whether the device takes one more message of so many bytes now."""
        return self.lane.has_credit(size) and not (self.line.paused and self.paused)

    def enqueue(self, delivery: Delivery) -> None:
        """Put a pending delivery in its place: by priority, then in order of acceptance, unless its
        decider says otherwise.

        One that comes back after its release keeps its place before those accepted later.
        """
        if self._waiting is None:
            self._waiting = []
        heapq.heappush(self._waiting, (-delivery.priority, delivery.place, delivery))

    def dequeue(self, delivery: Delivery) -> None:
        """It shall not leave after all: its rank has fallen while it waited for credit."""
        self._waiting = [row for row in self._waiting or () if row[2] is not delivery]
        heapq.heapify(self._waiting)

    def best(self) -> Delivery | None:
        """The pending delivery whose turn it is; it stays in place."""
        waiting = self._waiting
        while waiting:
            delivery = waiting[0][2]
            if delivery.state is PENDING:
                return delivery
            heapq.heappop(waiting)
        self._waiting = None
        return None

    def take_best(self) -> None:
        """Remove what `best` returned."""
        assert self._waiting is not None
        heapq.heappop(self._waiting)

    def depart(self, delivery: Delivery, *, numbered: bool) -> None:
        """Count a delivery as under way, under the next number if it is to have one."""
        lane = self.lane
        lane.flight_bytes += delivery.item.size
        if numbered:
            delivery.epoch = self.epoch
            delivery.seq = lane.outbound.push(delivery)
        else:
            lane.leaving += 1

    def replace(self, replace_key: str, delivery: Delivery) -> Delivery | None:
        """Let a delivery stand under its publisher's replace key; returns the one that it takes
        the place of."""
        if self.replaceable is None:
            self.replaceable = {}
        at = (delivery.item.message.source, replace_key)
        old = self.replaceable.get(at)
        self.replaceable[at] = delivery
        return old

    def not_replaceable(self, delivery: Delivery) -> None:
        """It has ended or is about to leave: what comes under its replace key comes beside it."""
        message = delivery.item.message
        at = (message.source, message.replace_key or "")
        if self.replaceable and self.replaceable.get(at) is delivery:
            del self.replaceable[at]
            if not self.replaceable:
                self.replaceable = None

    def under_way(self) -> list[Delivery]:
        """Everything that has a number and is not at its end, in order."""
        return [
            item
            for _, item in self.lane.outbound.undelivered()
            if isinstance(item, Delivery) and item.state < DELIVERED
        ]

    def restart(self, incarnation: bytes, epoch: int, previous: tuple[Numbering, ...]) -> None:
        """Begin a new epoch: both directions count from 0 again."""
        self.incarnation = incarnation
        self.epoch = epoch
        self.previous = previous
        self.lane.restart()
        self.held_bytes -= self.taken_bytes
        self.taken_bytes = 0
        self.ack_due = False
