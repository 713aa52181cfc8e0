"""Transfers: whatever a channel does to pieces, the receiver has the bytes once and in order."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings, strategies as st

from lasthop.errors import CreditExceeded, OutOfOrder
from lasthop.wire.hop.frames import Piece, Taken
from lasthop.wire.hop.transfer import (
    LARGEST_PIECE,
    SMALLEST_PIECE,
    Pace,
    Receiving,
    Sending,
)


@settings(max_examples=200)
@given(
    content=st.binary(max_size=400),
    seed=st.integers(0, 2**32),
    window=st.integers(1, 200),
    most=st.integers(1, 64),
    trouble=st.floats(0, 0.6),
)
def test_everything_arrives_once_and_in_order(
    content: bytes, seed: int, window: int, most: int, trouble: float
) -> None:
    """Pieces and answers are lost, doubled and overtaken; contacts break; the receiver forgets what
    was not durable."""
    random = Random(seed)
    sending = Sending(1, stream=False)
    receiving = Receiving(limit=window)
    durable = b""
    volatile = b""
    air: list[Piece | Taken] = []

    def put(frame: Piece | Taken) -> None:
        for _ in range(random.choice((0, 1, 2)) if random.random() < trouble else 1):
            air.insert(random.randint(0, len(air)) if random.random() < trouble else 0, frame)

    for step in range(20_000):
        if len(durable) == len(content) and sending.taken == len(content):
            break
        if step > 5_000:
            trouble = 0.0
        if random.random() < trouble / 20 or (not air and step % 7 == 0):
            # A new contact; now and then the receiver has crashed.
            air.clear()
            sending.again()
            if random.random() < 0.5:
                receiving = Receiving(received=len(durable), limit=len(durable) + window)
                volatile = b""
            receiving.again()
        question = sending.question()
        if question is not None:
            put(question)
        size = sending.room(len(content), most)
        if size:
            put(sending.piece(content[sending.cursor : sending.cursor + size]))
        if air:
            frame = air.pop()
            if isinstance(frame, Piece):
                volatile += receiving.take(frame)
            else:
                sending.heard(frame, len(content))
        if random.random() < 0.5:
            durable, volatile = durable + volatile, b""
            receiving.durable = len(durable)
            receiving.grant(len(durable) + window)
        taken = receiving.report(1, step=1)
        if taken is not None:
            put(taken)
    assert durable == content
    assert sending.taken == len(content)


def test_what_was_not_granted_is_refused() -> None:
    receiving = Receiving(limit=10)
    with pytest.raises(CreditExceeded, match="a piece is beyond what was granted"):
        receiving.take(Piece(1, 5, b"123456"))


def test_what_was_never_sent_is_not_taken() -> None:
    sending = Sending(1, stream=False)
    with pytest.raises(OutOfOrder, match="a TAKEN is for bytes that were never sent"):
        sending.heard(Taken(1, 11, 20), 10)


def test_pieces_that_overtake_one_another_cannot_fill_the_memory() -> None:
    receiving = Receiving(limit=100)
    for offset in range(1, 99):
        for size in range(1, 100 - offset):
            assert receiving.take(Piece(1, offset, bytes(size))) == b""
    assert receiving._beyond_bytes <= 100
    assert receiving.take(Piece(1, 0, b"x")) != b""


def test_a_slow_link_gets_small_pieces_and_a_quick_one_large_ones() -> None:
    pace = Pace()
    assert pace.size == LARGEST_PIECE
    for _ in range(5):
        pace.left(Pace.SLOW + 1)
    assert pace.size == SMALLEST_PIECE
    for _ in range(5):
        pace.left(Pace.QUICK - 1)
    assert pace.size == LARGEST_PIECE


def test_a_question_is_asked_once() -> None:
    sending = Sending(7, stream=True)
    assert sending.question() == Piece(7, 0, b"", True)
    assert sending.question() is None
    assert sending.room(100, 100) == 0
    sending.heard(Taken(7, 40, 60), 100)
    assert (sending.cursor, sending.room(100, 100)) == (40, 20)


def test_an_answer_about_an_earlier_attempt_is_found_out_with_the_end() -> None:
    sending = Sending(1, stream=False)
    assert sending.question() is not None
    sending.heard(Taken(1, 300, 1000), 300)
    assert sending.room(300, 100) == 0
    sending.said_end = True
    sending.heard(Taken(1, 0, 1000), 300)
    assert not sending.said_end
    assert sending.room(300, 100) == 100
    assert sending.piece(b"x" * 100) == Piece(1, 0, b"x" * 100)
