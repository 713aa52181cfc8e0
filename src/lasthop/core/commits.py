"""The open commit: the changes since the last commit was taken, and the effects that wait for it.

Every change is noted here together with the event that records it. The driver takes the commit,
makes it durable and says so; only then are the effects let go that depend on it. While one commit
is being written, the next one collects changes: that is all of group commit. Only a large next
commit is handed over before the first is durable, so that the disk need not wait for a busy event
loop.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Protocol

import msgspec

from lasthop.clock import MILLISECOND, Micros
from lasthop.core.delivery import Delivery
from lasthop.core.lifecycle import STATE_NAMES
from lasthop.core.session import Session
from lasthop.events import SCHEMA_VERSION, Event, Kind
from lasthop.message import Message
from lasthop.store.commit import Commit

LAZY_DELAY = 20 * MILLISECOND
"""How long a change that nobody waits for may stay in memory. A crash in between is healed by the
device, which says again what it has; the delay lets an idle gateway write once instead of three
times for a message."""

_encode_lines = msgspec.json.Encoder().encode_lines

TRANSMITTED = Kind.TRANSMITTED


class SelfWriting(Protocol):
    """An object that has changed and can write its rows into a commit."""

    def write(self, commit: Commit) -> None:
        """Write the object's changed rows into a commit."""
        ...


class Commits:
    """Collects one commit at a time and holds back the effects that depend on it."""

    def __init__(
        self,
        *,
        gateway: str,
        boot: int,
        next_commit: int,
        next_event: int,
        last_key: int = 0,
        large: int = 100,
    ) -> None:
        self._gateway = gateway
        self._boot = boot
        self._large = large
        self._next_event = next_event
        self._open = Commit(n=next_commit, first_event=next_event)
        self._events: list[Event] = []
        self._dirty_deliveries: list[Delivery] = []
        self._dirty_sessions: list[Session] = []
        self._noted: list[SelfWriting] = []
        self._departed: deque[tuple[Event, Delivery]] = deque()
        """Transmissions that are not in the log yet, oldest first; some have been logged since."""
        self._waiting: deque[tuple[int, Callable[[Micros], None]]] = deque()
        self._taken = next_commit - 1
        self._durable = next_commit - 1
        self.durable_key = last_key
        """All messages up to this key are durable."""
        self._keys_taken: deque[tuple[int, int]] = deque()
        self._urgent = False
        self._due: Micros | None = None

    @property
    def open(self) -> Commit:
        """The open commit, for callers that add rows to it directly."""
        return self._open

    @property
    def horizon(self) -> int:
        """The number of the commit on which every answer and event so far depends."""
        return self._taken if self._empty else self._open.n

    @property
    def durable(self) -> int:
        """The number of the newest durable commit."""
        return self._durable

    @property
    def _empty(self) -> bool:
        noted = self._events or self._dirty_sessions or self._noted
        return not noted and self._open.empty

    def touch_session(self, session: Session, now: Micros) -> None:
        """Write this session with the open commit."""
        if not session.dirty:
            session.dirty = True
            self._dirty_sessions.append(session)
            if self._due is None:
                self._due = now + LAZY_DELAY

    def note(self, writer: SelfWriting) -> None:
        """Let an object write its rows into the open commit, when that commit is taken."""
        self._noted.append(writer)

    def add_message(self, message: Message) -> None:
        """Write this message with the open commit."""
        self._open.messages.append(message)

    def record(
        self, kind: Kind, now: Micros, session: Session | None = None, **facts: object
    ) -> int:
        """Record an event that is not about one delivery, and return its number."""
        event = Event(SCHEMA_VERSION, self._gateway, self._boot, self._next_event, now, kind)
        self._next_event += 1
        self._events.append(event)
        if session is not None:
            event.app = session.device.app
            event.dev = session.device.name
            event.dn = session.events
            session.events += 1
            self.touch_session(session, now)
        for name, value in facts.items():
            setattr(event, name, value)
        if self._due is None:
            self._due = now + LAZY_DELAY
        return event.n

    def record_step(self, delivery: Delivery, kind: Kind, now: Micros, reason: str) -> Event:
        """Record the next event of a delivery, and write the delivery's row.

        The event is encoded when the commit is taken: until then the caller may add facts to it.
        """
        if delivery.departure is not None:
            self._record_departure(delivery, delivery.departure, now)
        session = delivery.session
        device = session.device
        event = Event(
            SCHEMA_VERSION,
            self._gateway,
            self._boot,
            self._next_event,
            now,
            kind,
            device.app,
            device.name,
            session.events,
            delivery.item.message.key,
            delivery.last_event,
            STATE_NAMES[delivery.state],
            reason,
        )
        self._append(event, delivery, session, now)
        return event

    def departed(self, delivery: Delivery, now: Micros, reason: str) -> Event:
        """Record that a delivery has left, but later: with its next event, or when `LAZY_DELAY` is
        over.

        Nothing waits for this event, and most deliveries are acknowledged by then: that saves one
        write of their row. A crash in between loses the event; a restart assumes that the delivery
        may have left.
        """
        if delivery.departure is not None:
            self._record_departure(delivery, delivery.departure, now)
        device = delivery.session.device
        event = Event(
            SCHEMA_VERSION,
            self._gateway,
            self._boot,
            -1,
            now,
            TRANSMITTED,
            device.app,
            device.name,
            -1,
            delivery.item.message.key,
            -1,
            STATE_NAMES[delivery.state],
            reason,
        )
        delivery.departure = event
        self._departed.append((event, delivery))
        return event

    def _record_departure(self, delivery: Delivery, event: Event, now: Micros) -> None:
        session = delivery.session
        delivery.departure = None
        event.n = self._next_event
        event.dn = session.events
        event.prev = delivery.last_event
        self._append(event, delivery, session, now)

    def _append(self, event: Event, delivery: Delivery, session: Session, now: Micros) -> None:
        """Append an event that is the newest of its delivery, of its device and of the log."""
        delivery.last_event = self._next_event
        self._next_event += 1
        self._events.append(event)
        session.events += 1
        if not session.dirty:
            self.touch_session(session, now)
        if not delivery.dirty:
            delivery.dirty = True
            self._dirty_deliveries.append(delivery)

    def _record_departures(self, now: Micros, until: Micros) -> None:
        """Log the transmissions up to `until` of deliveries that have had no other event since."""
        departed = self._departed
        while departed and departed[0][0].t <= until:
            event, delivery = departed.popleft()
            if delivery.departure is event:
                self._record_departure(delivery, event, now)
                self._due = now

    def when_durable(self, action: Callable[[Micros], None]) -> None:
        """Call `action` once everything that has been noted so far is durable."""
        self._urgent = True
        self._waiting.append((self.horizon, action))

    @property
    def idle(self) -> bool:
        """Whether nothing waits to be written, and nothing is being written."""
        return self._empty and not self._unrecorded() and self._taken == self._durable

    def _unrecorded(self) -> bool:
        """Return whether a transmission is not in the log yet."""
        departed = self._departed
        while departed and departed[0][1].departure is not departed[0][0]:
            departed.popleft()
        return bool(departed)

    def hurry(self) -> None:
        """Let the open commit be taken at once."""
        self._urgent = True

    def next_due(self) -> Micros | None:
        """Return when the open commit has to be taken; 0 for at once, None if there is no need."""
        if self._urgent:
            return 0
        if self._unrecorded():
            recorded = self._departed[0][0].t + LAZY_DELAY
            return recorded if self._due is None else min(self._due, recorded)
        return self._due

    def take(self, now: Micros, *, flush: bool = False) -> Commit | None:
        """Return the open commit, and begin a new one, if something waits for it or it has waited
        long enough, and the disk is free or will be soon; otherwise None."""
        being_written = self._taken - self._durable
        # One commit is written while one is handed over at most, and that only if it is large: a
        # small one gains more by collecting (see `Limits.large_commit`).
        if being_written > 1 or (being_written and len(self._events) < self._large):
            return None
        if self._departed:
            last = self._departed[-1][0].t if flush else now - LAZY_DELAY
            self._record_departures(now, last)
        if not (flush or self._urgent or (self._due is not None and self._due <= now)):
            return None
        self._urgent = False
        self._due = None
        if self._empty:
            return None
        commit = self._open
        commit.events += _encode_lines(self._events)
        commit.event_count = len(self._events)
        self._events = []
        for delivery in self._dirty_deliveries:
            delivery.dirty = False
        commit.deliveries = [delivery.row() for delivery in self._dirty_deliveries]
        for session in self._dirty_sessions:
            session.dirty = False
            commit.sessions[session.device.number] = session.row()
        self._dirty_deliveries = []
        self._dirty_sessions = []
        if self._noted:
            for writer in self._noted:
                writer.write(commit)
            self._noted = []
        if commit.messages:
            self._keys_taken.append((commit.n, commit.messages[-1].key))
        self._taken = commit.n
        self._open = Commit(n=commit.n + 1, first_event=self._next_event)
        return commit

    def written(self, n: int) -> None:
        """Note that commit `n`, and every one before it, is durable."""
        self._durable = n
        while self._keys_taken and self._keys_taken[0][0] <= n:
            self.durable_key = self._keys_taken.popleft()[1]

    def let_go(self, now: Micros) -> None:
        """Call the actions that waited for commits that are durable by now."""
        waiting = self._waiting
        while waiting and waiting[0][0] <= self._durable:
            waiting.popleft()[1](now)
