"""Ids that sort by time, and are never given out twice."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from lasthop.message import (
    EPOCH_MS,
    MAX_KEY,
    MAX_NODE,
    KeyMaker,
    Target,
    TargetKind,
    first_key_at,
    format_id,
    key_time,
    parse_id,
    successor,
)

START = 1_763_200_000_000_000


def maker(after: int = 0, node: int = 3) -> KeyMaker:
    return KeyMaker(node=node, after=after, random64=lambda: 42)


@given(st.lists(st.integers(START, START + 5000) | st.integers(0, START), max_size=50))
def test_keys_only_grow_whatever_the_clock_does(times: list[int]) -> None:
    keys = maker()
    made = [keys.key(now) for now in times]
    assert made == sorted(set(made))


def test_more_keys_than_a_millisecond_holds_borrow_from_the_next() -> None:
    keys = maker()
    made = [keys.key(START) for _ in range(10_000)]
    assert made == sorted(set(made))
    assert [successor(key) for key in made[:-1]] == made[1:]
    assert key_time(made[0]) == START
    assert key_time(made[-1]) == START + 2000


@given(st.integers(0, MAX_KEY >> 1), st.integers(0, MAX_NODE))
def test_a_new_life_begins_beyond_the_last_key_of_the_old_one(after: int, node: int) -> None:
    assert maker(after, node).key(0) > after


def test_a_key_tells_its_time_and_no_key_of_that_time_is_less() -> None:
    key = maker().key(START + 1999)
    assert key_time(key) == START + 1000
    assert first_key_at(START + 1999, node=3) == key
    assert first_key_at(0) == 0
    assert key_time(0) == EPOCH_MS * 1000


@given(st.integers(0, MAX_KEY), st.integers(0, 2**64 - 1))
def test_an_id_is_read_back(key: int, salt: int) -> None:
    text = format_id(key, salt)
    assert len(text) == 32
    assert parse_id(text) == (key, salt)
    assert parse_id(text[:16]) == (key, None)


@pytest.mark.parametrize("text", ["", "ff", "F" * 16, "8" + "0" * 15, "0" * 31, "0" * 15 + "g"])
def test_what_is_no_id_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="a message id"):
        parse_id(text)


@pytest.mark.parametrize("node", [-1, MAX_NODE + 1])
def test_a_node_beyond_its_bits_is_refused(node: int) -> None:
    with pytest.raises(ValueError, match="node must be"):
        maker(node=node)


def test_a_target_is_written_as_kind_and_name() -> None:
    assert str(Target(TargetKind.TOPIC, "news")) == "topic:news"
