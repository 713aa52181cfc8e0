"""The heartbeat behind address translators: what it finds, and what it saves."""

from __future__ import annotations

import json

import pytest

from lasthop.clock import DAY, SECOND
from lasthop.runtime.cli import main
from lasthop.simulation.heartbeat import TIMEOUTS, Translator, ideal, measure, rehearse


@pytest.mark.parametrize("seconds", TIMEOUTS)
def test_a_timeout_is_found_and_pings_are_within_a_tenth_of_the_ideal(seconds: int) -> None:
    row = measure("network", Translator.of(seconds), days=4)
    assert row.trials <= 8
    assert row.failures <= 3
    assert row.share >= 0.9
    assert row.lost == 0
    assert row.pings <= 1.1 * row.ideal + 1  # A trial now and then is one of them.


@pytest.mark.parametrize("seconds", TIMEOUTS)
def test_with_a_prior_one_trial_fails(seconds: int) -> None:
    row = measure("network", Translator.of(seconds), days=3, others=0.97 * seconds)
    assert row.failures == 1
    assert row.trials <= 4
    assert row.share >= 0.9


@pytest.mark.parametrize("before, after", [(300, 120), (120, 900), (1800, 30), (30, 1800)])
def test_a_change_is_followed_and_costs_at_most_one_working_connection(
    before: int, after: int
) -> None:
    translator = Translator(((0, before * SECOND), (2 * DAY, after * SECOND)))
    seen = rehearse(translator, days=8)
    assert sum(seen.lost) == (after < before)
    assert seen.pings[-1] <= 1.1 * ideal(after * SECOND) + 1
    assert seen.interval >= 0.9 * after * SECOND


def test_fixed_intervals_ping_too_often_or_lose_the_connection() -> None:
    often, seldom = measure("network", Translator.of(120), days=3).fixed
    assert often == (1920, 0)
    assert seldom[1] > 200
    assert measure("network", Translator.of(1800), days=3).fixed[1] == (288, 0)


def test_a_translator_forgets_what_is_silent_for_its_timeout_also_when_that_changes() -> None:
    translator = Translator(((0, 100), (1000, 10), (2000, 500)))
    assert not translator.forgets(0, 99)
    assert translator.forgets(0, 100)
    assert not translator.forgets(995, 1004)
    assert translator.forgets(989, 1000)
    assert translator.forgets(985, 2500)
    assert not translator.forgets(1995, 2400)


def test_the_command_prints_every_network(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["sim", "heartbeat", "--days", "3", "--json"])
    assert ended.value.code == 0
    report = json.loads(capsys.readouterr().out)
    assert len(report["networks"]) == 10
    assert report["fixed"] == [45, 300]
    with pytest.raises(SystemExit):
        main(["sim", "heartbeat", "--days", "3"])
    assert "1800 s, then 30 s" in capsys.readouterr().out
