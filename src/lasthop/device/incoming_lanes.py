"""All lanes in which messages come from the gateway: lane 0, those that the gateway has opened, and
what is known of those that it has closed."""

from __future__ import annotations

from collections.abc import Iterator

from lasthop.device.change import Change, IncomingLaneNumbers, LaneRow, SessionNumbers
from lasthop.device.handover import HandoverQueue
from lasthop.device.incoming_lane import IncomingLane, LaneSnapshot
from lasthop.errors import CreditExceeded, OutOfOrder
from lasthop.wire.hop.frames import MAX_LANES, MAX_RANGES, Ack, LaneClaim, LaneClaims, Ranges
from lasthop.wire.hop.ranges import RangeSet


class IncomingLanes:
    """The lanes of one session by id; a closed lane is among them while messages of it are not
    finished."""

    __slots__ = ("_closed", "_handover", "_last", "_stored", "by_id", "first", "seen")

    def __init__(self, state: SessionNumbers, handover: HandoverQueue) -> None:
        self._handover = handover
        self.first = IncomingLane(0, state, handover.first)
        """Lane 0, which is always there."""
        self.by_id: dict[int, IncomingLane] = {0: self.first}
        self.seen = state.seen_lanes
        """One more than the largest number of a lane that this device knows."""
        self._closed = RangeSet(state.closed_lanes)
        self._stored: dict[int, tuple[LaneRow, Ack]] = {}
        """The row that the inbox has of each lane except lane 0, and the ack with it."""
        self._last: list[tuple[int, int]] = []
        """Lanes and numbers of LAST frames that are to be acknowledged when that is durable."""

    def restore(self, row: LaneRow) -> None:
        """Add a lane that was open before a restart."""
        numbers = row.numbers
        assert isinstance(numbers, IncomingLaneNumbers)
        handover = self._handover.open(row.id, numbers.offered)
        lane = self.by_id[row.id] = IncomingLane(row.id, numbers, handover)
        lane.closed = row.id >> 1 in self._closed
        self._stored[row.id] = row, Ack(0, 0)

    def counts(self, lane: int, state: SessionNumbers) -> SessionNumbers | IncomingLaneNumbers:
        """Return the stored numbers of a lane, while restoring."""
        if not lane:
            return state
        numbers = self._stored[lane][0].numbers
        assert isinstance(numbers, IncomingLaneNumbers)
        return numbers

    @property
    def several(self) -> bool:
        """Whether there is any lane besides lane 0."""
        return len(self.by_id) > 1

    @property
    def used(self) -> bool:
        """Whether the gateway has opened a lane in this epoch."""
        return self.seen > 1

    @property
    def closed(self) -> Ranges:
        """The numbers of lanes that are closed."""
        return self._closed.ranges()

    def __iter__(self) -> Iterator[IncomingLane]:
        return iter(self.by_id.values())

    def get(self, lane: int) -> IncomingLane | None:
        """Return the lane of this id; None if there is none."""
        return self.by_id.get(lane)

    def find(self, lane: int) -> IncomingLane | None:
        """Return the lane that a frame of the gateway names, which may open it; None if the lane is
        closed. Raises CreditExceeded if there are too many lanes."""
        found = self.by_id.get(lane)
        if found is not None:
            return None if found.closed else found
        number = lane >> 1
        if number in self._closed:
            return None
        if lane ^ 1 in self.by_id:
            raise OutOfOrder("a lane cannot change whether it is in order", lane=lane)
        seen = max(self.seen, number + 1)
        closed = sum(stop - start for start, stop in self._closed.ranges())
        # Those between that were not seen are open at the gateway, too.
        if seen - 1 - closed > MAX_LANES:
            raise CreditExceeded("there are more lanes than may be open", most=MAX_LANES)
        self.seen = seen
        opened = IncomingLane(lane, IncomingLaneNumbers(), self._handover.open(lane))
        self.by_id[lane] = opened
        return opened

    def close(self, lane: int) -> None:
        """Note that the gateway has closed a lane. Its messages that are not finished keep their
        places, without their numbers."""
        number = lane >> 1
        self._closed.add(number, number + 1)
        self.seen = max(self.seen, number + 1)
        closed = self.by_id.get(lane)
        if closed is not None:
            closed.closed = True
            closed.unsaid = RangeSet()

    def left_by(self, sending: tuple[int, ...]) -> list[int]:
        """Return the lanes that the gateway has closed without a word: all that are known, except
        those that it sends in."""
        kept = {lane >> 1 for lane in sending}
        known = {lane.id >> 1: lane.id for lane in self if lane.id}
        return [
            known.get(number, number << 1)
            for number in range(1, self.seen)
            if number not in kept and number not in self._closed
        ]

    def claims(self) -> LaneClaims | None:
        """Return what the device has of the gateway's lanes, for a HELLO."""
        if not self.used:
            return None
        sets = sum(
            bool(lane.durable.individual) + bool(lane.durable.finished) for lane in self if lane.id
        )
        most = MAX_RANGES // max(1, sets)
        known = {lane.id >> 1: lane for lane in self if lane.id and not lane.closed}
        claimed = [
            known[number].claim(most) if number in known else LaneClaim(number << 1)
            for number in range(1, self.seen)
            if number not in self._closed
        ]
        return LaneClaims(self.seen, tuple(claimed))

    def dropped(self) -> tuple[tuple[int, Ranges], ...]:
        """Return the dropped numbers that the gateway may not know, by lane, for a HELLO."""
        lanes = [lane for lane in self if lane.id and not lane.closed and lane.durable_dropped]
        most = MAX_RANGES // max(1, len(lanes))
        return tuple(sorted((lane.id, lane.durable_dropped[-most:]) for lane in lanes))

    def begin(self, claims: LaneClaims | None) -> None:
        """Start on a new channel, whose HELLO has claimed this."""
        claimed = {} if claims is None else {claim.lane: claim for claim in claims.lanes}
        for lane in self:
            if lane.id:
                lane.begin(claimed.get(lane.id))

    def last(self, lane: int, number: int) -> None:
        """Acknowledge a LAST when the closing of its lane is durable."""
        self._last.append((lane, number))

    def take_last(self) -> tuple[tuple[int, int], ...]:
        """Return the LAST frames that the next change lets be acknowledged."""
        last, self._last = self._last, []
        return tuple(last)

    def start_over(self) -> None:
        """Begin a new epoch, in which there is only lane 0 so far."""
        self.by_id = {0: self.first}
        self.seen = 1
        self._closed = RangeSet()
        self._stored = {}
        self._last = []

    def collect(self, change: Change) -> tuple[LaneSnapshot, ...]:
        """Put the numbers of the lanes that have changed, except lane 0, into `change`; return what
        becomes durable with it."""
        snapshots = []
        for number, lane in list(self.by_id.items()):
            if not number:
                continue
            lane.trim()
            if lane.closed and not lane.open:
                del self.by_id[number]
                self._handover.forget(number)
                if self._stored.pop(number, None) is not None:
                    change.lanes.append(LaneRow(incoming=True, id=number, numbers=None))
                continue
            snapshot = lane.snapshot()
            row = LaneRow(incoming=True, id=number, numbers=lane.numbers())
            before = self._stored.get(number)
            if before is None or before != (row, snapshot.ack):
                self._stored[number] = row, snapshot.ack
                if before is None or before[0] != row:
                    change.lanes.append(row)
                snapshots.append(snapshot)
        return tuple(snapshots)
