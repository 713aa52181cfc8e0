"""In which order, and how many at a time, messages are handed to the application.

A message is offered with a commit before it is handed over, so that after a crash exactly those
that may have been seen are called redelivered.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable

from lasthop.clock import Micros
from lasthop.device.message import NO_POSITION, Message


class HandoverQueue:
    """Messages that wait for the application, in order."""

    __slots__ = ("_casual", "_late", "_offered", "_outstanding", "_prefetch", "_waiting", "offered")

    def __init__(self, *, prefetch: int, offered: int, late: Callable[[Message], None]) -> None:
        """`late` takes those whose deadline has passed when their turn comes."""
        self._prefetch = prefetch
        self._late = late
        self._waiting: deque[Message] = deque()
        """Not offered yet."""
        self._offered: deque[Message] = deque()
        """To be handed over when that they were offered is durable."""
        self._casual: deque[Message] = deque()
        """Best effort, which waits for nothing."""
        self._outstanding = 0
        """Offered and not finished."""
        self.offered = offered
        """Messages at positions below may have been seen."""

    def add(self, message: Message) -> None:
        """Its turn comes after all others."""
        if message.position == NO_POSITION:
            self._casual.append(message)
        elif message.offered:
            self._outstanding += 1
            self._offered.append(message)
        else:
            self._waiting.append(message)

    def hand(self, message: Message) -> None:
        """Somebody who asked for it gets it: it counts as offered, out of turn."""
        message.offered = True
        self._outstanding += 1
        self.offered = max(self.offered, message.position + 1)

    @property
    def casual(self) -> int:
        """How many best-effort messages wait."""
        return len(self._casual)

    def finished(self, message: Message) -> None:
        """The application is done with it, or never gets it."""
        if message.offered:
            self._outstanding -= 1

    def offer(self) -> None:
        """Offer what the application may have beside what it has; durable with the next change."""
        while self._waiting and self._outstanding < self._prefetch:
            message = self._waiting.popleft()
            if not message.finished:
                message.offered = True
                self._outstanding += 1
                self._offered.append(message)
                self.offered = max(self.offered, message.position + 1)

    def ready(self, now: Micros, durable: int) -> list[Message]:
        """What to hand over now, given that offers below this position are durable."""
        messages = self._in_time(self._casual, now)
        offered = self._offered
        due: deque[Message] = deque()
        while offered and offered[0].position < durable:
            due.append(offered.popleft())
        messages += self._in_time(due, now)
        return messages

    def fresh(self, now: Micros) -> list[Message]:
        """All that was not handed over yet."""
        messages = self._in_time(self._casual, now)
        messages += self._in_time(self._offered, now)
        messages += self._in_time(self._waiting, now)
        return messages

    def put_back(self, messages: Iterable[Message]) -> None:
        """These, the first in order, were not dealt with: they keep their turn."""
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
