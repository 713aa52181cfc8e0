"""Which forwarding policy a feed follows, and a policy whose memory is kept in the store.

The core asks a `PolicyBook` for the policy of a device and a topic: the settings' choice for all
devices, or one that the pipeline has learned. What a policy learns is stored as the calls that
taught it, and after some calls as a whole.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import msgspec

from lasthop.clock import HOUR, Micros
from lasthop.decision.policies import POLICIES, Policy, Tuning
from lasthop.decision.policies.memory import memory_of, recall
from lasthop.decision.trial_verdict import TrialGroup

DEFAULT_POLICY = "predictive"
"""The forwarding policy of new subscriptions for which nobody has chosen one."""

EARLIER_DEFAULT = "unified"
"""The policy that a stored choice means if it names none: the default of the versions that wrote
nothing for it. It never changes."""


class PolicyChoice(msgspec.Struct, frozen=True, omit_defaults=True):
    """A policy by name, with the parameters that were chosen for it."""

    policy: str = EARLIER_DEFAULT
    version: str = ""
    """The version of the policy file that the choice comes from; empty: built in, or from the
    settings."""
    prefetch_limit: int | None = None
    expiration_threshold: Micros | None = None
    waking_hours: Micros = 16 * HOUR + HOUR // 2
    price: float = 1.0
    memory: dict[str, Any] = {}
    """What the policy knows from the beginning, unless it takes over from a policy of the same
    class."""

    @property
    def label(self) -> str:
        """The name of the policy for the log, with the version if there is one."""
        return f"{self.policy}@{self.version}" if self.version else self.policy

    @property
    def plain(self) -> PolicyChoice:
        """The choice without its memory, for the store and for comparing two choices. The version
        stands for the memory that the policy began with."""
        return msgspec.structs.replace(self, memory={}) if self.memory else self

    def tuning(self, most: int | None) -> Tuning:
        """Return the parameters as a policy takes them, with the subscription's Max."""
        return Tuning(
            max=most,
            prefetch_limit=self.prefetch_limit,
            expiration_threshold=self.expiration_threshold,
            waking_hours=self.waking_hours,
            price=self.price,
        )


class PolicyNews(NamedTuple):
    """What became of a version on trial, for the event log."""

    version: str
    percent: int
    """The share of the devices that the version is or was tried on."""
    reason: str
    """`on trial`, `promoted` or `taken back`, with the reason for it."""


class PolicyBook(Protocol):
    """Says which policy is in force for a device and a topic."""

    def choose(
        self, app: str, device: str, topic: str, default: str = DEFAULT_POLICY
    ) -> PolicyChoice:
        """Return the choice for this device and topic; it names a policy of `decision.policies`.
        `default` is the policy that the subscription was made with, for want of a choice."""
        ...

    def trial(self, app: str, device: str) -> tuple[str, TrialGroup] | None:
        """Return the name of the trial that is running and the part that a device has in it; None
        for none."""
        ...


class OnePolicy:
    """The same policy for every device and topic; without one, that of each subscription."""

    def __init__(self, choice: PolicyChoice | None = None) -> None:
        self.choice = choice

    def choose(
        self, app: str, device: str, topic: str, default: str = DEFAULT_POLICY
    ) -> PolicyChoice:
        return self.choice or PolicyChoice(default)

    def trial(self, app: str, device: str) -> tuple[str, TrialGroup] | None:
        return None


SNAPSHOT_AFTER = 32
"""The number of lessons that are stored one by one before the whole memory is stored, which can be
a hundred times as large as one lesson."""

_ARRIVED, _READ, _FELL, _FORWARDED = range(4)


class Remembered(Policy):
    """A policy that notes every call that taught it something, so that its memory can be stored."""

    def __init__(self, policy: Policy) -> None:
        super().__init__(policy.tuning)
        self._policy = policy
        self.unworthy = policy.unworthy
        self.lessons: list[tuple[Any, ...]] = []
        """The calls since the last snapshot, each as a code and its arguments."""

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
        """Return everything that the policy knows, or None while few lessons have come together."""
        if len(self.lessons) < SNAPSHOT_AFTER and not always:
            return None
        self.lessons = []
        return memory_of(self._policy)

    def succeed(self, other: Remembered) -> None:
        """Take over what another policy has learned, if it is of the same class."""
        if type(self._policy) is type(other._policy):
            recall(self._policy, memory_of(other._policy))

    def remember(self, memory: dict[str, Any], lessons: list[list[Any]]) -> None:
        """Learn again what was stored: a memory, and the lessons after it."""
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
    """Return a new policy with the chosen parameters and memory."""
    policy = POLICIES[choice.policy](choice.tuning(most))
    if choice.memory:
        recall(policy, choice.memory)
    return Remembered(policy)
