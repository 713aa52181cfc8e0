"""The numbers of a session: what was sent and not acknowledged, what arrived and in which order.

`Outbound` is the sender's memory, `Inbound` the receiver's; both outlive channels. Numbers start at
0 in every epoch. Neither decides when to send again: out-of-order mappings (parallel HTTP requests,
several channels) leave gaps that fill by themselves, so a gap only says what *may* be lost, and a
retransmission timer decides (AMME, section 6.2.1).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Generic, NamedTuple, TypeVar

from lasthop.errors import OutOfOrder
from lasthop.wire.hop.frames import MAX_RANGES, Ack, Ranges
from lasthop.wire.hop.ranges import RangeSet

T = TypeVar("T")

DEFAULT_WINDOW = 4096
"""How far ahead a number may be: above any credit that we grant, so that only invalid numbers
exceed it."""


class Progress(NamedTuple, Generic[T]):
    """What an acknowledgement changed: items that were newly received, and items newly delivered to
    the application."""

    received: list[T]
    delivered: list[T]


class Outbound(Generic[T]):
    """Items under the numbers with which they were sent, until the other side has them.

    Every operation costs in proportion to the items that it moves.
    """

    __slots__ = ("_individual", "_sent", "_undelivered", "assigned", "delivered", "received")

    def __init__(self) -> None:
        self.assigned = 0
        """How many numbers were assigned in this epoch."""
        self.received = 0
        self.delivered = 0
        self._sent: dict[int, T] = {}
        self._undelivered: dict[int, T] = {}
        self._individual: RangeSet | None = None

    @property
    def in_flight(self) -> int:
        """The number of items that the other side may not have; credit limits it."""
        return len(self._sent)

    def restore(
        self, *, assigned: int, received: int, delivered: int, items: Iterable[tuple[int, T]]
    ) -> None:
        """Restore the state from a store: the counts, and every (number, item) not delivered, in
        order."""
        self.assigned = assigned
        self.received = received
        self.delivered = delivered
        self._individual = None
        self._sent = {}
        self._undelivered = {}
        for seq, item in items:
            (self._sent if seq >= received else self._undelivered)[seq] = item

    def push(self, item: T) -> int:
        """Assign the next number to `item` and return it."""
        seq = self.assigned
        self.assigned = seq + 1
        self._sent[seq] = item
        return seq

    def replace(self, seq: int, item: T) -> T | None:
        """Put another item under a number in flight, such as a skip for a cancelled message.

        Return the former item, or None when it is too late because the other side has it.
        """
        old = self._sent.get(seq)
        if old is not None:
            self._sent[seq] = item
        return old

    def awaits(self, seq: int) -> bool:
        """Whether the other side may not have received this number."""
        return seq in self._sent

    def get(self, seq: int) -> T | None:
        """Return the item of this number; None once it was delivered."""
        item = self._sent.get(seq)
        return item if item is not None else self._undelivered.get(seq)

    def put(self, seq: int, item: T) -> None:
        """Set the item of a number, while restoring."""
        (self._sent if seq in self._sent else self._undelivered)[seq] = item

    def undelivered(self) -> list[tuple[int, T]]:
        """Return every (number, item) that the other side's application may not have, in order."""
        return sorted((*self._undelivered.items(), *self._sent.items()), key=lambda pair: pair[0])

    def unacknowledged(self) -> list[tuple[int, T]]:
        """Return what to send again after a reconnect: every (number, item) that may not have
        arrived."""
        return list(self._sent.items())

    def missing(self) -> list[tuple[int, T]]:
        """Return what may be lost: every (number, item) below a number that was acknowledged
        individually."""
        if self._individual is None:
            return []
        gaps = self._individual.gaps(self.received)
        numbers = (seq for low, high in gaps for seq in range(low, high))
        return [(seq, self._sent[seq]) for seq in numbers if seq in self._sent]

    def acknowledge(self, ack: Ack) -> Progress[T]:
        """Apply an acknowledgement and return what it changed. A stale one changes nothing; an
        impossible one raises OutOfOrder."""
        stop = ack.individual[-1][1] if ack.individual else ack.received
        # docs/hop-protocol.md, "Acknowledgements and credit": impossible counts close the channel.
        if max(ack.received, stop) > self.assigned:
            raise OutOfOrder(
                "an acknowledgement is for a number that was never sent",
                received=max(ack.received, stop),
                assigned=self.assigned,
            )
        if ack.delivered > ack.received:
            raise OutOfOrder(
                "an acknowledgement has more delivered than received",
                received=ack.received,
                delivered=ack.delivered,
            )
        received: list[T] = []
        if ack.received > self.received:
            self._move(self.received, ack.received, received)
            self.received = ack.received
            if self._individual is not None:
                self.received = self._individual.take_from(self.received)
                if not self._individual:
                    self._individual = None
        for start, end in ack.individual:
            self._receive_individually(start, end, received)
        return Progress(received, self._deliver(ack.delivered) + self._finish(ack.finished))

    def _receive_individually(self, start: int, stop: int, received: list[T]) -> None:
        start = max(start, self.received)
        if start >= stop:
            return
        if self._individual is None:
            self._individual = RangeSet()
        for low, high in self._individual.add(start, stop):
            self._move(low, high, received)
        # With stale counts beside fresh ranges the gap may have closed from both sides.
        self.received = self._individual.take_from(self.received)
        if not self._individual:
            self._individual = None

    def _move(self, start: int, stop: int, received: list[T]) -> None:
        for seq in range(start, stop):
            item = self._sent.pop(seq, None)
            if item is not None:
                received.append(item)
                self._undelivered[seq] = item
        if not self._sent:
            # An emptied dict keeps its table, and ten thousand idle sessions would add up.
            self._sent = {}

    def _deliver(self, count: int) -> list[T]:
        delivered: list[T] = []
        for seq in range(self.delivered, count):
            item = self._undelivered.pop(seq, None)
            if item is not None:
                delivered.append(item)
        if count > self.delivered:
            self.delivered = count
            if not self._undelivered:
                self._undelivered = {}
        return delivered

    def _finish(self, ranges: Ranges) -> list[T]:
        """Deliver numbers beyond the count, in a lane without order."""
        delivered: list[T] = []
        for start, stop in ranges:
            if stop > self.assigned:
                raise OutOfOrder("a number was delivered that was never sent", number=stop - 1)
            for seq in range(max(start, self.delivered), stop):
                item = self._undelivered.pop(seq, None)
                if item is not None:
                    delivered.append(item)
        return delivered


class Inbound(Generic[T]):
    """Items by number: each is taken once and handed over in order; also what to acknowledge.

    `window` limits how far ahead of the first missing number an item may be.
    """

    __slots__ = (
        "_acknowledged",
        "_ahead",
        "_done",
        "_waiting",
        "_window",
        "delivered",
        "duplicates",
        "received",
    )

    def __init__(self, *, window: int = DEFAULT_WINDOW) -> None:
        self.received = 0
        self.delivered = 0
        self.duplicates = 0
        self._window = window
        self._waiting: dict[int, T] | None = None
        self._ahead: RangeSet | None = None
        self._done: RangeSet | None = None
        self._acknowledged = Ack(0, 0)

    def restore(
        self,
        *,
        received: int,
        delivered: int,
        waiting: Iterable[tuple[int, T]] = (),
        acknowledged: bool = True,
    ) -> None:
        """Restore the state from a store: the counts, and every (number, item) that waits behind a
        gap.

        After a handshake that named the counts nothing is left to acknowledge.
        """
        self.received = received
        self.delivered = delivered
        self._waiting = None
        self._ahead = None
        self._done = None
        for seq, item in waiting:
            self.receive(seq, item)
        self._acknowledged = self._state() if acknowledged else Ack(0, 0)

    def receive(self, seq: int, item: T, *, reorder: bool = True) -> list[T]:
        """Handle a received item; return the items that can be handed over now, in order.

        Without `reorder` the item is handed over at once, even beyond a gap. A duplicate returns
        nothing.
        """
        if seq == self.received and self._ahead is None:
            self.received = seq + 1
            return [item]
        self._check(seq + 1)
        if not self._note(seq, seq + 1):
            self.duplicates += 1
            return []
        if reorder:
            if self._waiting is None:
                self._waiting = {}
            self._waiting[seq] = item
            return self._advance()
        return [item, *self._advance()]

    def note(self, seq: int) -> None:
        """Note, while restoring, that an item beyond a gap has arrived and was handed over at
        once."""
        self._note(seq, seq + 1)
        self._advance()

    @property
    def finished(self) -> Ranges:
        """The ranges that were delivered beyond the delivered count."""
        return self._done.lowest_and_last(MAX_RANGES) if self._done is not None else ()

    def has(self, seq: int) -> bool:
        """Whether the item of this number has arrived, or was skipped."""
        return seq < self.received or (self._ahead is not None and seq in self._ahead)

    def skip(self, first: int, count: int) -> list[T]:
        """Wait no longer for numbers whose messages expired or were cancelled; return the items
        that waited only for them.

        An item under one of these numbers that still waits is dropped.
        """
        stop = first + count
        self._check(stop)
        for seq in range(max(first, self.received), stop):
            if self._waiting is not None and self._waiting.pop(seq, None) is not None:
                self._finish(seq, seq + 1)
        return self._skip(first, stop)

    def close_below(self, count: int) -> list[T]:
        """Wait for no number below `count` after a resume; return the items that waited behind
        them."""
        return self._skip(self.received, count)

    def drop_beyond(self) -> None:
        """Drop what waits behind a gap, at a resume: its sender was not told of it, and may send
        something else under these numbers."""
        self._waiting = self._ahead = None

    def deliver(self, seq: int, count: int = 1) -> None:
        """Note that the application has received the items of these numbers."""
        stop = seq + count
        if stop > self.received and (self._ahead is None or stop > self._ahead.stop):
            raise ValueError("a number is delivered before it was received")
        self._finish(seq, stop)

    def ahead(self) -> Ranges:
        """Return the ranges that have arrived beyond the first gap."""
        return self._ahead.ranges() if self._ahead is not None else ()

    def missing(self) -> Ranges:
        """Return the gaps below the highest number that has arrived."""
        return self._ahead.gaps(self.received) if self._ahead is not None else ()

    @property
    def dirty(self) -> bool:
        """Whether anything changed since the last acknowledgement, so that one should be sent."""
        return self._state() != self._acknowledged

    def acknowledgement(self) -> Ack:
        """Return the acknowledgement to send now, and remember it as sent."""
        self._acknowledged = self._state()
        return self._acknowledged

    def _state(self) -> Ack:
        ahead = self._ahead
        # The last range tells a gateway that is an older copy of itself that it would use numbers
        # again which this side holds.
        ranges = ahead.lowest_and_last(MAX_RANGES) if ahead is not None else ()
        return Ack(self.received, self.delivered, ranges)

    def _check(self, stop: int) -> None:
        if stop > self.received + self._window:
            raise OutOfOrder("a number is too far ahead", number=stop - 1, received=self.received)

    def _note(self, start: int, stop: int) -> bool:
        """Remember numbers as arrived; return whether any of them is new."""
        start = max(start, self.received)
        if start >= stop:
            return False
        if self._ahead is None:
            self._ahead = RangeSet()
        return bool(self._ahead.add(start, stop))

    def _advance(self) -> list[T]:
        """Move the received count over everything that has arrived; return the items it passes."""
        ahead = self._ahead
        if ahead is None:
            return []
        start = self.received
        self.received = ahead.take_from(start)
        if not ahead:
            self._ahead = None
        waiting = self._waiting
        if waiting is None:
            return []
        numbers: Iterable[int] = range(start, self.received)
        if self.received - start > len(waiting):
            # A resume may close any count of numbers at once; the waiting items are few.
            numbers = sorted(seq for seq in waiting if seq < self.received)
        ready = [waiting.pop(seq) for seq in numbers if seq in waiting]
        if not waiting:
            self._waiting = None
        return ready

    def _skip(self, first: int, stop: int) -> list[T]:
        start = max(first, self.received)
        if start >= stop:
            return []
        if self._ahead is None:
            self._ahead = RangeSet()
        for low, high in self._ahead.add(start, stop):
            self._finish(low, high)
        return self._advance()

    def _finish(self, start: int, stop: int) -> None:
        start = max(start, self.delivered)
        if start == self.delivered and self._done is None:
            self.delivered = max(stop, self.delivered)
        elif start < stop:
            if self._done is None:
                self._done = RangeSet()
            self._done.add(start, stop)
            self.delivered = self._done.take_from(self.delivered)
            if not self._done:
                self._done = None
