"""Messages of a device that have no number, lane by lane: a waiting message holds up its own lane
and no other."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import TypeAlias

from lasthop.device.outgoing import Outgoing, priority_of

WaitingLane: TypeAlias = tuple[str | None, int, bool]
"""A lane of messages: its queue, its priority, and whether its messages are best effort, which need
no order."""


def lane_of(item: Outgoing) -> WaitingLane:
    """Return the lane within which a message keeps its order."""
    return item.queue, priority_of(item.frame), item.casual


class WaitingLanes:
    """The waiting messages, first in, first out in every lane. Decisions are made only about the
    first message of each lane."""

    def __init__(self) -> None:
        self._lanes: dict[WaitingLane, deque[Outgoing]] = {}
        self._keys: dict[int, Outgoing] = {}
        self._fresh: dict[WaitingLane, None] = {}
        """Lanes whose head has not been decided about since something changed."""

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[Outgoing]:
        """Yield all waiting messages, the oldest first."""
        return iter(sorted(self._keys.values(), key=lambda item: item.key))

    def get(self, key: int) -> Outgoing | None:
        """Return the waiting message of this key; None if it does not wait."""
        return self._keys.get(key)

    def add(self, item: Outgoing) -> None:
        """Put a message at the end of its lane."""
        lane = lane_of(item)
        waiting = self._lanes.setdefault(lane, deque())
        waiting.append(item)
        self._keys[item.key] = item
        if len(waiting) == 1:
            self._fresh[lane] = None

    def put_back(self, items: Iterable[Outgoing]) -> None:
        """Return messages that had left their lanes to their old places."""
        changed = set()
        for item in items:
            self.add(item)
            changed.add(lane_of(item))
        for lane in changed:
            self._lanes[lane] = deque(sorted(self._lanes[lane], key=lambda item: item.key))
            self._fresh[lane] = None

    def remove(self, item: Outgoing) -> None:
        """Remove a message from its lane, so that the next one can be decided about."""
        lane = lane_of(item)
        waiting = self._lanes[lane]
        if waiting[0] is item:
            waiting.popleft()
        else:
            waiting.remove(item)
        del self._keys[item.key]
        if waiting:
            self._fresh[lane] = None
        else:
            del self._lanes[lane]
            self._fresh.pop(lane, None)

    def head(self, lane: WaitingLane) -> Outgoing | None:
        """Return the first message of a lane; None if the lane is empty."""
        waiting = self._lanes.get(lane)
        return waiting[0] if waiting else None

    def head_of(self, item: Outgoing) -> Outgoing:
        """Return the first message of the lane in which this message waits."""
        return self._lanes[lane_of(item)][0]

    def reconsider(self) -> None:
        """Mark all lanes to be decided about again."""
        self._fresh.update(dict.fromkeys(self._lanes))

    def look_at(self, item: Outgoing) -> None:
        """Mark the lane of this message to be decided about again."""
        self._fresh[lane_of(item)] = None

    def take_fresh(self) -> list[WaitingLane]:
        """Return the lanes to decide about now, by priority, then by their oldest message."""
        fresh, self._fresh = self._fresh, {}
        return sorted(fresh, key=lambda lane: (-lane[1], self._lanes[lane][0].key))

    def clear(self) -> list[Outgoing]:
        """Remove all messages; return them, the oldest first."""
        waiting = list(self)
        self._lanes, self._keys, self._fresh = {}, {}, {}
        return waiting
