"""In which order, and how many at a time."""

from __future__ import annotations

from lasthop.device.handover import HandoverQueue
from lasthop.device.message import NO_POSITION, Message
from tests.device.peer import NOW, frame


def message(position: int, *, deadline: int | None = None) -> Message:
    return Message(frame(max(position, 0)), "text/plain", position, deadline=deadline)


def positions(messages: list[Message]) -> list[int]:
    return [message.position for message in messages]


def filled(count: int, *, prefetch: int = 2) -> HandoverQueue:
    late: list[Message] = []
    handover = HandoverQueue(prefetch=prefetch, offered=0, late=late.append)
    for position in range(count):
        handover.add(message(position))
    return handover


def test_no_more_is_offered_than_may_be_outstanding() -> None:
    handover = filled(5)
    handover.offer()
    assert handover.offered == 2
    first, _second = handover.ready(NOW, 2)
    handover.offer()
    assert handover.offered == 2
    handover.finished(first)
    handover.offer()
    assert handover.offered == 3
    assert positions(handover.ready(NOW, 3)) == [2]


def test_what_is_offered_is_handed_over_when_that_is_durable() -> None:
    handover = filled(2)
    handover.offer()
    assert handover.ready(NOW, 0) == []
    assert positions(handover.ready(NOW, 1)) == [0]
    assert positions(handover.ready(NOW, 2)) == [1]


def test_fresh_messages_are_all_there_are() -> None:
    handover = filled(4)
    handover.offer()
    handover.add(message(NO_POSITION))
    assert positions(handover.fresh(NOW)) == [NO_POSITION, 0, 1, 2, 3]
    assert handover.fresh(NOW) == []


def test_what_is_put_back_keeps_its_place_before_what_was_offered_later() -> None:
    handover = filled(6, prefetch=4)
    handover.offer()
    handed = handover.ready(NOW, 2)
    handover.put_back(handed)
    assert positions(handover.fresh(NOW)) == [0, 1, 2, 3, 4, 5]


def test_what_is_put_back_half_way_keeps_its_place() -> None:
    handover = filled(6, prefetch=2)
    handover.offer()
    fresh = handover.fresh(NOW)
    handover.add(message(6))
    handover.put_back(fresh[1:])
    assert positions(handover.fresh(NOW)) == [1, 2, 3, 4, 5, 6]


def test_what_is_finished_or_late_is_not_handed_over() -> None:
    late: list[Message] = []
    handover = HandoverQueue(prefetch=9, offered=0, late=late.append)
    done, expired, good = message(0), message(1, deadline=NOW), message(2, deadline=NOW + 1)
    done.finished = True
    for each in (done, expired, good, message(NO_POSITION, deadline=NOW)):
        handover.add(each)
    assert positions(handover.fresh(NOW)) == [2]
    assert positions(late) == [NO_POSITION, 1]
