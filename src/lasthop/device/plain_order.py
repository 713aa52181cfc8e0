"""The outbox order of a device without preferences: a message has its number from the moment it is
queued, and everything leaves over the newest channel."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterable

from lasthop.device.message import Refusal
from lasthop.device.outbox import Outbox
from lasthop.device.outbox_order import OutboxOrder, PieceSource
from lasthop.device.outgoing import Outgoing, ordinary, priority_of
from lasthop.device.outgoing_lane import LaneName, OutgoingLane
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
        elif self._behind and ordinary(item.frame) and self._is_behind(item):
            # Messages for the gateway itself have no lane, and need not wait.
            self._wait(item)
        else:
            self._outbox.assign(item)

    def _wait(self, item: Outgoing) -> None:
        item.number = -1
        self._behind.append(item)

    def _is_behind(self, item: Outgoing) -> bool:
        """Whether a message would overtake a waiting one in its lane."""
        lane = self._lane_of(item)
        return any(self._lane_of(other) == lane for other in self._behind)

    def _lane_of(self, item: Outgoing) -> LaneName | int:
        """Return what names the messages that this one must not overtake."""
        lanes = self._outbox.lanes
        return lanes.name_of(item) if lanes.allowed else priority_of(item.frame)

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
        blocked: set[LaneName | int] = set()
        for item in behind:
            lane = self._lane_of(item)
            if item.held or lane in blocked:
                blocked.add(lane)
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
        if outbox.lanes.several:
            self._send_by_priority(frames, end)
            return frames
        lane = outbox.lanes.first
        while lane.cursor < lane.durable:
            if end is not None and outbox.written >= end:
                self.more = True
                break
            if not self._step(lane, frames):
                break
        return frames

    def _step(self, lane: OutgoingLane, frames: list[Frame]) -> bool:
        """Let the next message of a lane leave, or pass its number; return False if the lane has to
        wait."""
        item = lane.outbound.get(lane.cursor)
        if item is None or item.taken:
            return _pass(lane, frames)
        if item.held or not self._outbox.put(item, frames):
            return False
        if item.sent:
            lane.cursor += 1
        return True

    def _send_by_priority(self, frames: list[Frame], end: int | None) -> None:
        """Let the first messages of the lanes leave, by priority, then by age; a lane that has to
        wait does not hold up the others."""
        heads: list[tuple[int, int, int]] = []
        for lane in self._outbox.lanes:
            self._add_head(lane, heads)
        while heads:
            if end is not None and self._outbox.written >= end:
                self.more = True
                break
            lane = self._outbox.lanes.by_id[heapq.heappop(heads)[2]]
            if self._step(lane, frames):
                self._add_head(lane, heads)

    def _add_head(self, lane: OutgoingLane, heads: list[tuple[int, int, int]]) -> None:
        if lane.cursor < lane.durable:
            item = lane.outbound.get(lane.cursor)
            head = (-10, 0) if item is None else (-priority_of(item.frame), item.key)
            heapq.heappush(heads, (*head, lane.id))

    def next_piece(self, source: PieceSource) -> Piece | None:
        return source.next_piece()


def _pass(lane: OutgoingLane, frames: list[Frame]) -> bool:
    """Pass a number under which nothing is left: skip it if the gateway waits for it; return False
    if that is too far ahead of the gateway."""
    number, skips = lane.cursor, lane.skips
    if number not in skips:
        lane.cursor += 1
        return True
    if number >= lane.limit:
        return False
    stop = next(stop for start, stop in skips.ranges() if start <= number < stop)
    count = min(stop, number + FARTHEST, lane.limit) - number
    frames.append(lane.wrap(Skip(number, count)))
    lane.cursor = number + count
    lane.said_skip(number, count)
    return True
