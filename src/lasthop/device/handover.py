"""The order in which messages are handed to the application, and how many at a time.

A message is marked as offered by a commit before it is handed over, so that after a crash exactly
the messages that the application may have seen are marked as redelivered.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable

from lasthop.clock import Micros
from lasthop.device.message import NO_POSITION, Message


class HandoverQueue:
    """The messages that wait for the application, in order."""

    __slots__ = ("_casual", "_late", "_offered", "_outstanding", "_prefetch", "_waiting", "offered")

    def __init__(self, *, prefetch: int, offered: int, late: Callable[[Message], None]) -> None:
        """Restore the queue; `late` is called with messages whose deadline has passed when their
        turn comes."""
        self._prefetch = prefetch
        self._late = late
        self._waiting: deque[Message] = deque()
        self._offered: deque[Message] = deque()
        """Messages to be handed over as soon as their offer is durable."""
        self._casual: deque[Message] = deque()
        """Best-effort messages, which need no commit."""
        self._outstanding = 0
        """The number of messages that were offered and are not finished."""
        self.offered = offered
        """The position below which messages may have been seen by the application."""

    def add(self, message: Message) -> None:
        """Put a message at the end of the queue."""
        if message.position == NO_POSITION:
            self._casual.append(message)
        elif message.offered:
            self._outstanding += 1
            self._offered.append(message)
        else:
            self._waiting.append(message)

    def hand(self, message: Message) -> None:
        """Mark a message as offered before its turn, because the application asked for it."""
        message.offered = True
        self._outstanding += 1
        self.offered = max(self.offered, message.position + 1)

    @property
    def casual(self) -> int:
        """The number of best-effort messages that wait."""
        return len(self._casual)

    def finished(self, message: Message) -> None:
        """Note that the application is done with a message, or never gets it."""
        if message.offered:
            self._outstanding -= 1

    def offer(self) -> None:
        """Mark as many messages as the prefetch limit allows as offered to the application; the
        marks become durable with the next change."""
        while self._waiting and self._outstanding < self._prefetch:
            message = self._waiting.popleft()
            if not message.finished:
                message.offered = True
                self._outstanding += 1
                self._offered.append(message)
                self.offered = max(self.offered, message.position + 1)

    def ready(self, now: Micros, durable: int) -> list[Message]:
        """Return the messages to hand over now: the offered messages at positions below
        `durable`."""
        messages = self._in_time(self._casual, now)
        offered = self._offered
        due: deque[Message] = deque()
        while offered and offered[0].position < durable:
            due.append(offered.popleft())
        messages += self._in_time(due, now)
        return messages

    def fresh(self, now: Micros) -> list[Message]:
        """Return all messages that were not handed over yet, whether marked as offered or not."""
        messages = self._in_time(self._casual, now)
        messages += self._in_time(self._offered, now)
        messages += self._in_time(self._waiting, now)
        return messages

    def put_back(self, messages: Iterable[Message]) -> None:
        """Put messages that were not handled back at the head of the queue, in their order."""
        kept = [m for m in messages if m.position != NO_POSITION and not m.finished]
        self._offered.extendleft(reversed([m for m in kept if m.offered]))
        self._waiting.extendleft(reversed([m for m in kept if not m.offered]))

    def _in_time(self, queue: deque[Message], now: Micros) -> list[Message]:
        messages = []
        for message in queue:
            if message.deadline is not None and now >= message.deadline:
                self._late(message)
            elif not message.finished:
                messages.append(message)
        queue.clear()
        return messages
