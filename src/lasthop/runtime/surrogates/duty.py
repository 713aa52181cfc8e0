"""How an app's surrogate is started, and the limits on what it may use."""

from __future__ import annotations

from dataclasses import dataclass

from lasthop.core.surrogates.waiting import SurrogateTerms


@dataclass(frozen=True, slots=True)
class Launch:
    """How to start the worker process of an app."""

    app: str
    place: str
    """The place of the surrogate's class, as package.module:Class."""
    memory: int
    """The limit on the worker's address space, in bytes."""
    path: str = ""
    """The directory in which modules are looked for first; empty for none."""


@dataclass(frozen=True, slots=True)
class Duty:
    """An app's surrogate and its limits, for the supervisor."""

    launch: Launch
    seconds: float
    """The time limit for one input, in seconds."""
    state: int
    """The limit on the surrogate's state, in bytes."""


@dataclass(frozen=True, slots=True)
class Employment:
    """An app's surrogate: the terms for the gateway, and the duty for the worker's supervisor."""

    terms: SurrogateTerms
    duty: Duty
