"""Devices whose new subscription begins with what the topic remembers.

Such a device catches up in batches, each in one commit with the place that it has reached, so that
a stop in between neither loses nor repeats a message. It becomes a subscriber in the commit in
which nothing is left to catch up with, so it gets all messages in the order of the topic. With
terms it is one from the start, since its messages go by rank, and catches up with what was there
before.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial

import msgspec

from lasthop.clock import Micros
from lasthop.core.effects import Recall
from lasthop.core.publishing.fanout import Fanouts
from lasthop.core.session import Session
from lasthop.core.spine import Spine
from lasthop.core.topics.histories import Histories
from lasthop.core.topics.topic_history import RememberedMessage, Since
from lasthop.message import Message
from lasthop.store.commit import MemoryRow

MEMORY = "catching-up"
"""The name of a device's row in the store's table of memories."""

BATCH = 100
"""Messages that a device catches up with in one commit."""

REMARK = "from the history of the topic"

Subscribe = Callable[[Session, str, Micros], object]


class CatchUp(msgspec.Struct, array_like=True):
    """How far a device has come with what one topic remembers."""

    after: int
    """The place up to which it has everything that it wants."""
    until: int = 0
    """The place up to which it catches up; 0 if it becomes a subscriber when nothing is left."""


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(dict[str, CatchUp]).decode


class CatchingUp:
    """The devices that catch up with the history of a topic."""

    def __init__(self, spine: Spine, histories: Histories, subscribe: Subscribe) -> None:
        self._deliveries = spine.deliveries
        self._fanouts: Fanouts = spine.fanouts
        self._histories = histories
        self._subscribe = subscribe
        self._topics: dict[int, dict[str, CatchUp]] = {}
        """By device number and topic."""
        self._asked: dict[int, tuple[str, list[RememberedMessage]]] = {}
        """The topic and the messages that are being read for a device."""

    def begin(
        self, session: Session, topic: str, since: Since, now: Micros, *, at_once: bool
    ) -> None:
        """Let a device catch up with a topic; `at_once` if it is a subscriber already."""
        device = session.device
        history = self._histories.find(device.app, topic)
        last = history.last if history is not None else 0
        # What is not durable yet is among what the device gets, so count it as if it were.
        found = history.select(since, self._horizon, now) if history is not None else []
        after = found[0].place - 1 if found else last
        self._topics.setdefault(device.number, {})[topic] = CatchUp(after, last if at_once else 0)
        self._note(device.number)
        self._go_on(device.number, now)

    @property
    def _horizon(self) -> int:
        return self._deliveries.commits.open.n

    def topics(self, number: int) -> Collection[str]:
        """Return the topics with which a device is still catching up."""
        return self._topics.get(number, {}).keys()

    def stop(self, number: int, topic: str) -> bool:
        """Let a device catch up with a topic no longer; return False if it did not."""
        topics = self._topics.get(number)
        if topics is None or topics.pop(topic, None) is None:
            return False
        self._note(number)
        return True

    def removed(self, number: int) -> None:
        """Forget a device that is removed."""
        self._topics.pop(number, None)
        self._asked.pop(number, None)

    def _note(self, number: int) -> None:
        topics = self._topics.get(number)
        state = _encode(topics) if topics else b""
        if not topics:
            self._topics.pop(number, None)
        self._deliveries.commits.open.remember(number, MEMORY, state)
        self._deliveries.commits.hurry()

    def _session(self, number: int) -> Session | None:
        device = self._deliveries.registry.numbered(number)
        return None if device is None else self._deliveries.session(device)

    def _go_on(self, number: int, now: Micros) -> None:
        """Ask for the next batch of a device, or end what is done; one batch is asked for at a
        time."""
        while number not in self._asked:
            topics = self._topics.get(number)
            session = self._session(number)
            if not topics or session is None:
                return
            topic, state = next(iter(topics.items()))
            batch = self._next(session, topic, state, now)
            if not batch:
                self._end(session, topic, state, now)
                continue
            self._asked[number] = topic, batch
            state.after = batch[-1].place
            # Messages of the open commit can be read when it is durable.
            recall = Recall(number, [entry.key for entry in batch])
            self._deliveries.commits.when_durable(partial(self._recall, recall))

    def _next(
        self, session: Session, topic: str, state: CatchUp, now: Micros
    ) -> list[RememberedMessage]:
        history = self._histories.find(session.device.app, topic)
        if history is None:
            return []
        found = history.select(Since(after=state.after), self._horizon, now, most=BATCH)
        return [entry for entry in found if not state.until or entry.place <= state.until]

    def _recall(self, recall: Recall, _now: Micros) -> None:
        self._deliveries.effects.append(recall)

    def _end(self, session: Session, topic: str, state: CatchUp, now: Micros) -> None:
        del self._topics[session.device.number][topic]
        self._note(session.device.number)
        if not state.until:
            self._subscribe(session, topic, now)

    def recalled(
        self, number: int, messages: Mapping[int, Message], had: Collection[int], now: Micros
    ) -> None:
        """Begin the deliveries of a batch that was read from the store, except those that the
        device has had, and go on with the next one."""
        topic, batch = self._asked.pop(number, ("", []))
        session = self._session(number)
        state = self._topics.get(number, {}).get(topic)
        if session is not None and state is not None:  # Or else it has unsubscribed meanwhile.
            for entry in batch:
                message = messages.get(entry.key)
                # One without a place was taken back meanwhile, or the topic has forgotten it.
                if message is not None and entry.place and entry.key not in had:
                    self._deliver(session, message, now)
            self._note(number)
            self._deliveries.touch(session)
        self._go_on(number, now)

    def _deliver(self, session: Session, message: Message, now: Micros) -> None:
        if message.key in session.mailbox:
            return
        item = self._deliveries.items.get(message.key)
        if item is None:
            item = self._deliveries.own(message)
        self._fanouts.deliver(item, session.device, now, REMARK)

    def restore(self, memories: Iterable[MemoryRow]) -> None:
        """Restore what devices were catching up with."""
        for row in memories:
            if row.device and row.name == MEMORY:
                self._topics[row.device] = _decode(row.state)

    def finish(self, now: Micros) -> None:
        """Let every device go on that was catching up before a restart."""
        for number in list(self._topics):
            self._go_on(number, now)
