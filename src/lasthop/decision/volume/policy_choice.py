"""Which forwarding policy a feed follows, and a policy whose memory outlives the process.

The core asks a `PolicyBook` for the policy of a device and a topic: the settings' choice for
everybody, or one that the pipeline has learned. What a policy learns is written as the calls that
taught it, and now and then as a whole.
"""

from __future__ import annotations

from typing import Any, Protocol

import msgspec

from lasthop.clock import HOUR, Micros
from lasthop.decision.policies import POLICIES, Policy, Tuning
from lasthop.decision.policies.memory import memory_of, recall

DEFAULT_POLICY = "unified"


class PolicyChoice(msgspec.Struct, frozen=True, omit_defaults=True):
    """A policy by name, and what was chosen for it."""

    policy: str = DEFAULT_POLICY
    version: str = ""
    """Of the policy file that it comes from; empty: built in, or the settings'."""
    prefetch_limit: int | None = None
    expiration_threshold: Micros | None = None
    waking_hours: Micros = 16 * HOUR + HOUR // 2
    price: float = 1.0
    memory: dict[str, Any] = {}
    """What the policy is to know from the beginning, if it does not take over from one of its
    kind."""

    @property
    def label(self) -> str:
        """For the log: the policy, and the version if there is one."""
        return f"{self.policy}@{self.version}" if self.version else self.policy

    @property
    def plain(self) -> PolicyChoice:
        """Without the memory: what is kept of it, and what tells two choices apart. Its version
        stands for what it began with."""
        return msgspec.structs.replace(self, memory={}) if self.memory else self

    def tuning(self, most: int | None) -> Tuning:
        """As a policy takes it."""
        return Tuning(
            max=most,
            prefetch_limit=self.prefetch_limit,
            expiration_threshold=self.expiration_threshold,
            waking_hours=self.waking_hours,
            price=self.price,
        )


class PolicyBook(Protocol):
    """Says which policy is in force."""

    def choose(self, app: str, device: str, topic: str) -> PolicyChoice:
        """For this device and topic. It names a policy of `decision.policies`."""
        ...


class OnePolicy:
    """The same for everybody."""

    def __init__(self, choice: PolicyChoice | None = None) -> None:
        self.choice = choice or PolicyChoice()

    def choose(self, app: str, device: str, topic: str) -> PolicyChoice:
        return self.choice


SNAPSHOT_AFTER = 32
"""Lessons that are written one by one before the whole memory is: it can be a hundred times as
large as one of them."""

_ARRIVED, _READ, _FELL, _FORWARDED = range(4)


class Remembered(Policy):
    """A policy that notes what it is taught."""

    def __init__(self, policy: Policy) -> None:
        super().__init__(policy.tuning)
        self._policy = policy
        self.unworthy = policy.unworthy
        self.lessons: list[tuple[Any, ...]] = []
        """What it was taught since the last snapshot."""

    def arrived(self, *, lifetime: Micros | None, now: Micros) -> Micros:
        self._note(_ARRIVED, lifetime, now)
        return self._policy.arrived(lifetime=lifetime, now=now)

    def read(self, *, wanted: int, offline: bool, at: Micros) -> None:
        self._note(_READ, wanted, offline, at)
        self._policy.read(wanted=wanted, offline=offline, at=at)

    def rank_fell(self, *, age: Micros) -> None:
        self._note(_FELL, age)
        self._policy.rank_fell(age=age)

    def forwarded(self) -> None:
        self._note(_FORWARDED)
        self._policy.forwarded()

    def room(self, *, on_device: int) -> int:
        return self._policy.room(on_device=on_device)

    def worth(self, *, lifetime: Micros | None, now: Micros) -> bool:
        return self._policy.worth(lifetime=lifetime, now=now)

    def _note(self, *lesson: Any) -> None:
        self.lessons.append(lesson)

    def snapshot(self, *, always: bool = False) -> dict[str, Any] | None:
        """Everything it knows, when enough lessons have come together."""
        if len(self.lessons) < SNAPSHOT_AFTER and not always:
            return None
        self.lessons = []
        return memory_of(self._policy)

    def succeed(self, other: Remembered) -> None:
        """Take over from a policy that may have been of the same kind."""
        if type(self._policy) is type(other._policy):
            recall(self._policy, memory_of(other._policy))

    def remember(self, memory: dict[str, Any], lessons: list[list[Any]]) -> None:
        """Learn again what an earlier life knew."""
        recall(self._policy, memory)
        policy = self._policy
        for code, *facts in lessons:
            if code == _ARRIVED:
                policy.arrived(lifetime=facts[0], now=facts[1])
            elif code == _READ:
                policy.read(wanted=facts[0], offline=facts[1], at=facts[2])
            elif code == _FELL:
                policy.rank_fell(age=facts[0])
            else:
                policy.forwarded()
        self.lessons = [tuple(lesson) for lesson in lessons]


def policy_of(choice: PolicyChoice, most: int | None) -> Remembered:
    """A new policy, as it was chosen."""
    policy = POLICIES[choice.policy](choice.tuning(most))
    if choice.memory:
        recall(policy, choice.memory)
    return Remembered(policy)
