"""A version on trial is taken back when it loses more for certain, and promoted when it is over."""

from __future__ import annotations

from random import Random

import pytest

from lasthop.clock import HOUR
from lasthop.decision.trial_verdict import (
    Counts,
    Outlook,
    TrialGroup,
    TrialVerdict,
    group_of,
    judge_trial,
    loss_of,
)

NAMES = [f"device-{number}" for number in range(4000)]


def readers(loss: float, *, devices: int = 40, messages: int = 100, seed: int = 1) -> Counts:
    """Devices of which each loses a share of its own, around this one."""
    random = Random(seed)
    found = []
    for _ in range(devices):
        share = min(1.0, max(0.0, random.gauss(loss, loss / 3)))
        lost = sum(random.random() < share for _ in range(messages))
        found.append((messages - lost, lost))
    return found


def verdict(trial: Counts, control: Counts, *, hours: float = 1, lasts: float = 20) -> TrialVerdict:
    return judge_trial(
        loss_of(trial),
        loss_of(control),
        tolerated=0.01,
        age=round(hours * HOUR),
        lasts=round(lasts * HOUR) or None,
    )


def test_the_devices_of_a_trial_are_as_many_as_asked_and_stay_when_there_are_more() -> None:
    groups = {p: {n: group_of("v1", "app", n, p) for n in NAMES} for p in (5, 20, 80, 100)}
    for percent, group in groups.items():
        tried = sum(part is TrialGroup.TRIAL for part in group.values())
        assert tried / len(NAMES) == pytest.approx(percent / 100, abs=0.02)
    for name in NAMES:
        if groups[5][name] is TrialGroup.TRIAL:
            assert groups[20][name] is TrialGroup.TRIAL
    control = sum(part is TrialGroup.CONTROL for part in groups[5].values())
    assert control / len(NAMES) == pytest.approx(0.05, abs=0.02)
    assert TrialGroup.CONTROL not in groups[100].values()


def test_another_version_is_tried_on_other_devices() -> None:
    first, second = (
        {n for n in NAMES if group_of(v, "app", n, 5) is TrialGroup.TRIAL} for v in ("v1", "v2")
    )
    assert len(first & second) < 0.2 * len(first)


def test_a_version_that_loses_more_is_taken_back_with_its_figures_as_the_reason() -> None:
    found = verdict(readers(0.12), readers(0.05, seed=2))
    assert found.outlook is Outlook.TAKE_BACK
    assert "of 4000 messages on trial" in found.reason


@pytest.mark.parametrize("loss", [0.0, 0.03, 0.05])
def test_a_version_that_loses_no_more_goes_on_and_is_promoted_in_the_end(loss: float) -> None:
    trial, control = readers(loss), readers(0.05, seed=2)
    assert verdict(trial, control).outlook is Outlook.WAIT
    assert verdict(trial, control, hours=20).outlook is Outlook.PROMOTE
    assert verdict(trial, control, hours=2000, lasts=0).outlook is Outlook.WAIT


def test_a_rise_at_the_last_moment_counts_more_than_the_end() -> None:
    assert verdict(readers(0.2), readers(0.05), hours=30).outlook is Outlook.TAKE_BACK


def test_chance_takes_nothing_back() -> None:
    """Equal policies, judged a thousand times."""
    for seed in range(1000):
        trial = readers(0.05, devices=12, messages=30, seed=seed)
        control = readers(0.05, devices=12, messages=30, seed=seed + 10_000)
        assert verdict(trial, control).outlook is Outlook.WAIT, seed


def test_a_few_devices_are_no_evidence() -> None:
    found = verdict(readers(0.9, devices=4), readers(0.01))
    assert found.outlook is Outlook.WAIT
    assert "not comparable" in verdict(readers(0.9, devices=4), readers(0.01), hours=20).reason


def test_one_device_of_many_that_loses_much_is_one_device() -> None:
    trial = [(100, 0)] * 30 + [(0, 100)]
    assert verdict(trial, [(100, 0)] * 30).outlook is Outlook.WAIT


def test_nothing_read_is_no_loss() -> None:
    assert loss_of([(0, 0), (0, 0)]) == (0, 0, 0.0, 0.0)
