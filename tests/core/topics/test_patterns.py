"""Subscriptions with wildcards, checked against a matcher that tries everything."""

from __future__ import annotations

from functools import cache

import pytest
from hypothesis import given, strategies as st

from lasthop.core.names import check_topic
from lasthop.core.topics.patterns import PatternTree, is_pattern
from lasthop.decision.volume.terms import TopicTerms
from lasthop.errors import InvalidRequest
from tests.core.rig import APP, Rig, to

words = st.sampled_from(["a", "b", "c"])
topics = st.lists(words, min_size=1, max_size=5).map(".".join)
patterns = st.lists(st.sampled_from(["a", "b", "*", "#"]), min_size=1, max_size=5).map(".".join)


def fits(pattern: str, topic: str) -> bool:
    """By the definition, word by word."""
    asked, given_ = tuple(pattern.split(".")), tuple(topic.split("."))

    @cache
    def rest(p: int, t: int) -> bool:
        if p == len(asked):
            return t == len(given_)
        if asked[p] == "#":
            return any(rest(p + 1, then) for then in range(t, len(given_) + 1))
        return t < len(given_) and asked[p] in ("*", given_[t]) and rest(p + 1, t + 1)

    return rest(0, 0)


@given(st.lists(st.tuples(patterns, st.integers(0, 5)), max_size=20), st.lists(topics))
def test_those_and_only_those_who_fit_are_found(
    subscriptions: list[tuple[str, int]], published: list[str]
) -> None:
    tree: PatternTree[str] = PatternTree()
    kept: set[tuple[str, int]] = set()
    for pattern, number in subscriptions:
        assert tree.add(pattern, number, f"{number}") == ((pattern, number) not in kept)
        kept.add((pattern, number))
    for topic in published:
        expected = sorted({number for pattern, number in kept if fits(pattern, topic)})
        assert list(tree.match(topic)) == expected
    for pattern, number in subscriptions[::2]:
        assert tree.remove(pattern, number) == ((pattern, number) in kept)
        kept.discard((pattern, number))
    assert len(tree) == len(kept)
    for topic in published:
        expected = sorted({number for pattern, number in kept if fits(pattern, topic)})
        assert list(tree.match(topic)) == expected
    for pattern, number in list(kept):
        tree.remove(pattern, number)
    assert not tree._root.next, "words that nobody needs are forgotten"


@pytest.mark.parametrize(
    "pattern, topic, fit",
    [
        ("stock.*", "stock.ibm", True),
        ("stock.*", "stock", False),
        ("stock.*", "stock.ibm.nyse", False),
        ("stock.#", "stock", True),
        ("stock.#", "stock.ibm.nyse", True),
        ("#", "anything.at.all", True),
        ("*.ibm.#", "stock.ibm", True),
        ("#.nyse", "stock.ibm.nyse", True),
        ("#.nyse", "stock.ibm", False),
    ],
)
def test_as_amqp_has_it(pattern: str, topic: str, fit: bool) -> None:
    tree: PatternTree[None] = PatternTree()
    tree.add(pattern, 1, None)
    assert bool(tree.match(topic)) == fit == fits(pattern, topic)
    assert is_pattern(pattern)


def test_many_hashes_cost_no_more_than_they_should() -> None:
    tree: PatternTree[None] = PatternTree()
    tree.add(".".join(["#"] * 30 + ["z"]), 1, None)
    assert tree.match(".".join(["a"] * 60)) == {}


class TestInTheGateway:
    def test_a_device_that_subscribed_twice_gets_it_once(self) -> None:
        rig = Rig()
        phone, tablet = rig.connect("phone"), rig.connect("tablet")
        for topic in ("news.#", "news.*", "news.oslo"):
            assert rig.gateway.topics.subscribe(APP, "phone", topic, rig.now)
        assert not rig.gateway.topics.subscribe(APP, "phone", "news.#", rig.now)
        rig.gateway.topics.subscribe(APP, "tablet", "*.oslo", rig.now)
        rig.publish(to("topic:news.oslo", b"a"), to("topic:news", b"b"), to("topic:sport", b"c"))
        rig.run()
        assert rig.bodies(phone) == [b"a", b"b"]
        assert rig.bodies(tablet) == [b"a"]

    def test_patterns_survive_a_crash_and_end(self) -> None:
        rig = Rig()
        rig.connect("phone")
        rig.gateway.topics.subscribe(APP, "phone", "news.#", rig.now)
        rig.run()
        rig.crash()
        phone = rig.resume("phone")
        rig.publish(to("topic:news.x", b"a"))
        rig.run()
        assert rig.bodies(phone) == [b"a"]
        assert rig.gateway.topics.unsubscribe(APP, "phone", "news.#", rig.now)
        assert not rig.gateway.topics.unsubscribe(APP, "phone", "news.#", rig.now)
        rig.publish(to("topic:news.x", b"b"))
        rig.run()
        assert rig.bodies(phone) == [b"a"]

    def test_a_removed_device_leaves_no_pattern_behind(self) -> None:
        rig = Rig()
        rig.connect("phone")
        rig.gateway.topics.subscribe(APP, "phone", "#", rig.now)
        rig.gateway.admin.remove(APP, "phone", rig.now)
        rig.publish(to("topic:news", b"a"))
        rig.run()
        assert not rig.gateway.deliveries.items

    @pytest.mark.parametrize("topic", ["news.*x", "#news", "news..a", "*."])
    def test_a_wildcard_is_a_whole_word(self, topic: str) -> None:
        rig = Rig()
        rig.connect("phone")
        with pytest.raises(InvalidRequest, match="a topic must be words separated by dots"):
            rig.gateway.topics.subscribe(APP, "phone", topic, rig.now)

    def test_nothing_is_published_to_a_pattern(self) -> None:
        with pytest.raises(InvalidRequest):
            check_topic("news.*")

    def test_terms_are_for_one_topic(self) -> None:
        rig = Rig()
        rig.connect("phone")
        with pytest.raises(
            InvalidRequest, match="terms can be set for one topic, not for a pattern"
        ):
            rig.gateway.topics.subscribe(APP, "phone", "news.*", rig.now, TopicTerms())
