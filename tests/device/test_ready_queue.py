"""What the application gets next, of all that has been handed over."""

from __future__ import annotations

from lasthop.device.message import Message
from lasthop.device.ready_queue import ReadyQueue
from lasthop.wire.hop.frames import Headers
from tests.device.peer import frame


def message(lane: int, position: int, priority: int = 4) -> Message:
    sent = frame(position, headers=Headers(priority=priority))
    return Message(sent, "text/plain", position, lane=lane)


def places(queue: ReadyQueue) -> list[tuple[int, int]]:
    return [(message.lane, message.position) for message in queue.clear()]


def test_one_lane_keeps_its_order_whatever_the_priorities() -> None:
    queue = ReadyQueue()
    queue.add([message(0, 0, 1), message(0, 1, 9)])
    queue.add([message(0, 2, 5)])
    assert len(queue) == 3
    assert places(queue) == [(0, 0), (0, 1), (0, 2)]
    assert not queue


def test_the_lane_with_the_highest_priority_is_first() -> None:
    queue = ReadyQueue()
    queue.add([message(0, 0), message(0, 1), message(2, 0, 9), message(4, 0, 1)])
    assert places(queue) == [(2, 0), (0, 0), (0, 1), (4, 0)]


def test_equals_take_turns() -> None:
    queue = ReadyQueue()
    queue.add([message(0, 0), message(0, 1), message(2, 0), message(2, 1)])
    assert places(queue) == [(0, 0), (2, 0), (0, 1), (2, 1)]
