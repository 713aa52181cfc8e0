"""A shared queue: messages wait in it, and go round the consumers that are in contact and have
room."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable

from lasthop.clock import Micros
from lasthop.core.deliveries import Deliveries
from lasthop.core.delivery import Item
from lasthop.core.groups.decider import Settled
from lasthop.core.groups.queue_entry import QueueEntry
from lasthop.core.groups.records import GroupRecord
from lasthop.core.lifecycle import PENDING
from lasthop.core.publishing.fanout import Fanouts
from lasthop.core.session import Session
from lasthop.errors import QuotaExceeded


class SharedQueue:
    """One queue of an app, with its waiting entries and its consumers."""

    def __init__(
        self,
        deliveries: Deliveries,
        fanouts: Fanouts,
        record: GroupRecord,
        *,
        stir: Callable[[SharedQueue], None],
        settled: Settled,
    ) -> None:
        """Build a queue; `stir` is called when an entry may be given to a consumer."""
        self.deliveries = deliveries
        self.fanouts = fanouts
        self.record = record
        self.settled = settled
        self.stirred = False
        self._stir = stir
        self._waiting: list[tuple[int, int, QueueEntry]] = []
        """The waiting entries by priority, then in order of acceptance; ended ones stay until their
        turn."""
        self._aside: list[QueueEntry] = []
        """Entries that no consumer in contact can have."""
        self.length = 0
        """Number of entries that wait for a consumer."""
        self.consumers: dict[int, Session] = {}
        self._ring: deque[Session] = deque()
        """Consumers that may have room; the one whose turn is next comes first."""
        self._ringed: set[Session] = set()
        self._hands: dict[Session, dict[int, QueueEntry]] = {}
        """The entries that each consumer has, by message key."""

    def check_room(self, source: str, more: int) -> None:
        """Raise an error if the queue is too full to take so many more messages of a source."""
        most = self.deliveries.limits.queue_room(source)
        if self.length + more > most:
            raise QuotaExceeded("the queue is full", retry_after=60, limit=most)

    def accept(self, item: Item, now: Micros) -> QueueEntry:
        """Add a new message to the queue, and return its entry."""
        entry = QueueEntry(self, item)
        entry.begin(now)
        return entry

    def add(self, entry: QueueEntry) -> None:
        """Let an entry wait for a consumer; an entry that comes back is placed before those
        accepted later."""
        entry.waiting = True
        self.length += 1
        message = entry.item.message
        heapq.heappush(self._waiting, (-message.priority, message.key, entry))
        self._stir(self)

    def gone(self, entry: QueueEntry) -> None:
        """Count an entry as no longer waiting; it is removed when its turn comes."""
        if entry.waiting:
            entry.waiting = False
            self.length -= 1

    # Consumers.

    def join(self, session: Session) -> None:
        """Add a consumer, and look again at the entries that no other consumer can have."""
        self.consumers[session.device.number] = session
        self._look_again()
        self.look_at(session)

    def _look_again(self) -> None:
        aside, self._aside = self._aside, []
        for entry in aside:
            if entry.waiting:
                entry.waiting = False
                self.length -= 1
                self.add(entry)

    def leave(self, session: Session, reason: str, now: Micros) -> None:
        """Remove a consumer. Entries that have not left for it go to others at once, and the rest
        when the queue's patience is over."""
        self.consumers.pop(session.device.number, None)
        self.lost(session, reason, now)

    def lost(self, session: Session, reason: str, now: Micros) -> None:
        """Take back the entries that have not left for a consumer that is no longer in contact."""
        for entry in list(self._hands.get(session, {}).values()):
            # What has left stays with the consumer for the queue's patience: it may be working on
            # it.
            if entry.active is not None and entry.active.state is PENDING:
                entry.take_back(reason, now)

    def remove(self, session: Session, reason: str, now: Micros) -> None:
        """Remove a consumer whose device is removed, and take back all entries that it has."""
        self.consumers.pop(session.device.number, None)
        for entry in list(self._hands.get(session, {}).values()):
            entry.take_back(reason, now)

    def look_at(self, session: Session) -> None:
        """Offer entries to a consumer from now on, because it may have room."""
        if session.greeted and session not in self._ringed:
            self._ringed.add(session)
            self._ring.append(session)
            if self._waiting:
                self._stir(self)

    def took(self, session: Session, entry: QueueEntry) -> None:
        """Note that a consumer has an entry."""
        self._hands.setdefault(session, {})[entry.item.message.key] = entry

    def returned(self, session: Session, entry: QueueEntry) -> None:
        """Note that a consumer no longer has an entry."""
        hands = self._hands.get(session)
        if hands is not None:
            hands.pop(entry.item.message.key, None)
            if not hands:
                del self._hands[session]
        self.look_at(session)

    @property
    def busy(self) -> bool:
        """Whether an entry waits in the queue, or a consumer has one."""
        return self.length > 0 or bool(self._hands)

    def holding(self, session: Session) -> int:
        """Return the number of entries that a consumer has."""
        return len(self._hands.get(session, ()))

    def _has_room(self, session: Session, size: int) -> bool:
        return (
            session.greeted
            and session.device.number in self.consumers
            and self.holding(session) < self.record.prefetch
            and session.has_credit(size)
            and len(session.mailbox) < self.deliveries.limits.open_per_device
        )

    # Giving entries to consumers.

    def offer(self, now: Micros) -> None:
        """Give waiting entries to consumers that have room, each in turn.

        Every step gives an entry away, or takes a consumer out of the ring until something changes
        for it: so the cost grows only with the number of entries that move.
        """
        while self._ring and (entry := self._first()) is not None:
            session = self._next(entry)
            if session is None:
                if not self._ring:
                    return
                # All consumers in contact have had it.
                heapq.heappop(self._waiting)
                self._aside.append(entry)
                continue
            heapq.heappop(self._waiting)
            self.gone(entry)
            self.took(session, entry)
            entry.give(session, now)

    def _first(self) -> QueueEntry | None:
        while self._waiting:
            entry = self._waiting[0][2]
            if entry.waiting:
                return entry
            heapq.heappop(self._waiting)
        return None

    def _next(self, entry: QueueEntry) -> Session | None:
        """Return the consumer whose turn it is; None if those that are left in the ring cannot have
        this entry."""
        size = entry.item.size
        passed = 0
        while self._ring and passed < len(self._ring):
            session = self._ring[0]
            if not self._has_room(session, size):
                self._ring.popleft()
                self._ringed.discard(session)
            elif entry.spent is not None and session.device.number in entry.spent:
                self._ring.rotate(-1)
                passed += 1
            else:
                self._ring.rotate(-1)
                return session
        return None

    def another(self, entry: QueueEntry, but: Session) -> bool:
        """Return whether another consumer could have the entry now."""
        for session in list(self._ring):
            if session is but:
                continue
            if self._has_room(session, entry.item.size):
                if entry.spent is None or session.device.number not in entry.spent:
                    return True
            else:
                self._ring.remove(session)
                self._ringed.discard(session)
        return False
