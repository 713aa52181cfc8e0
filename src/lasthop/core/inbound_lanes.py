"""The lanes that a device has opened beside lane 0: what arrived in each, and what is closed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

import msgspec

from lasthop.errors import CreditExceeded, OutOfOrder
from lasthop.store.lanes import LaneChanges, SessionLaneRow
from lasthop.wire.hop.frames import (
    MAX_LANES,
    MAX_RANGES,
    Ack,
    LaneClaim,
    LaneClaims,
    MessageFrame,
    Ranges,
    Skip,
)
from lasthop.wire.hop.persistence import HISTORY
from lasthop.wire.hop.ranges import RangeSet
from lasthop.wire.hop.sequence import Inbound

UNORDERED_WINDOW = 2 * MAX_RANGES
"""How far ahead a number of a lane without order may be: with every other number missing, the
ranges that a WELCOME can name still say all."""

Held: TypeAlias = tuple[tuple[int, int, Ranges], ...]
"""By lane, how many numbers were received, and the ranges beyond of a lane without order."""


class InRecord(msgspec.Struct, array_like=True):
    """What the store keeps of one lane from the device."""

    received: int
    ranges: Ranges = ()


class InState(msgspec.Struct, array_like=True):
    """What the store keeps of all lanes from the device together."""

    seen: int
    closed: Ranges
    previous: tuple[tuple[int, int, Held], ...] = ()
    """What was held of the lanes of earlier epochs, newest first: incarnation, epoch, lanes."""


class InboundLanes:
    """The lanes from a device beside lane 0."""

    __slots__ = ("_dirty", "ack_due", "closed", "open", "previous", "seen")

    def __init__(self) -> None:
        self.open: dict[int, Inbound[MessageFrame]] = {}
        self.closed = RangeSet()
        """The numbers of lanes that are closed."""
        self.seen = 1
        """One more than the largest number of a lane that is known."""
        self.previous: tuple[tuple[int, int, Held], ...] = ()
        self.ack_due: dict[int, None] = {}
        """The lanes in which something is to be acknowledged."""
        self._dirty: dict[int, None] = {}

    def lane(self, lane: int) -> Inbound[MessageFrame] | None:
        """Return the numbers of a lane, which opens if it is new; None if it is closed. Raise
        CreditExceeded if too many are open."""
        numbers = self.open.get(lane)
        if numbers is not None:
            return numbers
        n = lane >> 1
        if n in self.closed:
            return None
        if (lane ^ 1) in self.open:
            raise OutOfOrder("a lane has an order and has none", lane=lane)
        seen = max(self.seen, n + 1)
        if seen - 1 - self._count_closed() > MAX_LANES:
            raise CreditExceeded("there are more lanes than may be open", most=MAX_LANES)
        self.seen = seen
        self.open[lane] = numbers = Inbound(window=UNORDERED_WINDOW) if lane & 1 else Inbound()
        self.touch(lane)
        return numbers

    def _count_closed(self) -> int:
        return sum(stop - start for start, stop in self.closed.ranges())

    def message(self, frame: MessageFrame) -> list[MessageFrame]:
        """Take an arrived message; return those to act on now, in this order."""
        assert frame.seq is not None
        numbers = self.lane(frame.lane)
        self.ack_due[frame.lane] = None
        if numbers is None:
            return []
        unordered = bool(frame.lane & 1)
        ready = numbers.receive(frame.seq, frame, reorder=not unordered)
        self.touch(frame.lane)
        return ready

    def skip(self, lane: int, skip: Skip) -> list[MessageFrame]:
        """Wait no longer for numbers of a lane; return the messages that waited only for them."""
        numbers = self.lane(lane)
        self.ack_due[lane] = None
        if numbers is None:
            return []
        self.touch(lane)
        return numbers.skip(skip.first, skip.count)

    def last(self, lane: int, number: int) -> Ack:
        """Close a lane with its last number, if it is not closed yet; return the acknowledgement,
        which is the same either way."""
        if lane >> 1 in self.closed:
            return Ack(number + 1, number + 1)
        numbers = self.lane(lane)
        assert numbers is not None
        if numbers.received != number or numbers.missing():
            raise OutOfOrder("a lane closes before everything in it has arrived", lane=lane)
        numbers.skip(number, 1)
        self._close(lane >> 1)
        del self.open[lane]
        self.ack_due.pop(lane, None)
        self.touch(lane)
        return Ack(number + 1, number + 1)

    def _close(self, n: int) -> None:
        self.closed.add(n, n + 1)

    def keep_only(self, sending: Iterable[int]) -> None:
        """Close every known lane that the device no longer has open."""
        kept = {lane >> 1 for lane in sending}
        for lane in [lane for lane in self.open if lane >> 1 not in kept]:
            del self.open[lane]
            self.touch(lane)
        start = 1
        for n in sorted(n for n in kept if n < self.seen):
            if start < n and n not in self.closed:
                self.closed.add(start, n)
            start = n + 1
        if start < self.seen:
            self.closed.add(start, self.seen)
        self.touch(0)

    def drop_beyond(self) -> None:
        """Drop what waits behind a gap, at a HELLO: the device may send something else under these
        numbers. A lane without order has acted on all of it."""
        for lane, numbers in self.open.items():
            if not lane & 1:
                numbers.drop_beyond()

    @property
    def missing(self) -> bool:
        """Whether a message waits behind a gap in a lane that keeps its order."""
        return any(numbers.missing() for lane, numbers in self.open.items() if not lane & 1)

    def acknowledge_again(self) -> None:
        """Let every open lane be acknowledged once more."""
        self.ack_due.update(dict.fromkeys(self.open))

    def acknowledgement(self, lane: int) -> Ack | None:
        """Return what to acknowledge in a lane; None if it has closed since."""
        numbers = self.open.get(lane)
        if numbers is None:
            return None
        ahead = numbers.ahead() if lane & 1 else ()
        return Ack(numbers.received, numbers.received, ahead, ahead)

    def claims(self) -> LaneClaims | None:
        """Return what a WELCOME says of these lanes; None if there never were any."""
        if self.seen == 1:
            return None
        by_number = {lane >> 1: lane for lane in self.open}
        claims: list[LaneClaim] = []
        for start, stop in (*self.closed.gaps(1), (max(self.closed.stop, 1), self.seen)):
            for n in range(start, stop):
                lane = by_number.get(n, 2 * n)
                ack = self.acknowledgement(lane) or Ack(0, 0)
                claims.append(LaneClaim(lane, ack.received, 0, ack.individual, ack.finished))
        return LaneClaims(self.seen, tuple(claims))

    def held(self) -> Held:
        """Return what is held of each lane, for a device that claims this epoch later."""
        return tuple(
            (lane, ack.received, ack.individual)
            for lane in sorted(self.open)
            if (ack := self.acknowledgement(lane)) is not None
        )

    def restart(self, incarnation: int, epoch: int) -> None:
        """Begin a new epoch, and remember what was held in this one."""
        before = (incarnation, epoch, self.held())
        self.previous = (before, *self.previous)[: HISTORY + 1]
        for lane in self.open:
            self.touch(lane)
        self.open = {}
        self.closed = RangeSet()
        self.seen = 1
        self.ack_due = {}
        self.touch(0)

    def held_in(self, incarnation: int, epoch: int) -> Held:
        """Return what was held of the lanes of an earlier epoch."""
        for known in self.previous:
            if known[:2] == (incarnation, epoch):
                return known[2]
        return ()

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
            record = b""
            if lane is not None:
                record = _encode(InRecord(lane.received, lane.ahead() if number & 1 else ()))
            changes.lanes[device, True, number] = SessionLaneRow(device, True, number, record)
        if self._dirty:
            state = _encode(InState(self.seen, self.closed.ranges(), self.previous))
            changes.lanes[device, True, 0] = SessionLaneRow(device, True, 0, state)
        self._dirty = {}

    def restore(self, lane: int, record: bytes) -> None:
        """Restore one lane, or (lane 0) what all of them share."""
        if not lane:
            state = _decode_state(record)
            self.seen, self.closed = state.seen, RangeSet(state.closed)
            self.previous = state.previous
            return
        row = _decode_in(record)
        numbers: Inbound[MessageFrame] = Inbound(window=UNORDERED_WINDOW) if lane & 1 else Inbound()
        numbers.restore(received=row.received, delivered=row.received)
        for start, stop in row.ranges:
            numbers.skip(start, stop - start)
        self.open[lane] = numbers


_encode = msgspec.msgpack.Encoder().encode
_decode_in = msgspec.msgpack.Decoder(InRecord).decode
_decode_state = msgspec.msgpack.Decoder(InState).decode
