"""What messages take out of a battery, as a command."""

from __future__ import annotations

import json

import pytest

from lasthop.clock import HOUR, MINUTE
from lasthop.runtime.cli import main
from lasthop.simulation.odin.energy import OURS, energy, idle, operation
from lasthop.simulation.odin.radio import UMTS, WIFI
from lasthop.simulation.odin.setting import Setting


def test_few_messages_on_3g_cost_one_wake_and_one_tail_each() -> None:
    """Ten minutes apart, a message wakes the radio, which then stays up for its two tails."""
    rows = energy(UMTS, Setting(length=2 * HOUR, every=10 * MINUTE))
    spent = {row.service: row.radio_joules for row in rows}
    dedicated, shared = UMTS.tail
    one = dedicated.watts * (UMTS.wake + dedicated.lasts) / 1e6 + shared.watts * shared.lasts / 1e6
    asleep = UMTS.asleep * 7200
    assert spent["APNs"] == pytest.approx(12 * one + asleep, rel=0.15)
    # Ours has heartbeats as well, fewer than it would have without messages.
    alone = idle(UMTS, 2 * HOUR)
    assert spent["APNs"] < spent[OURS] < spent["APNs"] + alone


def test_messages_that_keep_the_radio_up_cost_more_the_more_seldom_they_share_a_wake() -> None:
    spent = [
        energy(UMTS, Setting(length=HOUR, every=every))[0].radio_joules / (HOUR // every)
        for every in (5_000_000, 20_000_000, 60_000_000)
    ]
    assert spent == sorted(spent)


def test_wifi_is_cheaper_and_an_idle_phone_lasts_longest() -> None:
    setting = Setting(length=HOUR)
    for over_wifi, over_3g in zip(energy(WIFI, setting), energy(UMTS, setting), strict=True):
        assert over_wifi.radio_joules < over_3g.radio_joules
        assert over_3g.hours < over_wifi.hours < over_wifi.idle_hours
        assert over_wifi.hours == operation(over_wifi.radio_joules, HOUR)


def run(*words: str) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["sim", "energy", "--hours", "1", "--every", "60", *words])
    assert ended.value.code == 0


def test_the_command_says_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    run("--bearer", "3g", "--json")
    said = json.loads(capsys.readouterr().out)
    rows = energy(UMTS, Setting(length=HOUR, every=MINUTE))
    assert [row["service"] for row in said["services"]] == [row.service for row in rows]
    assert [row["radio_joules"] for row in said["services"]] == [r.radio_joules for r in rows]
    assert said["heartbeats"] == {"3g": idle(UMTS, HOUR)}
    run()
    table = capsys.readouterr().out
    assert "lasthop" in table
    assert "wifi" in table
