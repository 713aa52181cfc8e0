"""A version on trial: the file beside `CURRENT` that names it, and what became of the last one."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from lasthop.clock import Micros
from lasthop.errors import InvalidRequest

TrialState: TypeAlias = Literal["running", "promoted", "taken back"]


class PolicyTrial(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The trial of one version: on which share of the devices, since when, and how it ended."""

    version: str
    sha256: str
    percent: float
    since: Micros
    state: TrialState = "running"
    reason: str = ""
    """Why the trial ended; empty while it is running."""
    ended_at: Micros | None = None

    def __post_init__(self) -> None:
        if not 0 < self.percent <= 100:
            raise InvalidRequest("a trial needs more than 0 and at most 100 percent of the devices")

    @property
    def running(self) -> bool:
        """Whether the version is on trial now."""
        return self.state == "running"


FIRST_PERCENT = 5.0
"""The share of devices that a new version goes to first: enough of a fleet of hundreds to compare,
and few enough that a bad version harms few."""
