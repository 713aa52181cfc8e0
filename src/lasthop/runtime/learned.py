"""The policies that the pipeline has learned, loaded while the gateway runs.

The policy store's pointer, which names the present version, is checked every second by reading one
small file. A new version is read, checked as a whole and tried before it replaces the old one; if
anything is wrong with it, the old version stays in force, and the log says why, once.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path

import structlog

from lasthop.clock import HOUR, Micros
from lasthop.decision.policies import POLICIES, Tuning
from lasthop.decision.policies.memory import recall
from lasthop.decision.volume.policy_choice import DEFAULT_POLICY, PolicyChoice
from lasthop.errors import InvalidRequest, LasthopError
from lasthop.policy import BUILT_IN, Forwarding, PolicyIndex
from lasthop.policy.store import POINTER, PolicyStore

log = structlog.get_logger(__name__)


LOOK = 1.0
"""Seconds between two checks of the pointer."""


class LearnedPolicies:
    """The gateway's source of policies: the learned version in force, and how it is replaced."""

    def __init__(self, directory: Path, default: PolicyChoice | None = None) -> None:
        """`default` is the choice as long as nothing was learned; None: that of each
        subscription."""
        self._default = default
        self._policy_store = PolicyStore(directory)
        self._pointer = directory / POINTER
        self._seen: tuple[int, int, int] | None = None
        self.index = PolicyIndex(BUILT_IN)
        """The policies in force. The index is replaced as a whole, so that code that holds an index
        always sees one consistent version."""
        self.refused = 0
        """The number of learned versions that were refused."""

    def choose(
        self, app: str, device: str, topic: str, default: str = DEFAULT_POLICY
    ) -> PolicyChoice:
        """Return the policy learned for this device and topic, with its version for the event
        log."""
        if self.index.policies is BUILT_IN:
            return self._default or PolicyChoice(default)
        found = self.index.forwarding(app, device, topic)
        forwarding = found.forwarding
        return PolicyChoice(
            policy=forwarding.policy,
            version=found.version,
            prefetch_limit=forwarding.prefetch_limit,
            expiration_threshold=forwarding.expiration_threshold,
            price=forwarding.price,
            memory=forwarding.memory,
        )

    def heartbeat(self, network: str) -> Micros | None:
        """Return the longest silence that devices have found to work on a network, in microseconds,
        or None."""
        return self.index.heartbeat(network)

    async def follow(self, changed: Callable[[], Awaitable[object]]) -> None:
        """Check for a new version every `LOOK` seconds, until cancelled; `changed` is awaited after
        each new version."""
        while True:
            await asyncio.sleep(LOOK)
            # Reading a version with many devices takes a while, so do it off the event loop.
            if await asyncio.to_thread(self.poll):
                await changed()

    def poll(self) -> bool:
        """Load the version that the pointer names; return whether it has replaced the one in
        force."""
        try:
            found = os.stat(self._pointer)
        except OSError:
            return False
        mark = (found.st_ino, found.st_mtime_ns, found.st_size)
        if mark == self._seen:
            return False
        self._seen = mark
        try:
            policies = self._policy_store.current()
            if policies is None or policies.version == self.index.version:
                return False
            index = PolicyIndex(policies)
            for forwarding in index.forwardings():
                try_out(forwarding)
        except (LasthopError, OSError) as error:
            self.refused += 1
            log.error("policy_refused", reason=str(error), in_force=self.index.version)
            return False
        log.info("policy_loaded", version=index.version, before=self.index.version)
        self.index = index
        return True


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
