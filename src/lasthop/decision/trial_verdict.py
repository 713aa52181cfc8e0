"""Whether a learned version that is on trial may go on: its live loss beside that of other devices.

A new version is tried on a share of the devices, which its name and theirs decide. As many other
devices are watched in the same way. The verdict compares both groups: the version is taken back as
soon as its loss is higher for certain, and promoted when the trial is over.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from hashlib import blake2b
from math import sqrt
from typing import NamedTuple, TypeAlias

from lasthop.clock import Micros

FEWEST_DEVICES = 5
"""The least number of devices in each group: with fewer, one user's bad day would decide."""

FEWEST_MESSAGES = 100
"""The least number of messages that were read or lost in each group."""

CERTAIN = 4.0
"""How many standard errors a loss must be higher by: a trial is judged once a minute, so that twice
the error would be exceeded by chance, and with few devices three times it as well."""


class TrialGroup(StrEnum):
    """Which part a device has in a trial."""

    TRIAL = "trial"
    """The version on trial decides for the device."""
    CONTROL = "control"
    """The version in force decides for the device, which is watched for comparison."""


class Outlook(StrEnum):
    """What is to become of the version on trial."""

    WAIT = "wait"
    PROMOTE = "promote"
    TAKE_BACK = "take back"


Counts: TypeAlias = Sequence[tuple[int, int]]
"""How many messages were read and how many lost, for each device."""


class GroupLoss(NamedTuple):
    """The live loss of a group of devices."""

    devices: int
    messages: int
    loss: float
    error: float
    """The standard error of the loss, over devices."""

    @property
    def enough(self) -> bool:
        """Whether there is enough to judge by."""
        return self.devices >= FEWEST_DEVICES and self.messages >= FEWEST_MESSAGES


class TrialVerdict(NamedTuple):
    """What is to become of a version, and why."""

    outlook: Outlook
    reason: str


def group_of(version: str, app: str, device: str, percent: float) -> TrialGroup | None:
    """Return the part of a device in the trial of a version; None for neither. A larger percentage
    keeps the devices that were on trial before."""
    text = "\0".join((version, app, device)).encode()
    place = int.from_bytes(blake2b(text, digest_size=8).digest()) / 2**64 * 100
    if place < percent:
        return TrialGroup.TRIAL
    return TrialGroup.CONTROL if place >= 100 - percent else None


def loss_of(counts: Counts) -> GroupLoss:
    """Return the live loss of a group, with devices as the independent units."""
    counted = [(read, lost) for read, lost in counts if read or lost]
    whole = sum(read + lost for read, lost in counted)
    if not whole:
        return GroupLoss(len(counted), 0, 0.0, 0.0)
    loss = sum(lost for _, lost in counted) / whole
    squares = sum((lost - loss * (read + lost)) ** 2 for read, lost in counted)
    correction = len(counted) / max(1, len(counted) - 1)
    return GroupLoss(len(counted), whole, loss, sqrt(squares * correction) / whole)


def judge_trial(
    trial: GroupLoss,
    control: GroupLoss,
    *,
    tolerated: float,
    age: Micros,
    lasts: Micros | None,
) -> TrialVerdict:
    """Return what is to become of a version that has been on trial for `age`. `tolerated` is the
    share by which its loss may be higher; `lasts` is the length of a trial, None: no end."""
    if trial.enough and control.enough:
        rise = trial.loss - control.loss
        error = sqrt(trial.error**2 + control.error**2)
        if rise - CERTAIN * error > tolerated:
            return TrialVerdict(
                Outlook.TAKE_BACK,
                f"live loss is {trial.loss:.1%} of {trial.messages} messages on trial, and"
                f" {control.loss:.1%} of {control.messages} elsewhere",
            )
    if lasts is not None and age >= lasts:
        compared = "no higher for certain" if trial.enough and control.enough else "not comparable"
        return TrialVerdict(Outlook.PROMOTE, f"the trial is over, and live loss is {compared}")
    return TrialVerdict(Outlook.WAIT, "")
