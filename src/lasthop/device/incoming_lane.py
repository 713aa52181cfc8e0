"""One lane in which messages come from the gateway: its numbers, and the messages that are not
finished."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from msgspec.structs import replace

from lasthop.device.change import InboxRow, IncomingLaneNumbers, SessionNumbers
from lasthop.device.handover import HandoverLane
from lasthop.device.message import Message
from lasthop.wire.hop.frames import (
    MAX_RANGES,
    Ack,
    Credit,
    Dropped,
    Frame,
    LaneClaim,
    LaneFrame,
    Ranges,
)
from lasthop.wire.hop.ranges import RangeSet
from lasthop.wire.hop.sequence import Inbound


class IncomingLane:
    """The numbers of one lane in the present epoch, and its places in the inbox."""

    __slots__ = (
        "_dropped",
        "_news",
        "_skipped",
        "base",
        "beyond",
        "closed",
        "durable",
        "durable_dropped",
        "handover",
        "id",
        "inbound",
        "next_free",
        "open",
        "said_ack",
        "unordered",
        "unsaid",
        "window",
    )

    def __init__(
        self,
        lane: int,
        numbers: SessionNumbers | IncomingLaneNumbers,
        handover: HandoverLane,
    ) -> None:
        self.id = lane
        self.unordered = bool(lane & 1)
        """Whether messages are handed over as they come."""
        self.closed = False
        """Whether the gateway has closed the lane, whose messages are not all finished."""
        self.handover = handover
        self.inbound: Inbound[Message] = Inbound()
        self.open: dict[int, Message] = {}
        """All messages of the lane that are not finished, by position."""
        self.beyond: dict[int, Message] = {}
        """The messages that arrived beyond a gap and wait behind it, by number."""
        self.base = numbers.base
        """The position of number 0 of this epoch."""
        self.next_free = 0
        """The position behind all messages so far."""
        self._dropped = RangeSet(numbers.dropped)
        self._skipped = RangeSet(numbers.skipped)
        self._news = RangeSet()
        self.durable = Ack(0, 0)
        """The durable ack of a lane other than lane 0."""
        self.durable_dropped: Ranges = ()
        self.said_ack = Ack(0, 0)
        """The ack that the gateway was told last, of a lane other than lane 0."""
        self.unsaid = RangeSet()
        """Numbers of dropped messages that the gateway is still to be told; durable."""
        self.window: Credit | None = None
        """The window that the gateway was told for this lane; None for that of the session."""

    def numbers(self) -> IncomingLaneNumbers:
        """Return the numbers to store for a lane other than lane 0."""
        return IncomingLaneNumbers(
            base=self.base,
            received=self.inbound.received,
            delivered=self.inbound.delivered,
            dropped=self.dropped,
            offered=self.handover.offered,
            skipped=self.skipped,
        )

    def restore(
        self,
        numbers: SessionNumbers | IncomingLaneNumbers,
        numbered: Iterable[int],
        waiting: Iterable[tuple[int, Message]],
    ) -> None:
        """Restore the counts; `numbered` are the numbers of all unfinished messages, `waiting` the
        messages behind a gap."""
        finished = RangeSet()
        at = numbers.delivered
        for number in sorted(number for number in numbered if number < numbers.received):
            if at < number:
                finished.add(at, number)
            at = number + 1
        if at < numbers.received:
            finished.add(at, numbers.received)
        self.inbound.restore(
            received=numbers.received, delivered=numbers.delivered, waiting=waiting
        )
        for start, stop in finished.ranges():
            self.inbound.deliver(start, stop - start)
        for start, stop in numbers.skipped:
            self.inbound.skip(start, stop - start)
        if self.unordered:
            for number in numbered:
                self.inbound.note(number)
        self.durable = self.said_ack = self.acknowledgement()
        self.durable_dropped = self.dropped

    def position_of(self, number: int) -> int:
        """Return the position of a message that comes under this number."""
        return self.next_free if self.unordered else self.base + number

    def finish(self, number: int) -> None:
        """Note that the application is done with the message of this number, or never gets it."""
        if number < self.inbound.received:
            self.inbound.deliver(number)
        elif self.unordered:
            self.inbound.deliver(number)
            self._skipped.add(number, number + 1)

    def next_place(self) -> int:
        """Return the position of a message without a number: the end of the lane, before the next
        number."""
        place = max(self.next_free, self.base + self.inbound.received)
        self.next_free = place + 1
        self.base = place + 1 - self.inbound.received
        return place

    @property
    def end(self) -> int:
        """The first position that no message of this epoch has."""
        return max(self.base + self.inbound.received, self.next_free)

    # Numbers that are not delivered.

    @property
    def dropped(self) -> Ranges:
        """The numbers of dropped messages of which the gateway may not know yet: the newest, as
        many as fit into a HELLO."""
        return self._dropped.ranges()[-MAX_RANGES:]

    @property
    def skipped(self) -> Ranges:
        """The numbers after a gap that the gateway said it will not use. They have been
        acknowledged, so they must be stored."""
        return self._skipped.ranges()

    def drop(self, number: int) -> None:
        """Note that the application will never get the message of this number."""
        self._dropped.add(number, number + 1)
        self._news.add(number, number + 1)

    def skip(self, first: int, stop: int) -> None:
        """Note that the gateway will not use these numbers."""
        self._skipped.add(first, stop)
        self._skipped.drop_below(self.inbound.received)

    def told(self, ranges: Ranges) -> bool:
        """Forget the numbers of dropped messages that the gateway now knows to be dropped; return
        whether there were any."""
        if not self._dropped:
            return False
        known = RangeSet(ranges)
        left = RangeSet()
        for start, stop in self._dropped.ranges():
            for low, high in _without(start, stop, known):
                left.add(low, high)
        self._dropped = left
        return True

    def trim(self) -> None:
        """Forget what need not be stored any more."""
        self._skipped.drop_below(self.inbound.received)
        if len(self._dropped.ranges()) > MAX_RANGES:
            self._dropped = RangeSet(self.dropped)

    def news(self) -> Ranges:
        """Return the numbers that were dropped since the last call."""
        news, self._news = self._news.ranges(), RangeSet()
        return news

    def acknowledgement(self) -> Ack:
        """Return the ack of this lane."""
        ack = self.inbound.acknowledgement()
        return replace(ack, finished=self.inbound.finished) if self.unordered else ack

    def claim(self, most: int) -> LaneClaim:
        """Return what the device has of this lane, with at most `most` ranges of each sort."""
        ack = self.durable
        return LaneClaim(
            self.id,
            ack.received,
            ack.delivered,
            _fewer(ack.individual, most),
            _fewer(ack.finished, most),
        )

    def snapshot(self) -> LaneSnapshot:
        """Return what becomes durable with the next change."""
        return LaneSnapshot(
            self, self.acknowledgement(), self.dropped, self.news(), self.handover.offered
        )

    def begin(self, claim: LaneClaim | None) -> None:
        """Start on a new channel, whose HELLO has claimed this."""
        self.window = None
        self.unsaid = RangeSet(self.dropped)
        if claim is None:
            self.said_ack = Ack(0, 0)
        else:
            self.said_ack = Ack(claim.received, claim.delivered, claim.individual, claim.finished)

    def said(self, *, repeat: bool, reliable: bool) -> list[Frame]:
        """Return the acknowledgements of this lane, and what precedes them, that leave now."""
        frames: list[Frame] = []
        while self.unsaid:
            # DROPPED precedes the ack that covers it (hop protocol, "Acknowledgements and credit").
            some = self.unsaid.ranges(MAX_RANGES)
            self.unsaid.drop_below(some[-1][1])
            frames.append(LaneFrame(self.id, Dropped(some)))
        if self.durable != self.said_ack or repeat:
            if not reliable and self.durable_dropped:
                # An earlier DROPPED may have been lost: send all that this ack covers with it.
                frames = [LaneFrame(self.id, Dropped(self.durable_dropped))]
            self.said_ack = self.durable
            frames.append(LaneFrame(self.id, self.durable))
        return frames

    def start_over(self, base: int) -> None:
        """Begin a new epoch, in which messages are numbered from 0 again and stand from position
        `base` on."""
        self.base = base
        self.next_free = max(self.next_free, base)
        self.beyond.clear()
        self.inbound = Inbound()
        self._dropped = RangeSet()
        self._skipped = RangeSet()
        self._news = RangeSet()


class LaneSnapshot(NamedTuple):
    """The state of a lane that a change makes durable."""

    lane: IncomingLane
    ack: Ack
    dropped: Ranges
    news: Ranges
    offered: int

    def committed(self) -> None:
        """Note that the change is durable."""
        lane = self.lane
        lane.durable = self.ack
        lane.durable_dropped = self.dropped
        lane.handover.durable = self.offered
        for start, stop in self.news:
            lane.unsaid.add(start, stop)


def _fewer(ranges: Ranges, most: int) -> Ranges:
    """Return at most `most` ranges, the last one always among them."""
    return ranges if len(ranges) <= most else (*ranges[: most - 1], ranges[-1])


def in_order(rows: list[InboxRow]) -> list[InboxRow]:
    """Return the rows of a lane by position, but those with a number by number: a message behind a
    gap may have a position from before a shown message got one."""

    def own(row: InboxRow) -> bool:
        return row.number is not None and row.numbered_in == row.lane

    numbered = iter(sorted((row for row in rows if own(row)), key=lambda row: row.number or 0))
    return [next(numbered) if own(row) else row for row in rows]


def _without(start: int, stop: int, known: RangeSet) -> list[tuple[int, int]]:
    """Return the ranges of numbers from `start` to below `stop` that are not in `known`."""
    left = []
    for low, high in known.ranges():
        if start < low < stop:
            left.append((start, low))
        if low < stop:
            start = max(start, high)
    if start < stop:
        left.append((start, stop))
    return left
