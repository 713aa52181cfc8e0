"""The messages that were handed over to a device's client and that its application has not asked
for yet."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from lasthop.device.message import Message


class ReadyQueue:
    """Messages by lane: the lane whose first message has the highest priority comes first, and
    equals take turns."""

    def __init__(self) -> None:
        self._lanes: dict[int, deque[Message]] = {}
        """The messages of each lane that has any; the lane that had its turn last is at the end."""

    def __len__(self) -> int:
        return sum(map(len, self._lanes.values()))

    def add(self, messages: Iterable[Message]) -> None:
        """Put messages behind those of their lanes."""
        lanes = self._lanes
        for message in messages:
            lane = lanes.get(message.lane)
            if lane is None:
                lane = lanes[message.lane] = deque()
            lane.append(message)

    def take(self) -> Message:
        """Remove the next message, and return it; there must be one."""
        lanes = self._lanes
        if len(lanes) == 1:
            number = next(iter(lanes))
        else:
            # `max` returns the first of equals: the one whose last turn was longest ago.
            number = max(lanes, key=lambda each: lanes[each][0].priority)
        lane = lanes[number]
        message = lane.popleft()
        if not lane:
            del lanes[number]
        elif len(lanes) > 1:
            del lanes[number]
            lanes[number] = lane
        return message

    def clear(self) -> list[Message]:
        """Remove all messages; return them in the order in which they came next."""
        messages: list[Message] = []
        while self._lanes:
            messages.append(self.take())
        return messages
