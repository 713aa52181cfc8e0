"""The lanes of a session beside lane 0: which messages share one, and when it opens and closes.

A *name* stands for the messages that keep their order: a queue at a priority, or a ranked topic.
Names without a lane of their own are folded into lane 0, which costs nothing on the wire. A name
changes its lane only when everything that it has in the old one was delivered.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import Any, Final, Generic, Protocol, TypeVar

import msgspec

from lasthop.clock import SECOND, Micros
from lasthop.core.contacts.retransmission import Retransmission
from lasthop.core.lane import Lane, LaneName
from lasthop.core.lifecycle import PENDING, State
from lasthop.store.lanes import LaneChanges, SessionLaneRow
from lasthop.wire.hop.frames import MAX_LANES, Credit, Last, Skip
from lasthop.wire.hop.lane_credit import ROOM

IDLE: Final[Micros] = 60 * SECOND
"""The time after which a lane closes in which everything was delivered. Another message of its name
would open another one, for one byte more than it costs to keep it."""

FULL: Final = "it shares lane 0, because no more lanes may be open"
EARLIER: Final = "it shares lane 0 with earlier messages that are not delivered yet"


class PendingInLane(Protocol):
    """A delivery, as far as its place among others is concerned."""

    priority: int
    place: int
    state: State
    seq: int
    lane: Lane[Any]

    def __lt__(self, other: Any) -> bool: ...


D = TypeVar("D", bound=PendingInLane)
"""The type of the deliveries that leave in lanes, which is `Delivery`."""


class OutRecord(msgspec.Struct, array_like=True):
    """What the store keeps of one lane towards the device."""

    name: LaneName
    assigned: int
    received: int
    delivered: int
    last: int = -1


class OpenLane(Lane[Any]):
    """A lane towards the device, beside lane 0."""

    __slots__ = ("idle_since", "last", "limit", "name", "retransmission")

    def __init__(self, lane: int, name: LaneName) -> None:
        super().__init__(lane)
        self.name = name
        self.limit: Credit | None = None
        """The window that the device named for this lane; None while it is that of the session."""
        self.last = -1
        """The number with which the lane closes; -1 while it stays open."""
        self.idle_since: Micros = 0
        self.retransmission: Retransmission[Any] | None = None

    @property
    def idle(self) -> bool:
        """Whether everything in the lane was delivered, and it is not about to close."""
        return self.last < 0 and self.outbound.delivered == self.outbound.assigned

    def close(self) -> None:
        """Give the lane its last number."""
        self.last = self.outbound.assigned
        self.outbound.push(Last(self.last))

    def record(self) -> bytes:
        """Return the lane as the store keeps it."""
        numbers = self.outbound
        row = OutRecord(self.name, numbers.assigned, numbers.received, numbers.delivered, self.last)
        return _encode(row)


class OutboundLanes(Generic[D]):
    """The lanes towards a device beside lane 0, and what is bound to each."""

    __slots__ = (
        "_default",
        "_dirty",
        "_folded_at",
        "bound",
        "crowded",
        "floor",
        "folded",
        "next",
        "open",
        "queues",
    )

    def __init__(self, default: Lane[Any]) -> None:
        self._default = default
        self.next = 1
        """The number of the lane that opens next."""
        self.open: dict[int, OpenLane] = {}
        self.bound: dict[LaneName, OpenLane] = {}
        self.crowded = False
        """Whether a name found no place: the lane that was idle for longest should close."""
        self._folded_at = -1
        """The number of the newest message of a name that is folded."""
        self.folded: dict[LaneName, int] = {}
        """The last number that a folded name has in lane 0."""
        self.floor = default.outbound.assigned
        """No lane opens before everything below this number of lane 0 is delivered: names that were
        in lane 0 before there were other lanes keep their order."""
        self.queues: dict[LaneName | None, list[tuple[int, int, D]]] = {}
        """The pending deliveries by name, best first."""
        self._dirty: dict[int, None] = {}

    @property
    def gone(self) -> bool:
        """Whether a lane has closed in this epoch."""
        return self.next - 1 > len(self.open)

    # Which lane.

    def lane_of(self, name: LaneName | None) -> Lane[Any] | None:
        """Return the lane in which the next message of a name leaves; None for one that would have
        to be opened."""
        if name is None:
            return self._default
        lane = self.bound.get(name)
        if lane is not None:
            return lane
        done = self._default.outbound.delivered
        if done < self.floor or done <= self.folded.get(name, -1):
            return self._default
        return None if len(self.open) < MAX_LANES else self._default

    def bind(self, name: LaneName | None) -> Lane[Any]:
        """Return the lane in which a message of a name leaves now; a new one is opened if there is
        room."""
        lane = self.lane_of(name)
        if lane is None:
            assert name is not None
            self.folded.pop(name, None)
            lane = OpenLane(2 * self.next + name[3], name)
            self.next += 1
            self.open[lane.id] = self.bound[name] = lane
        if lane is self._default and name is not None:
            self.folded[name] = self._folded_at = lane.outbound.assigned
            self.crowded = self.crowded or len(self.open) >= MAX_LANES
        elif lane.id:
            self.touch(lane.id)
        return lane

    def why_folded(self, delivery: D) -> str:
        """Return why a delivery that was just released shares lane 0 with others; empty if it does
        not, or belongs there."""
        if delivery.lane is not self._default or delivery.seq != self._folded_at:
            return ""
        return FULL if len(self.open) >= MAX_LANES else EARLIER

    # What may leave.

    def admits(self, name: LaneName | None, size: int, window: Credit) -> bool:
        """Return whether the device accepts one more message of a name.

        docs/hop-protocol.md, "Lanes": every lane has room for one small message beyond the window
        of the session.
        """
        lane = self.lane_of(name)
        ahead, flight = 0, 0
        if lane is not None:
            ahead, flight = lane.ahead, lane.flight_bytes
        limit = self._limit(lane, window)
        if not window.messages or ahead + (lane.leaving if lane else 0) >= limit.messages:
            return False
        default = self._default
        total = default.ahead + default.leaving
        size_of_all = default.flight_bytes
        for other in self.open.values():
            total += other.ahead
            size_of_all += other.flight_bytes
        if not total:
            return True
        fits = not flight or flight + size <= limit.bytes
        if total < window.messages and size_of_all + size <= window.bytes and fits:
            return True
        return not ahead and size <= ROOM

    @staticmethod
    def _limit(lane: Lane[Any] | None, window: Credit) -> Credit:
        own = lane.limit if isinstance(lane, OpenLane) else None
        return window if own is None else own

    def again_below(self, lane: Lane[Any], window: Credit) -> int:
        """Return the number below which a lane's messages of an earlier contact may leave again."""
        others = sum(
            min(other.sent_to, other.outbound.assigned) - other.outbound.received
            for other in (self._default, *self.open.values())
            if other is not lane
        )
        own = self._limit(lane, window).messages
        room = min(own, max(window.messages - others, 1)) if window.messages else 0
        return lane.outbound.received + room

    def line_up(self, name: LaneName | None, delivery: D) -> None:
        """Put a pending delivery in its place among those of its name."""
        queue = self.queues.setdefault(name, [])
        heapq.heappush(queue, (-delivery.priority, delivery.place, delivery))

    def head(self, name: LaneName | None) -> D | None:
        """Return the pending delivery of a name that leaves next; None if there is none."""
        queue = self.queues.get(name)
        while queue:
            delivery = queue[0][2]
            if delivery.state is PENDING:
                return delivery
            heapq.heappop(queue)
        self.queues.pop(name, None)
        return None

    @property
    def waits(self) -> bool:
        """Whether a delivery waits for its turn in a lane."""
        return any(self.head(name) is not None for name in list(self.queues))

    def take_head(self, name: LaneName | None) -> None:
        """Remove the delivery that `head` returned."""
        heapq.heappop(self.queues[name])

    def dequeue(self, delivery: D) -> None:
        """Take a delivery out of the queue of its name."""
        for name, queue in list(self.queues.items()):
            if any(row[2] is delivery for row in queue):
                self.queues[name] = [row for row in queue if row[2] is not delivery]
                heapq.heapify(self.queues[name])

    def take_waiting(self) -> list[D]:
        """Return all pending deliveries and forget them here."""
        queues, self.queues = self.queues, {}
        return [row[2] for queue in queues.values() for row in queue]

    # How lanes end.

    def all(self) -> Iterator[Lane[Any]]:
        """Yield every lane, lane 0 first."""
        yield self._default
        yield from list(self.open.values())

    def settled(self, lane: OpenLane, now: Micros) -> None:
        """Note that numbers of a lane were acknowledged: it may be idle now, or closed."""
        self.touch(lane.id)
        numbers = lane.outbound
        if numbers.delivered == numbers.assigned:
            if lane.last >= 0:
                self.remove(lane)
            else:
                lane.idle_since = now

    def longest_idle(self) -> OpenLane | None:
        """Return the lane that has been idle for longest; None if none is."""
        idle = [lane for lane in self.open.values() if lane.idle]
        return min(idle, key=lambda lane: lane.idle_since, default=None)

    def closing(self, now: Micros) -> list[OpenLane]:
        """Close the lanes that were idle for long, and one whose place is wanted; return them with
        their last numbers. Their names may have other lanes from now on."""
        closing = [
            lane for lane in self.open.values() if lane.idle and now >= lane.idle_since + IDLE
        ]
        if self.crowded:
            self.crowded = False
            longest = self.longest_idle()
            if longest is not None and longest not in closing:
                closing.append(longest)
        for lane in closing:
            self.bound.pop(lane.name, None)
            self.touch(lane.id)
            lane.close()
        return closing

    def next_idle(self) -> Micros | None:
        """Return when the next lane will have been idle for long; None if none is idle."""
        return min(
            (lane.idle_since + IDLE for lane in self.open.values() if lane.idle), default=None
        )

    def remove(self, lane: OpenLane) -> None:
        """Forget a lane that has ended; its number is never used again in this epoch."""
        del self.open[lane.id]
        if self.bound.get(lane.name) is lane:
            del self.bound[lane.name]
        self.touch(lane.id)

    def restart(self) -> None:
        """Begin a new epoch: no lane is open, and lane numbers start again."""
        for lane in list(self.open.values()):
            self.remove(lane)
        self.next = 1
        self.folded = {}
        self.floor = 0
        self.touch(0)

    def drop_idle(self) -> None:
        """Forget lanes in which everything was delivered, because contact was lost: the next
        handshake closes them."""
        for lane in list(self.open.values()):
            if lane.outbound.delivered == (lane.last if lane.last >= 0 else lane.outbound.assigned):
                self.remove(lane)

    def stop_timers(self) -> None:
        """Stop waiting for acknowledgements: the only channel loses nothing while it lasts."""
        for lane in self.open.values():
            lane.retransmission = None

    @property
    def in_flight(self) -> bool:
        """Whether the device may lack something that has a number in one of these lanes."""
        return any(lane.outbound.in_flight for lane in self.open.values())

    # The store.

    def touch(self, lane: int) -> None:
        """Write a lane with the open commit."""
        self._dirty[lane] = None

    @property
    def dirty(self) -> bool:
        """Whether a lane has changed since `rows`."""
        return bool(self._dirty)

    def rows(self, device: int, changes: LaneChanges) -> None:
        """Write the lanes that have changed into a commit."""
        for number in self._dirty.keys() - {0}:
            lane = self.open.get(number)
            record = b"" if lane is None else lane.record()
            changes.lanes[device, False, number] = SessionLaneRow(device, False, number, record)
        if self._dirty:
            changes.lanes[device, False, 0] = SessionLaneRow(device, False, 0, _encode(self.next))
        self._dirty = {}

    def restore(self, lane: int, record: bytes) -> None:
        """Restore one lane; what its numbers stand for is found later."""
        if not lane:
            self.next = _decode_next(record)
            return
        row = _decode_out(record)
        restored = OpenLane(lane, row.name)
        restored.last = row.last
        restored.sendable = row.assigned
        restored.outbound.restore(
            assigned=row.assigned,
            received=row.received,
            delivered=row.delivered,
            items=(
                (seq, Last(seq) if seq == row.last else Skip(seq))
                for seq in range(row.delivered, row.assigned)
            ),
        )
        self.open[lane] = restored
        if row.last < 0:
            self.bound[row.name] = restored


_encode = msgspec.msgpack.Encoder().encode
_decode_out = msgspec.msgpack.Decoder(OutRecord).decode
_decode_next = msgspec.msgpack.Decoder(int).decode
