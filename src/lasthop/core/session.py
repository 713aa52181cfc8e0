"""The session of a device, which outlives its channels: its mailbox, its numbering, and what is
under way.

A session keeps order: the mailbox holds the open deliveries, best first; `outbound` those that have
a sequence number and have not reached the application yet. A session decides nothing and sends
nothing: `core.dispatch` and `core.contacts` move deliveries through it.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import TypeAlias

from lasthop.clock import Micros
from lasthop.core.contacts.channel_state import AWAY, ChannelState, fits
from lasthop.core.contacts.retransmission import Retransmission
from lasthop.core.delivery import Delivery
from lasthop.core.feature import AwaySender, Sender, SessionPart
from lasthop.core.lane import Lane, LaneName
from lasthop.core.lane_set import Lanes
from lasthop.core.lifecycle import DELIVERED, PENDING
from lasthop.core.registry import Device
from lasthop.core.transfer import Transfer
from lasthop.decision.routes import RouteRefusal, obstacle
from lasthop.message import Quality
from lasthop.store.commit import SessionRow
from lasthop.wire.hop.frames import Last, Skip
from lasthop.wire.hop.persistence import Numbering

UnderWay: TypeAlias = Delivery | Skip | Last
"""What a sequence number stands for: a delivery, a skip if the gateway no longer knows the delivery
after a restart, or the end of a lane."""

_NO_INCARNATION = bytes(8)

NO_TRANSFERS: Mapping[int, Transfer] = MappingProxyType({})


class Session:
    """The lasting side of one device's conversation with the gateway.

    There is one session for every device, and most are idle: what only a busy session needs is made
    when it is needed.
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
        "has_immediate",
        "held_bytes",
        "incarnation",
        "lane",
        "lanes",
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
        """The sender that decides whether and over which channel a delivery leaves."""
        self.away_sender = away_sender
        """The sender of what no channel can deliver; for most devices it lets everything wait."""
        self.parts: tuple[SessionPart, ...] = ()
        """The states that features keep for this device."""
        self.transfers: Mapping[int, Transfer] = NO_TRANSFERS
        """The bodies and streams on their way to the device in pieces, by key."""
        self.epoch = 0
        self.incarnation = _NO_INCARNATION
        self.previous: tuple[Numbering, ...] = ()
        self.lane: Lane[UnderWay] = Lane()
        """Lane 0: its numbers, the window of the session, and what is in flight."""
        self.lanes: Lanes[Delivery] | None = None
        """The lanes beside lane 0; None if the device never had any."""
        self.events = 0
        """Number of events that the log has of this device."""
        self.mailbox: dict[int, Delivery] = {}
        """All open deliveries of the device, by message key."""
        self._waiting: list[tuple[int, int, Delivery]] | None = None
        self.replaceable: dict[tuple[str, str], Delivery] | None = None
        """Deliveries of which nothing has left, by source and replace key; None if there are
        none."""
        self.has_immediate = False
        """Whether messages that are dropped at the end of the contact may be in the mailbox."""
        self.held_bytes = 0
        """Bytes that the device sent and that are not durable yet."""
        self.taken_bytes = 0
        """The part of `held_bytes` for which no acknowledgement is scheduled yet."""
        self.line: ChannelState = AWAY
        """The channel to send over; `AWAY` if the device has none."""
        self.lines: tuple[ChannelState, ...] = ()
        """Every channel of the device, `line` among them, the newest last."""
        self.contacts = 0
        """How often the device has come back and reported what it has received."""
        self.retransmission: Retransmission[Session] | None = None
        """The retransmission timer; None unless a channel may lose frames or there are several."""
        self.preserve = preserve
        self.preserved = False
        """Whether a timer is set for the end of the time in which the session is preserved; there
        is never more than one such timer."""
        self.lost_at: Micros = 0
        self.ack_due = False
        self.dirty = False
        self.touched = False

    def row(self) -> SessionRow:
        """Return the session as the store keeps it."""
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
        """The number of the channel to send over; 0 while the device is away."""
        return self.line.channel

    @property
    def greeted(self) -> bool:
        """Whether WELCOME has left, so that deliveries may be released."""
        return self.line.greeted

    @property
    def reachable(self) -> bool:
        """Whether a delivery may leave, over a channel or through a carrier."""
        return self.line.greeted or self.away_sender.reaches(self)

    def add_part(self, part: SessionPart) -> None:
        """Add the state of a feature to the session."""
        self.parts = (*self.parts, part)

    @property
    def link(self) -> str:
        """The label of the link to send over."""
        return self.line.link

    @property
    def network(self) -> str:
        """The name of the network behind the channel to send over."""
        return self.line.network

    def open_line(self) -> ChannelState:
        """Return the channel to send over now: `line`, or the newest other one if the buffer of
        `line` is full."""
        line = self.line
        if line.paused:
            for other in reversed(self.lines):
                if other.greeted and not other.paused:
                    return other
        return line

    def line_for(self, line: ChannelState, quality: Quality | None) -> ChannelState:
        """Return this channel if it has the required quality, otherwise the newest channel that has
        it."""
        if quality is not None and not fits(line, quality):
            for other in reversed(self.lines):
                if other.greeted and fits(other, quality):
                    return other
        return line

    def unmet(self, quality: Quality) -> RouteRefusal | None:
        """Return why none of the channels has the quality that a publisher requires; None if one
        has it."""
        line = self.line_for(self.line, quality)
        return obstacle(line.network, line.link, quality)

    def line_besides(self, channel: int) -> ChannelState:
        """Return a channel of the session other than this one; None if there is none."""
        for other in reversed(self.lines):
            if other.greeted and other.channel != channel:
                return other
        return self.line

    def line_of(self, channel: int) -> ChannelState | None:
        """Return the state of this channel; None if it is not one of the session's."""
        if not channel:
            return None  # The number of a delivery that has not left.
        if self.line.channel == channel:
            return self.line
        return next((line for line in self.lines if line.channel == channel), None)

    def add(self, line: ChannelState) -> None:
        """Add a channel and send over it: the newest channel is the one that the device wants to be
        reached by."""
        self.lines = (*self.lines, line)
        self.line = line

    def remove(self, line: ChannelState) -> None:
        """Remove a channel that has ended; the newest of the remaining greeted ones takes over."""
        self.lines = tuple(other for other in self.lines if other is not line)
        if self.line is line:
            self.line = next((other for other in reversed(self.lines) if other.greeted), AWAY)

    def numbering(self) -> Numbering:
        """Return the present epoch, with the numbers received in it."""
        return Numbering(self.incarnation, self.epoch, self.lane.inbound.received)

    @property
    def paused(self) -> bool:
        """Whether the buffers of all channels are full."""
        return self.line.paused and all(line.paused for line in self.lines)

    def has_credit(self, size: int) -> bool:
        """Return whether the device accepts one more message of `size` bytes now."""
        return self.lane.has_credit(size) and not (self.line.paused and self.paused)

    def admits(self, delivery: Delivery) -> bool:
        """Return whether the device accepts this delivery in its lane now."""
        if self.lanes is None:
            return self.has_credit(delivery.item.size)
        if self.line.paused and self.paused:
            return False
        return self.lanes.admits(self.name_of(delivery), delivery.item.size)

    def enqueue(self, delivery: Delivery) -> None:
        """Put a pending delivery in its place: by priority, then in order of acceptance, unless its
        decider says otherwise.

        A delivery that comes back after its release keeps its place before those accepted later.
        """
        if self._waiting is None:
            self._waiting = []
        heapq.heappush(self._waiting, (-delivery.priority, delivery.place, delivery))

    def dequeue(self, delivery: Delivery) -> None:
        """Take a delivery out of the queue, because its rank has fallen while it waited for
        credit."""
        if self.lanes is not None:
            self.lanes.out.dequeue(delivery)
        self._waiting = [row for row in self._waiting or () if row[2] is not delivery]
        heapq.heapify(self._waiting)

    def best(self) -> Delivery | None:
        """Return the pending delivery that leaves next, without removing it; None if there is
        none."""
        waiting = self._waiting
        while waiting:
            delivery = waiting[0][2]
            if delivery.state is PENDING:
                return delivery
            # It ended while it waited: entries are only removed when they reach the top.
            heapq.heappop(waiting)
        self._waiting = None
        return None

    def queued(self) -> Iterator[Delivery]:
        """Return the pending deliveries that are queued to leave, in no particular order."""
        rows = [self._waiting or []]
        if self.lanes is not None:
            rows += self.lanes.out.queues.values()
        return (row[2] for queue in rows for row in queue if row[2].state is PENDING)

    def head_of(self, delivery: Delivery) -> Delivery | None:
        """Return the pending delivery that leaves before all others of a delivery's lane."""
        if self.lanes is None:
            return self.best()
        return self.lanes.out.head(self.name_of(delivery)) or self.best()

    @property
    def waits(self) -> bool:
        """Whether a pending delivery waits for its turn."""
        if self.lanes is not None and self.lanes.out.waits:
            return True
        return self.best() is not None

    def take_best(self) -> None:
        """Remove the delivery that `best` returned."""
        assert self._waiting is not None
        heapq.heappop(self._waiting)

    def depart(self, delivery: Delivery, *, numbered: bool) -> None:
        """Count a delivery as under way, under the next sequence number of its lane if it is
        `numbered`."""
        lane = self.lane
        if self.lanes is not None and numbered:
            lane = self.lanes.bind(self.name_of(delivery))
        delivery.lane = lane
        lane.flight_bytes += delivery.item.size
        if numbered:
            delivery.epoch = self.epoch
            delivery.seq = lane.outbound.push(delivery)
        else:
            lane.leaving += 1

    def replace(self, replace_key: str, delivery: Delivery) -> Delivery | None:
        """Register a delivery under its publisher's replace key, and return the older delivery that
        it replaces."""
        if self.replaceable is None:
            self.replaceable = {}
        at = (delivery.item.message.source, replace_key)
        old = self.replaceable.get(at)
        self.replaceable[at] = delivery
        return old

    def not_replaceable(self, delivery: Delivery) -> None:
        """Remove a delivery that has ended or is about to leave from the replaceable ones: a later
        message with its replace key is delivered in addition."""
        message = delivery.item.message
        at = (message.source, message.replace_key or "")
        if self.replaceable and self.replaceable.get(at) is delivery:
            del self.replaceable[at]
            if not self.replaceable:
                self.replaceable = None

    def name_of(self, delivery: Delivery) -> LaneName | None:
        """Return the name of the lane that a delivery belongs to; None for lane 0."""
        name = delivery.decider.lane(delivery)
        if name is None or not name[1] or not delivery.decider.any_order:
            return name
        return (*name[:3], self.lanes is not None and name[1] in self.lanes.unordered)

    def acknowledge_again(self) -> None:
        """Let what has arrived be acknowledged once more, in every lane that is open."""
        self.ack_due = True
        if self.lanes is not None:
            self.lanes.inbound.acknowledge_again()

    def every_lane(self) -> Iterable[Lane[UnderWay]]:
        """Return all lanes towards the device, lane 0 first."""
        return (self.lane,) if self.lanes is None else self.lanes.out.all()

    @property
    def in_flight(self) -> bool:
        """Whether the device may lack something that has a number."""
        return bool(self.lane.outbound.in_flight) or (
            self.lanes is not None and self.lanes.out.in_flight
        )

    @property
    def missing(self) -> bool:
        """Whether a message of the device waits behind a gap."""
        return bool(self.lane.inbound.missing()) or (
            self.lanes is not None and self.lanes.inbound.missing
        )

    def under_way(self) -> list[Delivery]:
        """Return the numbered deliveries that have not ended, in order."""
        return [
            item
            for lane in self.every_lane()
            for _, item in lane.outbound.undelivered()
            if isinstance(item, Delivery) and item.state < DELIVERED
        ]

    def restart(self, incarnation: bytes, epoch: int, previous: tuple[Numbering, ...]) -> None:
        """Begin a new epoch: both directions count from 0 again."""
        if self.lanes is not None:
            self.lanes.restart(int.from_bytes(self.incarnation), self.epoch)
        self.incarnation = incarnation
        self.epoch = epoch
        self.previous = previous
        self.lane.restart()
        self.held_bytes -= self.taken_bytes
        self.taken_bytes = 0
        self.ack_due = False
