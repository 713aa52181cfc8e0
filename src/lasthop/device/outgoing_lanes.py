"""All lanes in which a device sends, and which messages travel in which.

Messages of one queue and priority keep their order, so they stay in one lane until the gateway has
all of them that have a number there. When no lane is left they travel in lane 0: they are folded.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from lasthop.clock import SECOND, Micros
from lasthop.device.change import Change, InboxContents, LaneRow, OutgoingLaneNumbers
from lasthop.device.outgoing import Outgoing, ordinary, priority_of
from lasthop.device.outgoing_lane import DEFAULT_LANE, LaneName, OutgoingLane
from lasthop.wire.hop.frames import MAX_LANES, Ack, Frame, LaneClaim, LaneClaims, LaneFrame, Last

IDLE: Micros = 60 * SECOND
"""How long a lane without messages stays open: a burst of messages opens it once, and a lane that
is not used costs the gateway nothing for long."""


class OutgoingLanes:
    """The lanes of one session by id, those included that are being closed."""

    def __init__(self, held: InboxContents, items: list[Outgoing]) -> None:
        state = held.state
        self.first = OutgoingLane(0, DEFAULT_LANE)
        """Lane 0, which is always there."""
        self.by_id: dict[int, OutgoingLane] = {0: self.first}
        self.allowed = False
        """Whether the gateway understands lanes; if not, every message travels in lane 0."""
        self.opened = state.opened_lanes
        """The number of lanes that were opened in this epoch."""
        self.unordered: frozenset[str] = frozenset()
        """The queues whose messages need no order."""
        self._bound: dict[LaneName, OutgoingLane] = {}
        self._folded: dict[LaneName, int] = {}
        """The last number in lane 0 of messages that would have a lane of their own."""
        self._stored: dict[int, LaneRow] = {}
        self._forgotten: list[int] = []
        in_lanes: dict[int, list[Outgoing]] = {}
        for item in items:
            in_lanes.setdefault(item.lane, []).append(item)
        self.first.restore(state.assigned, state.accepted, in_lanes.get(0, []))
        for row in held.lanes:
            if isinstance(row.numbers, OutgoingLaneNumbers):
                self._restore(row, row.numbers, in_lanes.get(row.id, []))
        for item in in_lanes.get(0, []):
            if item.number >= 0:
                self._fold(self.name_of(item), item.number)
        self.forget_idle()

    def _restore(self, row: LaneRow, numbers: OutgoingLaneNumbers, items: list[Outgoing]) -> None:
        name = LaneName(numbers.queue, numbers.priority, bool(row.id & 1))
        lane = self.by_id[row.id] = OutgoingLane(row.id, name)
        lane.restore(numbers.assigned, numbers.accepted, items)
        lane.last = numbers.last
        self._stored[row.id] = row
        if lane.last is None:
            self._bound[name] = lane

    def __iter__(self) -> Iterator[OutgoingLane]:
        return iter(self.by_id.values())

    @property
    def several(self) -> bool:
        """Whether there is any lane besides lane 0."""
        return len(self.by_id) > 1

    def sending(self) -> tuple[int, ...]:
        """Return the lanes that are open, for a HELLO."""
        return tuple(sorted(number for number in self.by_id if number))

    # Which message travels where.

    def name_of(self, item: Outgoing) -> LaneName:
        """Return the messages among which this one keeps its order. Messages for the gateway itself
        keep theirs with everything that needs no lane."""
        if not ordinary(item.frame):
            return DEFAULT_LANE
        queue = item.queue
        return LaneName(queue, priority_of(item.frame), queue in self.unordered)

    def find(self, name: LaneName) -> OutgoingLane | None:
        """Return the lane in which a message of this name gets its number now; None for a lane that
        is not open yet."""
        if name == DEFAULT_LANE:
            return self.first
        lane = self._bound.get(name)
        if lane is not None:
            return lane
        last = self._folded.get(name)
        if last is not None:
            if last >= self.first.outbound.received:
                return self.first
            del self._folded[name]
        return None if self.allowed and len(self.by_id) <= MAX_LANES else self.first

    def push(self, item: Outgoing) -> None:
        """Give a message the next number of its lane."""
        name = self.name_of(item)
        lane = self.find(name)
        if lane is None:
            self.opened += 1
            number = self.opened << 1 | name.unordered
            lane = self.by_id[number] = self._bound[name] = OutgoingLane(number, name)
        item.lane = lane.id
        item.number = lane.outbound.push(item)
        if lane is self.first and name != DEFAULT_LANE:
            self._fold(name, item.number)
            if self.allowed and len(self.by_id) > MAX_LANES:
                self._make_room()

    def _fold(self, name: LaneName, number: int) -> None:
        if name != DEFAULT_LANE:
            self._folded[name] = number

    # Closing.

    def _make_room(self) -> None:
        """Close the lane that has been idle longest."""
        idle = [lane for lane in self if lane.id and lane.idle and lane.last is None]
        if idle:
            self._close(min(idle, key=lambda lane: lane.idle_since))

    def _close(self, lane: OutgoingLane) -> None:
        lane.close()
        del self._bound[lane.name]

    def close_idle(self, now: Micros) -> bool:
        """Close the lanes that have been idle for a minute; return whether there were any."""
        idle = [
            lane for lane in self._bound.values() if lane.idle and now >= lane.idle_since + IDLE
        ]
        for lane in idle:
            self._close(lane)
        return bool(idle)

    def next_close(self) -> Micros | None:
        """Return the time at which `close_idle` has something to do; None if there is none."""
        idle = [lane.idle_since for lane in self._bound.values() if lane.idle]
        return min(idle) + IDLE if idle else None

    def forget(self, lane: OutgoingLane) -> None:
        """Forget a lane that is closed on both sides."""
        del self.by_id[lane.id]
        if self._bound.get(lane.name) is lane:
            del self._bound[lane.name]
        if self._stored.pop(lane.id, None) is not None:
            self._forgotten.append(lane.id)

    def forget_idle(self) -> bool:
        """Forget the lanes in which nothing is under way, because there is no contact: the next
        HELLO does not name them. Return whether there were any."""
        idle = [lane for lane in self if lane.id and (lane.idle or lane.last is not None)]
        for lane in idle:
            self.forget(lane)
        return bool(idle)

    # The gateway.

    def accepts(self, claims: LaneClaims | None) -> bool:
        """Whether the gateway knows no more of this device's lanes than the device does."""
        if claims is None:
            return True
        if claims.seen > self.opened + 1:
            return False
        claimed = {claim.lane >> 1: claim for claim in claims.lanes}
        for lane in self:
            number = lane.id >> 1
            if not number or number >= claims.seen:
                continue
            claim = claimed.get(number)
            if claim is None:
                return False  # It is closed there, and this device does not know that it said so.
            if _highest(claim) > lane.outbound.assigned:
                return False
        return True

    def start_over(self) -> None:
        """Begin a new epoch, with lane 0 alone."""
        self.first = OutgoingLane(0, DEFAULT_LANE)
        self.by_id = {0: self.first}
        self.opened = 0
        self._bound, self._folded, self._stored = {}, {}, {}
        self._forgotten = []

    # What has to survive.

    def collect(self, change: Change) -> list[tuple[OutgoingLane, int]]:
        """Put the numbers of the lanes except lane 0 into `change`; return the lanes with the count
        of numbers that becomes durable with it."""
        for number in self._forgotten:
            change.lanes.append(LaneRow(incoming=False, id=number, numbers=None))
        self._forgotten = []
        assigned = []
        for lane in self:
            if not lane.id:
                continue
            row = LaneRow(incoming=False, id=lane.id, numbers=lane.numbers())
            if self._stored.get(lane.id) != row:
                self._stored[lane.id] = row
                change.lanes.append(row)
                assigned.append((lane, lane.outbound.assigned))
        return assigned


def last_frames(lanes: Iterable[OutgoingLane]) -> list[Frame]:
    """Return the LAST frames that leave now."""
    frames: list[Frame] = []
    for lane in lanes:
        if lane.last is not None and not lane.said_last and lane.last < lane.durable:
            lane.said_last = True
            frames.append(LaneFrame(lane.id, Last(lane.last)))
    return frames


def claimed_ack(claims: LaneClaims | None, lane: OutgoingLane) -> Ack:
    """Return what the gateway has of a lane of this device."""
    for claim in claims.lanes if claims is not None else ():
        if claim.lane >> 1 == lane.id >> 1:
            return Ack(claim.received, claim.received, claim.individual)
    return Ack(0, 0)


def _highest(claim: LaneClaim) -> int:
    return claim.individual[-1][1] if claim.individual else claim.received
