"""The outbox order of a device without preferences: a message has its number from the moment it is
queued, and everything leaves over the newest channel."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from lasthop.device.message import Refusal
from lasthop.device.outbox import Outbox
from lasthop.device.outbox_order import OutboxOrder, PieceSource
from lasthop.device.outgoing import Outgoing, ordinary, priority_of
from lasthop.device.outgoing_lane import OutgoingLane
from lasthop.wire.hop.frames import Frame, Piece, Skip
from lasthop.wire.hop.sequence import DEFAULT_WINDOW as FARTHEST


class PlainOrder(OutboxOrder):
    """Numbers and sends messages first in, first out."""

    def __init__(self, outbox: Outbox) -> None:
        self._outbox = outbox
        self._behind: list[Outgoing] = []
        """Messages without a number: those held at the gate, and those that must not overtake
        them."""
        self._casual: deque[Outgoing] = deque()

    @property
    def waiting(self) -> int:
        return len(self._casual) + len(self._behind)

    def restore(self, items: Iterable[Outgoing]) -> None:
        """Add the messages that had no number before a restart; they will get numbers."""
        self._behind += items

    def begin(self, items: Iterable[Outgoing]) -> None:
        self._outbox.again()
        for item in items:
            self._place_again(item)

    def start_over(self, items: list[Outgoing]) -> None:
        behind, self._behind = self._behind, []
        for item in (*items, *behind):
            self._place_again(item)

    def _place_again(self, item: Outgoing) -> None:
        item.channel, item.held = 0, item.goes_ahead
        self.place(item)
        self._outbox.note_number(item)

    def end(self) -> list[Outgoing]:
        return sorted((*self._behind, *self._casual), key=lambda item: item.key)

    def place(self, item: Outgoing) -> None:
        if item.casual:
            self._casual.append(item)
        elif item.held:
            self._wait(item)
            self._outbox.gate.start(item, durable=False)
        elif self._behind and ordinary(item.frame) and self._is_behind(priority_of(item.frame)):
            # Messages for the gateway itself have no lane, and need not wait.
            self._wait(item)
        else:
            self._outbox.assign(item)

    def _wait(self, item: Outgoing) -> None:
        item.number = -1
        self._behind.append(item)

    def _is_behind(self, priority: int) -> bool:
        """Whether a message of this priority would overtake a waiting one in its lane."""
        return any(priority_of(other.frame) == priority for other in self._behind)

    def held(self, item: Outgoing) -> None:
        self._outbox.gate.start(item, durable=True)

    def let_go(self, item: Outgoing) -> None:
        if item.number < 0:
            self._catch_up()

    def refuse(self, item: Outgoing, refusal: Refusal) -> None:
        if not item.held:
            return
        if item.number < 0:
            self._behind.remove(item)
        self._outbox.refuse(item, refusal)
        self._catch_up()

    def _catch_up(self) -> None:
        behind, self._behind = self._behind, []
        blocked: set[int] = set()
        for item in behind:
            priority = priority_of(item.frame)
            if item.held or priority in blocked:
                blocked.add(priority)
                self._behind.append(item)
            else:
                self._outbox.assign(item)
                self._outbox.note_number(item)

    def again(self) -> None:
        self._outbox.forget_sent()

    def frames(self, *, budget: int | None = None) -> list[Frame]:
        outbox = self._outbox
        frames: list[Frame] = []
        end = None if budget is None else outbox.written + budget
        self.more = False
        while self._casual:
            frames.append(outbox.leave(self._casual.popleft()))
        self._send(outbox.first, frames, end)
        return frames

    def _send(self, lane: OutgoingLane, frames: list[Frame], end: int | None) -> None:
        """Let the messages of a lane leave, in order, up to `end` bytes."""
        outbox, outbound = self._outbox, lane.outbound
        while lane.cursor < lane.durable:
            if end is not None and outbox.written >= end:
                self.more = True
                break
            item = outbound.get(lane.cursor)
            if item is None or item.taken:
                if not _pass(lane, frames):
                    break
            elif item.held or not outbox.put(item, frames):
                break
            elif item.sent:
                lane.cursor += 1

    def next_piece(self, source: PieceSource) -> Piece | None:
        return source.next_piece()


def _pass(lane: OutgoingLane, frames: list[Frame]) -> bool:
    """Pass a number under which nothing is left: skip it if the gateway waits for it; return False
    if that is too far ahead of the gateway."""
    number, skips = lane.cursor, lane.skips
    if number not in skips:
        lane.cursor += 1
        return True
    if number >= lane.peer_received + FARTHEST:
        return False
    stop = next(stop for start, stop in skips.ranges() if start <= number < stop)
    count = min(stop, number + FARTHEST) - number
    frames.append(Skip(number, count))
    lane.cursor = number + count
    lane.said_skip(number, count)
    return True
