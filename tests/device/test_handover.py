"""In which order, and how many at a time."""

from __future__ import annotations

from lasthop.device.handover import HandoverQueue
from lasthop.device.message import NO_POSITION, Message
from lasthop.wire.hop.frames import Headers
from tests.device.peer import NOW, frame


def message(
    position: int, *, deadline: int | None = None, lane: int = 0, priority: int = 4
) -> Message:
    headers = Headers(priority=priority)
    sent = frame(max(position, 0), headers=headers)
    return Message(sent, "text/plain", position, deadline=deadline, lane=lane)


def positions(messages: list[Message]) -> list[int]:
    return [message.position for message in messages]


def filled(count: int, *, prefetch: int = 2) -> HandoverQueue:
    late: list[Message] = []
    handover = HandoverQueue(prefetch=prefetch, late=late.append)
    for position in range(count):
        handover.add(message(position))
    return handover


def ready(handover: HandoverQueue, durable: int) -> list[Message]:
    handover.first.durable = durable
    return handover.ready(NOW)


def test_no_more_is_offered_than_may_be_outstanding() -> None:
    handover = filled(5)
    handover.offer()
    assert handover.first.offered == 2
    first, _second = ready(handover, 2)
    handover.offer()
    assert handover.first.offered == 2
    handover.finished(first)
    handover.offer()
    assert handover.first.offered == 3
    assert positions(ready(handover, 3)) == [2]


def test_what_is_offered_is_handed_over_when_that_is_durable() -> None:
    handover = filled(2)
    handover.offer()
    assert ready(handover, 0) == []
    assert positions(ready(handover, 1)) == [0]
    assert positions(ready(handover, 2)) == [1]


def test_fresh_messages_are_all_there_are() -> None:
    handover = filled(4)
    handover.offer()
    handover.add(message(NO_POSITION))
    assert positions(handover.fresh(NOW)) == [NO_POSITION, 0, 1, 2, 3]
    assert handover.fresh(NOW) == []


def test_what_is_put_back_keeps_its_place_before_what_was_offered_later() -> None:
    handover = filled(6, prefetch=4)
    handover.offer()
    handed = ready(handover, 2)
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
    handover = HandoverQueue(prefetch=9, late=late.append)
    done, expired, good = message(0), message(1, deadline=NOW), message(2, deadline=NOW + 1)
    done.finished = True
    for each in (done, expired, good, message(NO_POSITION, deadline=NOW)):
        handover.add(each)
    assert positions(handover.fresh(NOW)) == [2]
    assert positions(late) == [NO_POSITION, 1]


def in_lanes(prefetch: int, *lanes: tuple[int, int]) -> HandoverQueue:
    """Four messages in every lane, whose id and priority are given."""
    handover = HandoverQueue(prefetch=prefetch, late=lambda _: None)
    for lane, priority in lanes:
        if lane:
            handover.open(lane)
        for position in range(4):
            handover.add(message(position, lane=lane, priority=priority))
    return handover


def places(messages: list[Message]) -> list[tuple[int, int]]:
    return [(message.lane, message.position) for message in messages]


def test_a_lane_of_higher_priority_comes_first() -> None:
    handover = in_lanes(5, (0, 4), (2, 8))
    assert places(handover.fresh(NOW)) == [(2, n) for n in range(4)] + [(0, n) for n in range(4)]


def test_lanes_of_one_priority_take_turns() -> None:
    handover = in_lanes(9, (0, 4), (2, 4), (4, 4))
    assert places(handover.fresh(NOW))[:6] == [(0, 0), (2, 0), (4, 0), (0, 1), (2, 1), (4, 1)]


def test_a_lane_offers_one_message_although_others_have_used_up_the_prefetch() -> None:
    handover = in_lanes(3, (0, 4))
    handover.offer()
    handover.open(2)
    for position in range(2):
        handover.add(message(position, lane=2, priority=9))
    handover.offer()
    assert (handover.first.offered, handover._lanes[2].offered) == (3, 1)
    handover.offer()
    assert handover._lanes[2].offered == 1


def test_an_offer_in_one_lane_is_no_offer_in_another() -> None:
    handover = in_lanes(9, (0, 4), (2, 8))
    handover.offer()
    handover.first.durable = handover._lanes[2].durable = 0
    assert handover.ready(NOW) == []
    handover._lanes[2].durable = 4
    assert places(handover.ready(NOW)) == [(2, n) for n in range(4)]
    handover.first.durable = 1
    assert places(handover.ready(NOW)) == [(0, 0)]


def test_what_was_put_back_is_first_in_its_lane() -> None:
    handover = in_lanes(9, (0, 4), (2, 4))
    fresh = handover.fresh(NOW)
    handover.put_back(fresh[3:])
    again = places(handover.fresh(NOW))
    assert [place for place in again if place[0] == 0] == [(0, 2), (0, 3)]
    assert [place for place in again if place[0] == 2] == [(2, 1), (2, 2), (2, 3)]


def test_messages_of_earlier_epochs_come_before_those_of_all_lanes() -> None:
    handover = HandoverQueue(prefetch=9, late=lambda _: None, before=2)
    handover.open(2)
    for lane, position, priority in ((2, 0, 9), (0, 0, 1), (0, 1, 1), (0, 2, 1)):
        handover.add(message(position, lane=lane, priority=priority))
    assert places(handover.fresh(NOW)) == [(0, 0), (0, 1), (2, 0), (0, 2)]


def test_in_a_new_epoch_all_messages_are_in_lane_0() -> None:
    handover = in_lanes(1, (0, 4), (2, 8))
    handover.offer()
    there = [m for lane in handover._lanes.values() for m in lane.waiting]
    for position, waiting in enumerate(there, 10):
        waiting.lane, waiting.position = 0, position
    handover.start_over(before=17, offered=10)
    handover.open(2)
    handover.add(message(0, lane=2, priority=9))
    order = places(handover.fresh(NOW))
    assert order[2:] == [*((0, n) for n in range(10, 16)), (2, 0)]
