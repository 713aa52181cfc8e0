"""Calls that are made at once."""

from __future__ import annotations

from threading import Barrier

import pytest

from lasthop.pipeline.together import AT_ONCE, together


def test_calls_run_at_once_and_are_waited_for() -> None:
    met = Barrier(AT_ONCE, timeout=30)
    done: list[str] = []

    def call(name: str, *, last: str) -> None:
        met.wait()
        done.append(name + last)

    with together() as begin:
        for number in range(AT_ONCE):
            begin(call, str(number), last="!")
    assert sorted(done) == [f"{number}!" for number in range(AT_ONCE)]


def test_a_failure_is_told_when_the_others_have_come_to_their_end() -> None:
    done: list[int] = []

    def fails() -> None:
        raise ValueError("no room")

    def all_of_them() -> None:
        with together() as begin:
            begin(fails)
            for number in range(10):
                begin(done.append, number)

    with pytest.raises(ValueError, match="no room"):
        all_of_them()
    assert sorted(done) == [*range(10)]
