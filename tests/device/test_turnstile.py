"""In which order, and how many at a time."""

from __future__ import annotations

from lasthop.device.message import NO_POSITION, Message
from lasthop.device.turnstile import Turnstile
from tests.device.peer import NOW, frame


def message(position: int, *, deadline: int | None = None) -> Message:
    return Message(frame(max(position, 0)), "text/plain", position, deadline=deadline)


def positions(messages: list[Message]) -> list[int]:
    return [message.position for message in messages]


def filled(count: int, *, prefetch: int = 2) -> Turnstile:
    late: list[Message] = []
    turnstile = Turnstile(prefetch=prefetch, offered=0, late=late.append)
    for position in range(count):
        turnstile.add(message(position))
    return turnstile


def test_no_more_is_offered_than_may_be_outstanding() -> None:
    turnstile = filled(5)
    turnstile.offer()
    assert turnstile.offered == 2
    first, _second = turnstile.ready(NOW, 2)
    turnstile.offer()
    assert turnstile.offered == 2
    turnstile.finished(first)
    turnstile.offer()
    assert turnstile.offered == 3
    assert positions(turnstile.ready(NOW, 3)) == [2]


def test_what_is_offered_is_handed_over_when_that_is_durable() -> None:
    turnstile = filled(2)
    turnstile.offer()
    assert turnstile.ready(NOW, 0) == []
    assert positions(turnstile.ready(NOW, 1)) == [0]
    assert positions(turnstile.ready(NOW, 2)) == [1]


def test_fresh_messages_are_all_there_are() -> None:
    turnstile = filled(4)
    turnstile.offer()
    turnstile.add(message(NO_POSITION))
    assert positions(turnstile.fresh(NOW)) == [NO_POSITION, 0, 1, 2, 3]
    assert turnstile.fresh(NOW) == []


def test_what_is_put_back_keeps_its_place_before_what_was_offered_later() -> None:
    turnstile = filled(6, prefetch=4)
    turnstile.offer()
    handed = turnstile.ready(NOW, 2)
    turnstile.put_back(handed)
    assert positions(turnstile.fresh(NOW)) == [0, 1, 2, 3, 4, 5]


def test_what_is_put_back_half_way_keeps_its_place() -> None:
    turnstile = filled(6, prefetch=2)
    turnstile.offer()
    fresh = turnstile.fresh(NOW)
    turnstile.add(message(6))
    turnstile.put_back(fresh[1:])
    assert positions(turnstile.fresh(NOW)) == [1, 2, 3, 4, 5, 6]


def test_what_is_finished_or_late_is_not_handed_over() -> None:
    late: list[Message] = []
    turnstile = Turnstile(prefetch=9, offered=0, late=late.append)
    done, expired, good = message(0), message(1, deadline=NOW), message(2, deadline=NOW + 1)
    done.finished = True
    for each in (done, expired, good, message(NO_POSITION, deadline=NOW)):
        turnstile.add(each)
    assert positions(turnstile.fresh(NOW)) == [2]
    assert positions(late) == [NO_POSITION, 1]
