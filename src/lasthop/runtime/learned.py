"""The policy that the pipeline has learned, loaded while the gateway runs.

The pointer on the shelf is looked at every second, which costs one small file. A new version
is read, checked as a whole and tried out before it takes the place of the old one; if anything is
wrong with it the old one stays in force, and the log says why, once.
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
from lasthop.decision.volume.policy_choice import PolicyChoice
from lasthop.errors import InvalidRequest, LasthopError
from lasthop.policy import BUILT_IN, Forwarding, PolicyIndex
from lasthop.policy.store import POINTER, PolicyStore

log = structlog.get_logger(__name__)


LOOK = 1.0
"""Seconds between two looks at the pointer."""


class LearnedPolicies:
    """The version in force, and how it is replaced. It is the gateway's book of policies."""

    def __init__(self, directory: Path, default: PolicyChoice | None = None) -> None:
        """`default` holds as long as nothing was learned."""
        self._default = default
        self._policy_store = PolicyStore(directory)
        self._pointer = directory / POINTER
        self._seen: tuple[int, int, int] | None = None
        self.index = PolicyIndex(BUILT_IN)
        """Replaced as a whole: whoever holds it goes on with the version that it began with."""
        self.refused = 0
        """Versions that were not taken."""

    def choose(self, app: str, device: str, topic: str) -> PolicyChoice:
        """What was learned for this device and topic, with the version for the log."""
        if self._default is not None and self.index.policies is BUILT_IN:
            return self._default
        found = self.index.forwarding(app, device, topic)
        forwarding = found.forwarding
        return PolicyChoice(
            policy=forwarding.policy,
            version="" if self.index.policies is BUILT_IN else found.version,
            prefetch_limit=forwarding.prefetch_limit,
            expiration_threshold=forwarding.expiration_threshold,
            price=forwarding.price,
            memory=forwarding.memory,
        )

    def heartbeat(self, network: str) -> Micros | None:
        """How much silence devices have found to work on a network."""
        return self.index.heartbeat(network)

    async def follow(self, changed: Callable[[], Awaitable[object]]) -> None:
        """Look now and then, until cancelled; `changed` is awaited whenever there is news."""
        while True:
            await asyncio.sleep(LOOK)
            # A version of many devices takes a while to read, and nobody is to wait for it.
            if await asyncio.to_thread(self.poll):
                await changed()

    def poll(self) -> bool:
        """Look whether another version is in force; true if it has been taken."""
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
    """Make the policy and ask it all that a feed asks; InvalidRequest if it cannot answer."""
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
        # Whatever it is that a foreign memory breaks: it must not break in a feed.
        raise InvalidRequest(
            f"a learned policy does not work: {error!r}", policy=forwarding.policy
        ) from None
