"""Watches over the trial of a learned version, and carries out what administrators decide about it.

Once a minute the live loss of the devices on trial is compared with that of as many others
(`decision/trial_verdict.py`). The files of the policy store say what was decided, and
`runtime/learned.py` puts it into effect. No Java, no Spark, and nothing per message.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

import structlog

from lasthop.access.live_gateway import LiveGateway
from lasthop.access.rest.policy_manager import GroupStatus, PolicyStatus, TrialStatus
from lasthop.access.rest.times import datetime_of
from lasthop.clock import HOUR
from lasthop.decision.trial_verdict import (
    GroupLoss,
    Outlook,
    TrialGroup,
    TrialVerdict,
    judge_trial,
    loss_of,
)
from lasthop.errors import LasthopError
from lasthop.policy.trial import PolicyTrial
from lasthop.runtime.learned import LearnedPolicies
from lasthop.runtime.settings.capacity import Topics

log = structlog.get_logger(__name__)

T = TypeVar("T")

BETWEEN_JUDGEMENTS = 60.0
"""Seconds between two judgements: a loss shows only after messages have expired, so that hours
count and seconds do not."""


class PolicyTrials:
    """The trials of a gateway: judges the one that is running, and changes it."""

    def __init__(self, learned: LearnedPolicies, live: LiveGateway, settings: Topics) -> None:
        self._learned = learned
        self._live = live
        self._tolerated = settings.tolerated_loss
        self._lasts = round(settings.trial_hours * HOUR) or None

    async def run(self) -> None:
        """Judge the trial that is running, once a minute, until cancelled."""
        while True:
            await asyncio.sleep(BETWEEN_JUDGEMENTS)
            try:
                await self.judge()
            except (LasthopError, OSError) as error:
                log.error("policy_trial_not_judged", reason=str(error))

    async def judge(self) -> TrialVerdict | None:
        """Judge the trial that is running, and act on the verdict; None if there is none."""
        tried = self._learned.tried
        if tried is None:
            return None
        verdict = judge_trial(
            self._loss(TrialGroup.TRIAL),
            self._loss(TrialGroup.CONTROL),
            tolerated=self._tolerated,
            age=self._live.now() - tried.trial.since,
            lasts=self._lasts,
        )
        store, version = self._learned.policy_store, tried.trial.version
        if verdict.outlook is not Outlook.WAIT:
            act = store.promote if verdict.outlook is Outlook.PROMOTE else store.take_back
            await asyncio.to_thread(act, verdict.reason, self._live.now(), version=version)
        return verdict

    async def status(self) -> PolicyStatus:
        """Return which versions are in force and on trial, as the gateway uses them."""
        trial = await asyncio.to_thread(self._learned.policy_store.trial)
        return PolicyStatus(
            self._learned.index.version,
            self._learned.refused,
            None if trial is None else self._status(trial),
        )

    async def widen(self, percent: float) -> PolicyStatus:
        """Change the share of devices of the trial; raise `Conflict` if there is none."""
        return await self._changed(lambda: self._learned.policy_store.widen(percent))

    async def promote(self, reason: str) -> PolicyStatus:
        """Put the version on trial in force; raise `Conflict` if there is none."""
        now = self._live.now()
        return await self._changed(lambda: self._learned.policy_store.promote(reason, now))

    async def take_back(self, reason: str) -> PolicyStatus:
        """End the trial; raise `Conflict` if there is none."""
        now = self._live.now()
        return await self._changed(lambda: self._learned.policy_store.take_back(reason, now))

    async def _changed(self, act: Callable[[], object]) -> PolicyStatus:
        """Change the files, and have the gateway follow them before anybody is answered."""

        def change() -> bool:
            act()
            return self._learned.poll()

        if await asyncio.to_thread(change):
            await self.follow()
        return await self.status()

    async def follow(self) -> None:
        """Let all feeds use what is in force and on trial now."""
        await self._live.call(lambda g, now: g.ranked.policies_changed(now, self._learned.news()))

    def _loss(self, group: TrialGroup) -> GroupLoss:
        return loss_of(self._live.look(lambda gateway: gateway.ranked.watches.counts(group)))

    def _status(self, trial: PolicyTrial) -> TrialStatus:
        ended = trial.ended_at
        return TrialStatus(
            version=trial.version,
            state=trial.state,
            percent=trial.percent,
            since=datetime_of(trial.since),
            ended_at=None if ended is None else datetime_of(ended),
            reason=trial.reason,
            trial=self._group(TrialGroup.TRIAL),
            control=self._group(TrialGroup.CONTROL),
        )

    def _group(self, group: TrialGroup) -> GroupStatus:
        found = self._loss(group)
        return GroupStatus(found.devices, found.messages, round(found.loss, 6))
