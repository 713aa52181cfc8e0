"""Ranked topics on the device: unread messages by topic, best first, and what the gateway has to
hear of them.

While there is contact the gateway decides what is shown. Without it the user reads the best of what
is here. Either way a message that is shown leaves its queue for the inbox, in one change with the
report of it, and is done when the application says so.
"""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heappop, heappush

from lasthop.clock import MILLISECOND, Micros
from lasthop.decision.volume.device_queue import DeviceQueue
from lasthop.decision.volume.effects import Forward, Rerank, Retract
from lasthop.device.change import Change, DeviceFeedRow
from lasthop.device.change_mark import ChangeMark
from lasthop.device.kept import KeptMessages
from lasthop.device.message import Message
from lasthop.wire.hop.feeds import HeldItem, Inventory, Look, OfflineReading, Report


class UnreadMessages:
    """What is kept unread, and what is to be reported."""

    def __init__(
        self, kept: KeptMessages, feeds: Iterable[DeviceFeedRow], mark: ChangeMark
    ) -> None:
        self._kept = kept
        self._mark = mark
        self._queues: dict[str, DeviceQueue] = {}
        self._expiries: list[tuple[Micros, int]] = []
        self._max = {row.topic: row.max for row in feeds}
        # For the next change.
        self._terms: dict[str, DeviceFeedRow] = {}
        # For the gateway.
        self._reads: dict[str, list[OfflineReading]] = {}
        self._had: list[int] = []
        self._lapsed: list[int] = []
        self._unread: list[int] = []

    def restore(self, message: Message, rank: float) -> None:
        """A message that was kept before a restart."""
        self._kept.restore(message)
        self._enter(message, rank)

    def __contains__(self, key: int) -> bool:
        return key in self._kept

    def count(self, topic: str) -> int:
        """Unread messages of a topic."""
        queue = self._queues.get(topic)
        return 0 if queue is None else len(queue)

    def topics(self) -> list[str]:
        """The ranked topics that are known here."""
        return sorted(self._max.keys() | self._queues.keys())

    # What the gateway says.

    def keep(self, message: Message) -> None:
        """A message is here until somebody reads it."""
        self._kept.keep(message)
        self._enter(message, message.rank)

    def _enter(self, message: Message, rank: float) -> None:
        queue = self._queue(message.topic or "")
        queue.forward(Forward(message.key, ""), rank=rank, expires_at=message.deadline)
        if message.deadline is not None:
            heappush(self._expiries, (message.deadline, message.key))

    def _queue(self, topic: str) -> DeviceQueue:
        queue = self._queues.get(topic)
        if queue is None:
            queue = self._queues[topic] = DeviceQueue(max_per_read=self._max.get(topic))
        return queue

    def set_max(self, topic: str, most: int | None) -> None:
        """What a read without contact may show at most."""
        self._max[topic] = most
        self._terms[topic] = DeviceFeedRow(topic, most)
        self._queue(topic).limit(most)
        self._mark.dirty = True

    def end(self, topic: str) -> None:
        """The subscription is over: nothing of it is kept."""
        self._max.pop(topic, None)
        self._terms[topic] = DeviceFeedRow(topic, None, gone=True)
        for message in self._kept.of_topic(topic):
            self.take(message.key)
        self._queues.pop(topic, None)
        self._mark.dirty = True

    def take(self, key: int) -> Message | None:
        """Keep it no longer."""
        message = self._kept.take(key)
        if message is not None:
            self._queue(message.topic or "").retract(Retract(key, ""))
        return message

    def rerank(self, key: int, rank: float) -> None:
        """It is worth more, or less."""
        message = self._kept.get(key)
        if message is not None:
            self._queue(message.topic or "").rerank(Rerank(key, rank))
            self._kept.rerank(key, rank)

    # What the user does, and time.

    def look(self, topic: str, wanted: int | None, now: Micros) -> Look:
        """What to ask the gateway."""
        self.expire(now)
        read = self._queue(topic).ask(wanted, now)
        return Look(wanted, read.queue_size, tuple(held.key for held in read.client_events))

    def read(self, topic: str, wanted: int | None, now: Micros) -> list[Message]:
        """The best of what is here; the gateway will hear of it."""
        self.expire(now)
        queue = self._queue(topic)
        keys = queue.read_offline(wanted, now)
        queue.contact()
        self._reads.setdefault(topic, []).append(OfflineReading(now // MILLISECOND, wanted, keys))
        self._mark.dirty = True
        return [message for key in keys if (message := self.take(key)) is not None]

    def expire(self, now: Micros) -> list[Message]:
        """Let go what is past its deadline."""
        gone: list[Message] = []
        while self._expiries and self._expiries[0][0] <= now:
            deadline, key = heappop(self._expiries)
            message = self._kept.get(key)
            if message is not None and message.deadline == deadline:
                self.take(key)
                self.lapsed(key)
                gone.append(message)
        return gone

    def next_expiry(self) -> Micros | None:
        """When to look again."""
        while self._expiries and self._expiries[0][1] not in self._kept:
            heappop(self._expiries)
        return self._expiries[0][0] if self._expiries else None

    # What the gateway hears.

    def had(self, keys: Iterable[int]) -> None:
        """The application has had messages that the gateway thinks are unread."""
        self._had += keys
        self._mark.dirty = True

    def still_unread(self, keys: Iterable[int]) -> None:
        """These were to be shown, and nobody was there to see them."""
        self._unread += keys
        self._mark.dirty = True

    def lapsed(self, key: int) -> None:
        """It was to be shown, and is too late."""
        self._lapsed.append(key)
        self._mark.dirty = True

    def reports(self) -> list[tuple[str | None, Report]]:
        """What is to be said, by topic where it has one; said once."""
        reads, self._reads = self._reads, {}
        said: list[tuple[str | None, Report]] = [
            (topic, Report(reads=tuple(of_topic))) for topic, of_topic in reads.items()
        ]
        if self._had or self._lapsed or self._unread:
            rest = Report(
                had=tuple(self._had), lapsed=tuple(self._lapsed), unread=tuple(self._unread)
            )
            said.append((None, rest))
            self._had, self._lapsed, self._unread = [], [], []
        return said

    def inventory(self) -> Inventory:
        """Everything that is kept."""
        by_topic: dict[str, list[HeldItem]] = {}
        for queue_topic, queue in self._queues.items():
            for held in queue.all():
                expires_at = None if held.expires_at is None else held.expires_at // MILLISECOND
                item = HeldItem(held.key, held.rank, expires_at)
                by_topic.setdefault(queue_topic, []).append(item)
        return tuple((topic, tuple(items)) for topic, items in by_topic.items())

    def collect(self, change: Change) -> None:
        """Put into `change` what has to survive."""
        self._kept.collect(change)
        change.feeds, self._terms = list(self._terms.values()), {}
