"""One lane in which messages come from the gateway: its numbers, and the messages that are not
finished."""

from __future__ import annotations

from collections.abc import Iterable

from lasthop.device.change import InboxRow, IncomingLaneNumbers, SessionNumbers
from lasthop.device.handover import HandoverLane
from lasthop.device.message import Message
from lasthop.wire.hop.frames import MAX_RANGES, Ack, Ranges
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
        "handover",
        "id",
        "inbound",
        "next_free",
        "open",
    )

    def __init__(
        self,
        lane: int,
        numbers: SessionNumbers | IncomingLaneNumbers,
        handover: HandoverLane,
    ) -> None:
        self.id = lane
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

    def hold(self, message: Message) -> None:
        """Note that a message of this lane is in the inbox."""
        self.open[message.position] = message

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
        return self.inbound.acknowledgement()

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
