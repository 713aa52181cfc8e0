"""The policies that the pipeline has learned, loaded while the gateway runs.

The policy store's pointer, which names the present version, is checked every second by reading one
small file, and so is the name of the version on trial. A new version is read, checked as a whole
and tried out before it replaces the old one; if anything is wrong with it, the old version stays in
force, and the log says why, once.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import structlog

from lasthop.clock import HOUR, Micros
from lasthop.decision.policies import POLICIES, Tuning
from lasthop.decision.policies.memory import recall
from lasthop.decision.trial_verdict import TrialGroup, group_of
from lasthop.decision.volume.policy_choice import DEFAULT_POLICY, PolicyChoice, PolicyNews
from lasthop.errors import InvalidRequest, LasthopError
from lasthop.policy import BUILT_IN, Forwarding, Policies, PolicyIndex
from lasthop.policy.store import POINTER, TRIAL, PolicyStore
from lasthop.policy.trial import PolicyTrial

log = structlog.get_logger(__name__)


LOOK = 1.0
"""Seconds between two checks of the pointer."""


@dataclass(frozen=True, slots=True)
class TriedVersion:
    """A version on trial, indexed like the one in force."""

    trial: PolicyTrial
    index: PolicyIndex

    @property
    def name(self) -> str:
        """The name of the trial: a version may be tried again later."""
        return f"{self.trial.version}/{self.trial.since}"


class LearnedPolicies:
    """The gateway's source of policies: the learned version in force, the one on trial, and how
    they are replaced."""

    def __init__(self, directory: Path, default: PolicyChoice | None = None) -> None:
        """`default` is the choice as long as nothing was learned; None: that of each
        subscription."""
        self._default = default
        self.policy_store = PolicyStore(directory)
        self._pointer = directory / POINTER
        self._trial = directory / TRIAL
        self._seen: _Mark | None = None
        self._seen_trial: _Mark | None = None
        self.index = PolicyIndex(BUILT_IN)
        """The policies in force. The index is replaced as a whole, so that code that holds an index
        always sees one consistent version."""
        self.tried: TriedVersion | None = None
        """The version on trial, which decides for a share of the devices."""
        self.refused = 0
        """The number of learned versions that were refused."""
        self._news: list[PolicyNews] = []
        self._polling = threading.Lock()

    def choose(
        self, app: str, device: str, topic: str, default: str = DEFAULT_POLICY
    ) -> PolicyChoice:
        """Return the policy learned for this device and topic, with its version for the event
        log."""
        index, part = self.index, self.trial(app, device)
        if part is not None and part[1] is TrialGroup.TRIAL and self.tried is not None:
            index = self.tried.index
        if index.policies is BUILT_IN:
            return self._default or PolicyChoice(default)
        found = index.forwarding(app, device, topic)
        forwarding = found.forwarding
        return PolicyChoice(
            policy=forwarding.policy,
            version=found.version,
            prefetch_limit=forwarding.prefetch_limit,
            expiration_threshold=forwarding.expiration_threshold,
            price=forwarding.price,
            memory=forwarding.memory,
        )

    def trial(self, app: str, device: str) -> tuple[str, TrialGroup] | None:
        """Return the name of the trial that is running and the part that a device has in it."""
        tried = self.tried
        if tried is None:
            return None
        group = group_of(tried.trial.version, app, device, tried.trial.percent)
        return None if group is None else (tried.name, group)

    def heartbeat(self, network: str) -> Micros | None:
        """Return the longest silence that devices have found to work on a network, in microseconds,
        or None. A network is shared by many devices, so that a version on trial says nothing."""
        return self.index.heartbeat(network)

    def news(self) -> list[PolicyNews]:
        """Return what became of versions on trial since the last call."""
        news, self._news = self._news, []
        return news

    async def follow(self, changed: Callable[[], Awaitable[object]]) -> None:
        """Check for a new version every `LOOK` seconds, until cancelled; `changed` is awaited after
        each change."""
        while True:
            await asyncio.sleep(LOOK)
            # Reading a version with many devices takes a while, so do it off the event loop.
            if await asyncio.to_thread(self.poll):
                await changed()

    def poll(self) -> bool:
        """Load what the two pointers name, where they have changed; return whether anything else is
        in force or on trial than before."""
        with self._polling:
            in_force = self._poll_pointer()
            return self._poll_trial() or in_force

    def _poll_pointer(self) -> bool:
        mark = _mark(self._pointer)
        if mark is None or mark == self._seen:
            return False
        self._seen = mark
        try:
            policies = self.policy_store.current()
            if policies is None or policies.version == self.index.version:
                return False
            index = tried_out(policies)
        except (LasthopError, OSError) as error:
            self.refused += 1
            log.error("policy_refused", reason=str(error), in_force=self.index.version)
            return False
        log.info("policy_loaded", version=index.version, before=self.index.version)
        self.index = index
        return True

    def _poll_trial(self) -> bool:
        mark = _mark(self._trial)
        if mark is None or mark == self._seen_trial:
            return False
        self._seen_trial = mark
        before = self.tried
        try:
            trial = self.policy_store.trial()
            running = trial is not None and trial.running
            if trial is None or (not running and before is None):
                return False
            if not running:
                self.tried = None
            elif before is not None and before.trial.version == trial.version:
                self.tried = TriedVersion(trial, before.index)
            else:
                on_trial = self.policy_store.on_trial()
                self.tried = on_trial and TriedVersion(trial, tried_out(on_trial[1]))
        except (LasthopError, OSError) as error:
            self.refused += 1
            self.tried = None
            log.error("policy_refused", reason=str(error), in_force=self.index.version)
            return before is not None
        state = "on trial" if trial.running else trial.state
        log.info(
            "policy_trial",
            state=state,
            version=trial.version,
            percent=trial.percent,
            reason=trial.reason,
        )
        reason = f"{state}: {trial.reason}" if trial.reason else state
        self._news.append(PolicyNews(trial.version, round(trial.percent), reason))
        return True


_Mark: TypeAlias = tuple[int, int, int]
"""What tells one content of a small file from another: it is replaced as a whole."""


def _mark(path: Path) -> _Mark | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size


def tried_out(policies: Policies) -> PolicyIndex:
    """Index a version, and try each of its policies out; raise `InvalidRequest` if one fails."""
    index = PolicyIndex(policies)
    for forwarding in index.forwardings():
        try_out(forwarding)
    return index


def try_out(forwarding: Forwarding) -> None:
    """Try a policy out: make it and call every method that the gateway will call; raise
    `InvalidRequest` if that fails."""
    if forwarding.policy not in POLICIES:
        raise InvalidRequest("unknown policy", policy=forwarding.policy, known=", ".join(POLICIES))
    try:
        policy = POLICIES[forwarding.policy](
            Tuning(
                max=1,
                prefetch_limit=forwarding.prefetch_limit,
                expiration_threshold=forwarding.expiration_threshold,
                price=forwarding.price,
            )
        )
        recall(policy, forwarding.memory)
        policy.room(on_device=1)
        policy.worth(lifetime=HOUR, now=HOUR)
        policy.arrived(lifetime=HOUR, now=HOUR)
        policy.rank_fell(age=HOUR)
        policy.read(wanted=1, offline=True, at=2 * HOUR)
        policy.forwarded()
    except Exception as error:
        # A learned memory may break a policy in any way; let it fail here rather than in a feed.
        raise InvalidRequest(
            f"a learned policy does not work: {error!r}", policy=forwarding.policy
        ) from None
