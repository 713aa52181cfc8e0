"""A sender within its credit is never stopped; one beyond it is."""

import pytest
from hypothesis import given, strategies as st

from lasthop.errors import CreditExceeded
from lasthop.wire.hop.credit import Meter, admits
from lasthop.wire.hop.frames import Credit

WINDOW = Credit(3, 100)


@pytest.mark.parametrize(
    "ahead, in_flight, size, allowed",
    [
        (0, 0, 10, True),
        (2, 50, 50, True),
        (2, 50, 51, False),
        (3, 0, 1, False),
        (0, 0, 1000, True),
        (1, 1, 1000, False),
    ],
)
def test_a_sender_knows_what_it_may(ahead: int, in_flight: int, size: int, allowed: bool) -> None:
    assert admits(WINDOW, ahead=ahead, bytes_in_flight=in_flight, size=size) is allowed


def test_no_messages_is_a_pause() -> None:
    assert not admits(Credit(0, 1000), ahead=0, bytes_in_flight=0, size=0)


def test_too_many_messages_are_refused() -> None:
    meter = Meter(WINDOW, received=10)
    for seq in (10, 11, 12):
        meter.take(seq, 1)
    with pytest.raises(CreditExceeded, match=r"a message is beyond the window \(number=13"):
        meter.take(13, 1)
    meter.acknowledge(11)
    meter.take(13, 1)


def test_too_many_bytes_are_refused() -> None:
    meter = Meter(WINDOW)
    meter.take(0, 60)
    with pytest.raises(CreditExceeded, match=r"unacknowledged bytes are beyond the window"):
        meter.take(1, 41)
    meter.take(1, 40)
    meter.acknowledge(1)
    meter.take(2, 60)


def test_one_message_of_any_size_is_taken_when_nothing_else_is_in_flight() -> None:
    meter = Meter(WINDOW)
    meter.take(0, 1000)
    with pytest.raises(CreditExceeded):
        meter.take(1, 1)
    meter.acknowledge(1)
    meter.take(1, 1000)


def test_duplicates_are_not_counted_twice() -> None:
    meter = Meter(WINDOW)
    meter.take(0, 60)
    meter.take(0, 60)
    meter.acknowledge(1)
    meter.take(0, 60)
    meter.take(1, 100)
    meter.acknowledge(1)


def test_a_smaller_window_is_not_held_against_what_is_under_way() -> None:
    meter = Meter(WINDOW)
    meter.grant(Credit(0, 0))
    for seq in range(3):
        meter.take(seq, 30)
    with pytest.raises(CreditExceeded):
        meter.take(3, 1)
    meter.grant(Credit(5, 100))
    meter.take(3, 10)


@given(
    st.lists(st.tuples(st.sampled_from(["send", "ack", "credit"]), st.integers(0, 60)), max_size=60)
)
def test_a_sender_that_asks_is_never_refused(steps: list[tuple[str, int]]) -> None:
    meter = Meter(WINDOW)
    window = WINDOW
    received = 0
    sizes: list[int] = []
    for step, number in steps:
        in_flight = sum(sizes[received:])
        if step == "ack":
            received = min(received + number, len(sizes))
            meter.acknowledge(received)
        elif step == "credit":
            window = Credit(number, 2 * number)
            meter.grant(window)
        elif admits(window, ahead=len(sizes) - received, bytes_in_flight=in_flight, size=number):
            meter.take(len(sizes), number)
            sizes.append(number)
