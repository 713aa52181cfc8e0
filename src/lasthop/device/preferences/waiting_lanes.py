"""Messages of a device that have no number yet, lane by lane: what waits holds up its own lane and
no other."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import TypeAlias

from lasthop.device.outgoing import Outgoing, priority_of

WaitingLane: TypeAlias = tuple[str | None, int, bool]
"""Queue, priority, and whether it is best effort, which is in order with nothing."""


def lane_of(item: Outgoing) -> WaitingLane:
    """What a message is kept in order with."""
    return item.queue, priority_of(item.frame), item.casual


class WaitingLanes:
    """First in, first out in every lane. Only the heads of lanes are ever looked at."""

    def __init__(self) -> None:
        self._lanes: dict[WaitingLane, deque[Outgoing]] = {}
        self._keys: dict[int, Outgoing] = {}
        self._fresh: dict[WaitingLane, None] = {}
        """Lanes whose head has not been looked at since something changed."""

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[Outgoing]:
        """All that wait, the oldest first."""
        return iter(sorted(self._keys.values(), key=lambda item: item.key))

    def get(self, key: int) -> Outgoing | None:
        """The message with this key, if it waits."""
        return self._keys.get(key)

    def add(self, item: Outgoing) -> None:
        """One more waits."""
        lane = lane_of(item)
        waiting = self._lanes.setdefault(lane, deque())
        waiting.append(item)
        self._keys[item.key] = item
        if len(waiting) == 1:
            self._fresh[lane] = None

    def put_back(self, items: Iterable[Outgoing]) -> None:
        """These had left their lanes, and have their old places again."""
        changed = set()
        for item in items:
            self.add(item)
            changed.add(lane_of(item))
        for lane in changed:
            self._lanes[lane] = deque(sorted(self._lanes[lane], key=lambda item: item.key))
            self._fresh[lane] = None

    def remove(self, item: Outgoing) -> None:
        """It waits no longer; whoever is behind it may be looked at."""
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
        """Whose turn it is in a lane."""
        waiting = self._lanes.get(lane)
        return waiting[0] if waiting else None

    def head_of(self, item: Outgoing) -> Outgoing:
        """The first of the lane that this one waits in."""
        return self._lanes[lane_of(item)][0]

    def reconsider(self) -> None:
        """Something has changed for everyone."""
        self._fresh.update(dict.fromkeys(self._lanes))

    def look_at(self, item: Outgoing) -> None:
        """Something has changed for this one."""
        self._fresh[lane_of(item)] = None

    def take_fresh(self) -> list[WaitingLane]:
        """Lanes to look at now: by priority, then by who came first."""
        fresh, self._fresh = self._fresh, {}
        return sorted(fresh, key=lambda lane: (-lane[1], self._lanes[lane][0].key))

    def clear(self) -> list[Outgoing]:
        """Nobody waits here any more; returns who did, the oldest first."""
        waiting = list(self)
        self._lanes, self._keys, self._fresh = {}, {}, {}
        return waiting
