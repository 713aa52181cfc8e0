"""Subscriptions follow the context: by condition, by parameter, and only by their difference."""

from __future__ import annotations

import pytest

from lasthop.decision.volume.context import ContextRules, Mute, Rule, Subscribe, Unsubscribe
from lasthop.decision.volume.subscription import Mode, Subscription

CALM, LOUD = Subscription(max=5), Subscription(mode=Mode.ON_LINE)


def test_a_rule_applies_while_its_conditions_hold() -> None:
    rules = ContextRules(
        [Rule(topic="traffic", subscription=CALM, when={"city": frozenset({"Oslo", "Bergen"})})]
    )
    assert rules.update({}) == []
    assert rules.update({"city": "Oslo"}) == [Subscribe("traffic", CALM)]
    assert rules.update({"city": "Bergen"}) == []
    assert rules.update({"city": "Paris"}) == [Unsubscribe("traffic")]


def test_a_topic_is_filled_in_from_the_context() -> None:
    rules = ContextRules([Rule(topic="traffic/{city}/{mode}", subscription=CALM)])
    assert rules.update({"city": "Oslo"}) == []
    assert rules.update({"city": "Oslo", "mode": "car"}) == [Subscribe("traffic/Oslo/car", CALM)]
    assert rules.update({"city": "Paris", "mode": "car"}) == [
        Unsubscribe("traffic/Oslo/car"),
        Subscribe("traffic/Paris/car", CALM),
    ]


@pytest.mark.parametrize("value", ["", "a/b", "a\n", "\0"])
def test_a_device_fills_in_a_level_and_writes_no_names(value: str) -> None:
    rules = ContextRules([Rule(topic="traffic/{city}", subscription=CALM)])
    assert rules.update({"city": value}) == []


@pytest.mark.parametrize("topic", ["{}", "{0}", "{a.b}", "{a[0]}", "{a!r}", "{a:>9}"])
def test_only_plain_names_stand_in_braces(topic: str) -> None:
    with pytest.raises(ValueError, match="plain name"):
        Rule(topic=topic, subscription=CALM)


def test_a_context_makes_a_topic_quiet_and_the_first_rule_decides() -> None:
    busy = {"calendar": frozenset({"meeting"})}
    rules = ContextRules(
        [
            Rule(topic="news", subscription=LOUD, when={"at": frozenset({"home"})}),
            Rule(topic="news", subscription=CALM, quiet_when=busy),
        ]
    )
    assert rules.update({"calendar": "meeting"}) == [Subscribe("news", CALM), Mute("news", True)]
    assert rules.update({"at": "home", "calendar": "meeting"}) == [
        Subscribe("news", LOUD),
        Mute("news", False),
    ]
    assert rules.update({}) == [Subscribe("news", CALM)]
