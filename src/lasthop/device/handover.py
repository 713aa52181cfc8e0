"""The order in which messages are handed to the application, and how many at a time.

Lanes with messages of higher priority come first, equals take turns, and within a lane the messages
keep their order. A message is marked as offered by a commit before it is handed over, so that after
a crash exactly the messages that the application may have seen are marked as redelivered.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable

from lasthop.clock import Micros
from lasthop.device.message import NO_POSITION, Message


class HandoverLane:
    """The messages of one lane that wait for the application, in order."""

    __slots__ = ("durable", "offered", "outstanding", "turn", "waiting")

    def __init__(self, offered: int = 0) -> None:
        self.waiting: deque[Message] = deque()
        self.outstanding = 0
        """The number of messages that were offered and are not finished."""
        self.offered = offered
        """The position below which messages may have been seen by the application."""
        self.durable = offered
        """The value of `offered` that is durable."""
        self.turn = 0
        """When the lane last had its turn: the larger the later."""


class HandoverQueue:
    """The messages of all lanes that wait for the application."""

    __slots__ = (
        "_before",
        "_casual",
        "_lanes",
        "_late",
        "_offered",
        "_outstanding",
        "_prefetch",
        "_turn",
        "_waiting",
        "first",
    )

    def __init__(
        self,
        *,
        prefetch: int,
        late: Callable[[Message], None],
        offered: int = 0,
        before: int = 0,
    ) -> None:
        """Restore the queue with lane 0; `late` is called with messages whose deadline has passed
        when their turn comes. Messages of lane 0 at positions below `before` come before those of
        all lanes."""
        self._prefetch = prefetch
        self._late = late
        self.first = HandoverLane(offered)
        """Lane 0, which is always there."""
        self._lanes: dict[int, HandoverLane] = {0: self.first}
        self._waiting: dict[int, HandoverLane] = {}
        """The lanes, except lane 0, with messages that were not offered yet."""
        self._before = before
        self._turn = 0
        self._offered: deque[Message] = deque()
        """Messages to be handed over as soon as their offer is durable."""
        self._casual: deque[Message] = deque()
        """Best-effort messages, which need no commit."""
        self._outstanding = 0

    def open(self, lane: int, offered: int = 0) -> HandoverLane:
        """Add a lane, and return it."""
        opened = self._lanes[lane] = HandoverLane(offered)
        return opened

    def forget(self, lane: int) -> None:
        """Remove a lane in which no message waits."""
        del self._lanes[lane]
        self._waiting.pop(lane, None)

    def start_over(self, before: int, offered: int) -> None:
        """Begin a new epoch: every message is in lane 0 now, and those at positions below `before`
        come before the messages of all lanes."""
        waiting = sorted(
            (m for lane in self._lanes.values() for m in lane.waiting if not m.finished),
            key=lambda message: message.position,
        )
        first = self.first
        first.waiting = deque(waiting)
        first.offered = max(first.offered, offered)
        first.outstanding = self._outstanding
        self._lanes = {0: first}
        self._waiting = {}
        self._before = before

    def add(self, message: Message) -> None:
        """Put a message at the end of its lane."""
        if message.position == NO_POSITION:
            self._casual.append(message)
        elif message.offered:
            self._outstanding += 1
            self._lanes[message.lane].outstanding += 1
            self._offered.append(message)
        else:
            lane = self._lanes[message.lane]
            lane.waiting.append(message)
            if lane is not self.first:
                self._waiting[message.lane] = lane

    def hand(self, message: Message) -> None:
        """Mark a message as offered before its turn, because the application asked for it."""
        self._mark(message, self._lanes[message.lane])

    def _mark(self, message: Message, lane: HandoverLane) -> None:
        message.offered = True
        self._outstanding += 1
        lane.outstanding += 1
        if message.position >= lane.offered:
            lane.offered = message.position + 1

    @property
    def casual(self) -> int:
        """The number of best-effort messages that wait."""
        return len(self._casual)

    def finished(self, message: Message) -> None:
        """Note that the application is done with a message, or never gets it."""
        if message.offered:
            self._outstanding -= 1
            self._lanes[message.lane].outstanding -= 1

    def offer(self) -> None:
        """Mark as many messages as the prefetch limit allows as offered to the application; the
        marks become durable with the next change. A lane without an offered message may offer one
        beyond the limit."""
        first, prefetch = self.first, self._prefetch
        while self._waiting and (lane := self._next()) is not None:
            self._offer(lane.waiting.popleft(), lane)
        if self._waiting:
            return
        # The common case, without a choice.
        waiting = first.waiting
        while waiting and (self._outstanding < prefetch or not first.outstanding):
            message = waiting.popleft()
            if not message.finished:
                self._offer(message, first)

    def _offer(self, message: Message, lane: HandoverLane) -> None:
        self._mark(message, lane)
        self._offered.append(message)

    def _may_offer(self, lane: HandoverLane) -> bool:
        return self._outstanding < self._prefetch or not lane.outstanding

    def _next(self, *, limited: bool = True) -> HandoverLane | None:
        """Return the lane whose first message comes next; None if no lane may offer one."""
        best: HandoverLane | None = None
        highest = -1
        first = self.first.waiting
        while first and first[0].finished:
            first.popleft()
        if first and first[0].position < self._before:
            return self.first if not limited or self._may_offer(self.first) else None
        for lane in (self.first, *self._waiting.values()):
            waiting = lane.waiting
            while waiting and waiting[0].finished:
                waiting.popleft()
            if not waiting or (limited and not self._may_offer(lane)):
                continue
            priority = waiting[0].priority
            if (
                best is None
                or priority > highest
                or (priority == highest and lane.turn < best.turn)
            ):
                best, highest = lane, priority
        self._waiting = {number: lane for number, lane in self._waiting.items() if lane.waiting}
        if best is not None:
            self._turn += 1
            best.turn = self._turn
        return best

    def ready(self, now: Micros) -> list[Message]:
        """Return the messages to hand over now: those whose offer is durable."""
        messages = self._in_time(self._casual, now)
        offered, lanes = self._offered, self._lanes
        due: deque[Message] = deque()
        # What one change offers is durable together, so the others wait behind it.
        while offered and offered[0].position < lanes[offered[0].lane].durable:
            due.append(offered.popleft())
        messages += self._in_time(due, now)
        return messages

    def fresh(self, now: Micros) -> list[Message]:
        """Return all messages that were not handed over yet, whether marked as offered or not."""
        messages = self._in_time(self._casual, now)
        messages += self._in_time(self._offered, now)
        while self._waiting:
            lane = self._next(limited=False)
            if lane is None:
                break
            messages += self._in_time(deque((lane.waiting.popleft(),)), now)
        messages += self._in_time(self.first.waiting, now)
        return messages

    def put_back(self, messages: Iterable[Message]) -> None:
        """Put messages that were not handled back at the head of the queue, in their order."""
        kept = [m for m in messages if m.position != NO_POSITION and not m.finished]
        for message in reversed(kept):
            if message.offered:
                self._offered.appendleft(message)
                continue
            lane = self._lanes[message.lane]
            lane.waiting.appendleft(message)
            if lane is not self.first:
                self._waiting[message.lane] = lane

    def _in_time(self, queue: deque[Message], now: Micros) -> list[Message]:
        messages = []
        for message in queue:
            if message.deadline is not None and now >= message.deadline:
                self._late(message)
            elif not message.finished:
                messages.append(message)
        queue.clear()
        return messages
