"""What all topics remember: their rows in the store, their bounds, and who listens to them.

A message enters the history of its topic in the commit that accepts it; a scheduled one when its
time has come. Entries leave one by one, the oldest as newer ones come, so that no message costs
more than a look at the ends of a list. Bodies stay in the store.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable
from dataclasses import replace

import msgspec

from lasthop.clock import MINUTE, Micros
from lasthop.core.deliveries import Deliveries
from lasthop.core.effects import Appeared
from lasthop.core.limits import HistoryBounds
from lasthop.core.names import check_topic
from lasthop.core.timers import Timers
from lasthop.core.topics.topic_history import MessageHistory, RememberedMessage, check_bounds
from lasthop.errors import QuotaExceeded
from lasthop.message import Message, TargetKind
from lasthop.store.commit import MemoryRow
from lasthop.store.remembered import HistoryChanges, RememberedRow
from lasthop.wire.hop.frames import FEED_TYPE

MEMORY = "history:"
"""The prefix of an app and a topic in the store's table of memories, where bounds are kept."""

MOST_BOUNDS = 10_000
"""Topics and apps that may have bounds of their own: all are kept in memory."""

SWEEP = MINUTE
"""The time between two looks at topics to which nothing is published any more."""

SWEPT = 500
"""Topics that are looked at in one sweep, and the messages that it removes at most."""

CACHE_HEADER = "cache"
"""The header of a message that its topic is not to remember, with the value `no`."""

_decode = msgspec.json.Decoder(HistoryBounds).decode


class Histories:
    """The histories of all topics, by app and name."""

    def __init__(self, deliveries: Deliveries) -> None:
        self._deliveries = deliveries
        self._commits = deliveries.commits
        self._topics: dict[tuple[str, str], MessageHistory] = {}
        self._entries: dict[int, RememberedMessage] = {}
        self._bounds: dict[tuple[str, str], HistoryBounds] = {}
        """Bounds that were set, by app and topic; those of an app have no topic."""
        self._timers: Timers[RememberedMessage] = Timers()
        self._listened: Counter[tuple[str, str]] = Counter()
        self._fresh: list[tuple[Appeared, RememberedMessage | None]] = []
        self._sweeping: deque[MessageHistory] = deque()
        self._next_sweep: Micros | None = None

    # Bounds.

    def bounds(self, app: str, topic: str) -> HistoryBounds:
        """Return the bounds of a topic: its own, those of its app, or those of the settings."""
        bounds = self._bounds
        if not bounds:
            return self._deliveries.limits.history
        return bounds.get((app, topic)) or bounds.get((app, "")) or self._deliveries.limits.history

    def set_bounds(self, app: str, topic: str, bounds: HistoryBounds | None, now: Micros) -> None:
        """Give a topic bounds of its own, or, without a topic, an app; None takes them away. What
        is beyond new bounds leaves by the next sweep."""
        at = app, check_topic(topic) if topic else ""
        if bounds is None:
            self._bounds.pop(at, None)
        else:
            check_bounds(bounds)
            if at not in self._bounds and len(self._bounds) >= MOST_BOUNDS:
                raise QuotaExceeded("too many bounds", retry_after=60, limit=MOST_BOUNDS)
            self._bounds[at] = bounds
        state = b"" if bounds is None else msgspec.json.encode(bounds)
        self._commits.open.remember(0, f"{MEMORY}{app}/{topic}", state)
        self._commits.hurry()
        history = self._topics.get(at)
        if history is not None:
            self._trim(history, SWEPT, now)

    # Messages.

    def accepted(self, message: Message, now: Micros) -> bool:
        """Remember a message of a topic, now or when its time comes; return False if the topic does
        not remember it."""
        target = message.target
        if target.kind is not TargetKind.TOPIC or message.content_type == FEED_TYPE:
            return False
        app, topic = message.app, target.name
        history = self._topics.get((app, topic))
        if message.replace_key is not None and history is not None:
            older = history.replaceable.get((message.source, message.replace_key))
            if older is not None:
                self._remove(older)
        due = message.deliver_after
        later = due is not None and due > now
        entry = self._entry(message, now) if self._keeps(message) else None
        if entry is None:
            if not later:
                self._announce(app, topic, message.key, None, message)
            return False
        if later:
            assert due is not None
            entry.topic.scheduled[entry.key] = entry
            self._timers.add(due, entry)
        else:
            entry.topic.append(entry, self._commits.open.n)
            self._announce(app, topic, message.key, entry, message)
        self._write(entry)
        self._trim(entry.topic, SWEPT, now)
        return True

    def _keeps(self, message: Message) -> bool:
        if message.stream or self.bounds(message.app, message.target.name).off:
            return False
        if message.headers and dict(message.headers).get(CACHE_HEADER) == "no":
            return False
        if len(self._entries) < self._deliveries.limits.remembered:
            return True
        # All topics together are full: a topic goes on with what it has.
        history = self._topics.get((message.app, message.target.name))
        oldest = history.oldest if history is not None else None
        if oldest is None:
            return False
        self._remove(oldest)
        return True

    def _entry(self, message: Message, now: Micros) -> RememberedMessage:
        topic = message.target.name
        history = self._topic(message.app, topic, now)
        at = max(now, message.deliver_after or now)
        expires = message.deliver_before or 0
        entry = RememberedMessage(history, message.key, len(message.body), at, expires)
        if message.replace_key is not None:
            entry.replaces = message.source, message.replace_key
            history.replaceable[entry.replaces] = entry
        self._entries[entry.key] = entry
        return entry

    def _topic(self, app: str, topic: str, now: Micros) -> MessageHistory:
        history = self._topics.get((app, topic))
        if history is None:
            history = self._topics[app, topic] = MessageHistory(app, topic)
            self._sweeping.append(history)
            if self._next_sweep is None:
                self._next_sweep = now + SWEEP
        return history

    def _write(self, entry: RememberedMessage) -> None:
        source, replace_key = entry.replaces or ("", None)
        self._commits.open.of(HistoryChanges).rows[entry.key] = RememberedRow(
            entry.key,
            entry.topic.app,
            entry.topic.name,
            entry.place,
            entry.size,
            entry.at,
            entry.expires,
            replace_key,
            source,
        )

    def withdrawn(self, app: str, key: int) -> None:
        """Forget a message that its publisher has cancelled or replaced."""
        entry = self._entries.get(key)
        if entry is not None and entry.topic.app == app:
            self._remove(entry)

    def _remove(self, entry: RememberedMessage) -> None:
        entry.topic.remove(entry)
        del self._entries[entry.key]
        self._commits.open.of(HistoryChanges).forgotten.append(entry.key)

    def _trim(self, history: MessageHistory, most: int, now: Micros) -> int:
        """Remove the oldest entries that are beyond the bounds, and return their number."""
        bounds = self.bounds(history.app, history.name)
        removed = 0
        while removed < most and (entry := history.excess(bounds, now)) is not None:
            self._remove(entry)
            removed += 1
        return removed

    # Time.

    def next_due(self) -> Micros | None:
        """Return when a scheduled message appears, or old ones have to be looked for."""
        due = self._timers.next_due()
        if due is None or self._next_sweep is None:
            return due if self._next_sweep is None else self._next_sweep
        return min(due, self._next_sweep)

    def wake(self, now: Micros) -> None:
        """Let scheduled messages appear whose time has come, and remove what is old."""
        due = self._timers.next_due()
        if due is not None and due <= now:
            for entry in self._timers.due(now):
                self._appear(entry, now)
        if self._next_sweep is not None and self._next_sweep <= now:
            self._sweep(now)

    def _appear(self, entry: RememberedMessage, now: Micros) -> None:
        history = entry.topic
        if history.scheduled.pop(entry.key, None) is None:
            return  # It was cancelled or replaced meanwhile.
        if 0 < entry.expires <= now:
            self._remove(entry)
            return
        history.append(entry, self._commits.open.n)
        self._write(entry)
        item = self._deliveries.items.get(entry.key)
        message = item.message if item is not None and item.resident else None
        self._announce(history.app, history.name, entry.key, entry, message)
        self._trim(history, SWEPT, now)
        self._commits.hurry()

    def _sweep(self, now: Micros) -> None:
        left = SWEPT
        for _ in range(min(len(self._sweeping), SWEPT)):
            history = self._sweeping.popleft()
            left -= self._trim(history, left, now)
            if history.empty:
                del self._topics[history.app, history.name]
            else:
                self._sweeping.append(history)
            if left <= 0:
                break
        self._next_sweep = now + (SWEEP if left > 0 else SWEEP // 60) if self._topics else None

    # Readers.

    def find(self, app: str, topic: str) -> MessageHistory | None:
        """Return the history of a topic; None if it remembers nothing."""
        return self._topics.get((app, topic))

    @property
    def remembered(self) -> int:
        """The number of messages that all topics remember, scheduled ones included."""
        return len(self._entries)

    @property
    def topics(self) -> int:
        """The number of topics that remember anything."""
        return len(self._topics)

    def listen(self, app: str, topic: str) -> None:
        """Report what appears in a topic as `Appeared` effects, until `unlisten` was called as
        often as `listen`."""
        self._listened[app, topic] += 1

    def unlisten(self, app: str, topic: str) -> None:
        """End one caller's interest in what appears in a topic."""
        self._listened[app, topic] -= 1
        if self._listened[app, topic] <= 0:
            del self._listened[app, topic]

    def _announce(
        self,
        app: str,
        topic: str,
        key: int,
        entry: RememberedMessage | None,
        message: Message | None,
    ) -> None:
        if self._listened and (app, topic) in self._listened:
            place = entry.place if entry is not None else 0
            self._fresh.append((Appeared(app, topic, key, place, message), entry))

    def before_commit(self) -> None:
        """Let what appeared be reported once the open commit is durable."""
        if self._fresh:
            fresh, self._fresh = self._fresh, []
            self._commits.when_durable(lambda _: self._report(fresh))

    def _report(self, fresh: list[tuple[Appeared, RememberedMessage | None]]) -> None:
        items = self._deliveries.items
        for appeared, entry in fresh:
            if entry is not None and not entry.place:
                continue  # It was taken back before anybody was shown it.
            item = items.get(appeared.key)
            evicted = item is not None and not item.resident
            self._deliveries.effects.append(
                replace(appeared, message=None) if evicted else appeared
            )

    # After a restart.

    def restore(
        self, rows: Iterable[RememberedRow], memories: Iterable[MemoryRow], now: Micros
    ) -> None:
        """Restore what topics remember, and their bounds."""
        for memory in memories:
            if memory.device == 0 and memory.name.startswith(MEMORY):
                app, _, topic = memory.name.removeprefix(MEMORY).partition("/")
                self._bounds[app, topic] = _decode(memory.state)
        for row in sorted(rows, key=lambda row: row.place):
            history = self._topic(row.app, row.topic, now)
            entry = RememberedMessage(history, row.message, row.size, row.at, row.expires)
            if row.replace_key is not None:
                entry.replaces = row.source, row.replace_key
                history.replaceable[entry.replaces] = entry
            self._entries[entry.key] = entry
            if row.place:
                history.restore(entry, row.place)
            else:
                history.scheduled[entry.key] = entry
                self._timers.add(row.at, entry)
