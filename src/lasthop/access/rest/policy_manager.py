"""The versions of the learned policies in a gateway, as the REST door sees and changes them."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol

import msgspec


class GroupStatus(msgspec.Struct):
    """The live loss of a group of devices since the trial began or the gateway was started."""

    devices: int
    """Devices whose user has read or lost something."""
    messages: int
    """Messages that were read or lost."""
    loss: float
    """The share of them that was lost."""


class TrialStatus(msgspec.Struct, kw_only=True):
    """The trial of a learned version that is running, or the last one."""

    version: str
    state: str
    """Whether the trial is `running`, or its version was `promoted` or `taken back`."""
    percent: float
    since: datetime
    ended_at: datetime | None
    reason: str
    trial: GroupStatus
    control: GroupStatus


class PolicyStatus(msgspec.Struct):
    """Which versions of the learned policies are in force and on trial."""

    in_force: str
    """The version for all other devices; `built-in` before the first."""
    refused: int
    """How many versions the gateway has refused since it was started."""
    trial: TrialStatus | None


class PolicyManager(Protocol):
    """Manages the versions of the learned policies of a gateway."""

    async def status(self) -> PolicyStatus:
        """Return which versions are in force and on trial."""
        ...

    async def widen(self, percent: float) -> PolicyStatus:
        """Change the share of devices of the trial; raise `Conflict` if there is none."""
        ...

    async def promote(self, reason: str) -> PolicyStatus:
        """Put the version on trial in force; raise `Conflict` if there is none."""
        ...

    async def take_back(self, reason: str) -> PolicyStatus:
        """End the trial; raise `Conflict` if there is none."""
        ...
