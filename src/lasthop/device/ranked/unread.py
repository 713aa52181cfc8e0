"""Ranked topics on the device: unread messages by topic, best first, and the reports about them.

While there is contact the gateway decides what is shown. Without contact the user reads the best
messages on the device. Either way a shown message moves from its queue to the inbox, in one change
with the report of it, and is done when the application says so.
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
    """The unread messages of ranked topics, and the reports about them that the gateway has not
    been sent yet."""

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
        """Restore a message that was kept before a restart."""
        self._kept.restore(message)
        self._enter(message, rank)

    def __contains__(self, key: int) -> bool:
        return key in self._kept

    def count(self, topic: str) -> int:
        """Return the number of unread messages of a topic."""
        queue = self._queues.get(topic)
        return 0 if queue is None else len(queue)

    def topics(self) -> list[str]:
        """Return the ranked topics that are known on this device."""
        return sorted(self._max.keys() | self._queues.keys())

    # What the gateway says.

    def keep(self, message: Message) -> None:
        """Keep a message until the user reads it."""
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
        """Set the largest number of messages that one read without contact may return."""
        self._max[topic] = most
        self._terms[topic] = DeviceFeedRow(topic, most)
        self._queue(topic).limit(most)
        self._mark.dirty = True

    def end(self, topic: str) -> None:
        """End the subscription to a topic, and drop its messages."""
        self._max.pop(topic, None)
        self._terms[topic] = DeviceFeedRow(topic, None, gone=True)
        for message in self._kept.of_topic(topic):
            self.take(message.key)
        self._queues.pop(topic, None)
        self._mark.dirty = True

    def take(self, key: int) -> Message | None:
        """Stop keeping a message; return it, or None if it was not kept."""
        message = self._kept.take(key)
        if message is not None:
            self._queue(message.topic or "").retract(Retract(key, ""))
        return message

    def rerank(self, key: int, rank: float) -> None:
        """Change the rank of a kept message."""
        message = self._kept.get(key)
        if message is not None:
            self._queue(message.topic or "").rerank(Rerank(key, rank))
            self._kept.rerank(key, rank)

    # What the user does, and time.

    def look(self, topic: str, wanted: int | None, now: Micros) -> Look:
        """Return the question to the gateway for the best messages of a topic."""
        self.expire(now)
        read = self._queue(topic).ask(wanted, now)
        return Look(wanted, read.queue_size, tuple(held.key for held in read.client_events))

    def read(self, topic: str, wanted: int | None, now: Micros) -> list[Message]:
        """Return the best messages of a topic on this device; the gateway will be told of the
        read."""
        self.expire(now)
        queue = self._queue(topic)
        keys = queue.read_offline(wanted, now)
        queue.contact()
        self._reads.setdefault(topic, []).append(OfflineReading(now // MILLISECOND, wanted, keys))
        self._mark.dirty = True
        return [message for key in keys if (message := self.take(key)) is not None]

    def expire(self, now: Micros) -> list[Message]:
        """Drop the messages that are past their deadline, and return them."""
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
        """Return the time at which `expire` has something to do; None if there is none."""
        while self._expiries and self._expiries[0][1] not in self._kept:
            heappop(self._expiries)
        return self._expiries[0][0] if self._expiries else None

    # What the gateway hears.

    def had(self, keys: Iterable[int]) -> None:
        """Report that the application already got messages that the gateway considers unread."""
        self._had += keys
        self._mark.dirty = True

    def still_unread(self, keys: Iterable[int]) -> None:
        """Report that messages which should have been shown are still unread, because nobody waited
        for them any more."""
        self._unread += keys
        self._mark.dirty = True

    def lapsed(self, key: int) -> None:
        """Report that a message was too late to be shown."""
        self._lapsed.append(key)
        self._mark.dirty = True

    def reports(self) -> list[tuple[str | None, Report]]:
        """Return the reports for the gateway, by topic where they have one, and forget them."""
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
        """Return all kept messages by topic, for a gateway that does not know them."""
        by_topic: dict[str, list[HeldItem]] = {}
        for queue_topic, queue in self._queues.items():
            for held in queue.all():
                expires_at = None if held.expires_at is None else held.expires_at // MILLISECOND
                item = HeldItem(held.key, held.rank, expires_at)
                by_topic.setdefault(queue_topic, []).append(item)
        return tuple((topic, tuple(items)) for topic, items in by_topic.items())

    def collect(self, change: Change) -> None:
        """Put the changes of the unread messages into `change`."""
        self._kept.collect(change)
        change.feeds, self._terms = list(self._terms.values()), {}
