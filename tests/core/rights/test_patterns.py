"""Patterns of rules against all topics of a small alphabet."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given, strategies as st

from lasthop.core.rights.patterns import (
    TargetPattern,
    check_pattern,
    covers,
    fits,
    meets,
    pieces_of,
    words_of,
)
from lasthop.core.topics.patterns import PatternTree
from lasthop.errors import InvalidRequest

TOPICS = [".".join(words) for n in range(1, 6) for words in product("abc", repeat=n)]
patterns = st.lists(st.sampled_from(["a", "b", "*", "#"]), min_size=1, max_size=4).map(".".join)


def topics_of(pattern: str) -> set[str]:
    """The topics of a pattern, by the tree that finds subscribers."""
    tree: PatternTree[str] = PatternTree()
    tree.add(pattern, 1, pattern)
    return {topic for topic in TOPICS if tree.match(topic)}


@given(patterns, st.sampled_from(TOPICS))
def test_a_pattern_stands_for_the_topics_that_a_subscription_to_it_gets(
    pattern: str, topic: str
) -> None:
    expected = topic in topics_of(pattern)
    assert covers(words_of(pattern), words_of(topic)) == expected
    assert meets(words_of(pattern), words_of(topic)) == expected


@given(patterns, patterns)
def test_a_pattern_that_covers_another_has_all_its_topics(pattern: str, other: str) -> None:
    if covers(words_of(pattern), words_of(other)):
        assert topics_of(other) <= topics_of(pattern)


@given(patterns, patterns)
def test_patterns_meet_if_they_have_a_topic_in_common(pattern: str, other: str) -> None:
    # Five words are enough for a common topic of two patterns of four words, or it is longer.
    common = bool(topics_of(pattern) & topics_of(other))
    met = meets(words_of(pattern), words_of(other))
    assert met or not common
    longest = len(pattern.split(".")) + len(other.split("."))
    assert common or not met or longest > 5


@given(patterns)
def test_a_pattern_covers_itself(pattern: str) -> None:
    assert covers(words_of(pattern), words_of(pattern))
    assert covers(words_of("#"), words_of(pattern))


@pytest.mark.parametrize(
    "pattern, name, expected",
    [
        ("phone", "phone", True),
        ("phone", "phones", False),
        ("*", "", True),
        ("*", "a.b/c", True),
        ("phone-*", "phone-1", True),
        ("phone-*", "tablet-1", False),
        ("*-1", "phone-1", True),
        ("a*b*c", "axxbyyc", True),
        ("a*b*c", "axxcyyb", False),
        ("ab*ba", "aba", False),
    ],
)
def test_a_star_in_a_name_is_any_run_of_letters(pattern: str, name: str, expected: bool) -> None:
    assert fits(pieces_of(pattern), name) is expected


def test_names_of_callers_are_taken_literally() -> None:
    own = TargetPattern("topic:home.{user}.#", {"user": "*"})
    assert not own.covers("topic", "home.anna.door")
    assert not own.meets("topic", "home.anna.door")
    assert not TargetPattern("device:{device}-*", {"device": "*"}).covers("device", "phone-1")
    assert TargetPattern("topic:home.{user}.#", {"user": "anna"}).covers("topic", "home.anna.door")


def test_all_versions_of_a_service_are_one_target() -> None:
    assert TargetPattern("service:print").covers("service", "print@2")


@pytest.mark.parametrize("text", ["news", "topic:", "topic:a..b", "push:x", "device:a b"])
def test_a_wrong_pattern_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequest):
        check_pattern(text)
