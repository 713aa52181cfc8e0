"""What an app's surrogate is, and what it may take up."""

from __future__ import annotations

from dataclasses import dataclass

from lasthop.core.surrogates.waiting import SurrogateTerms


@dataclass(frozen=True, slots=True)
class Launch:
    """How to start the worker of an app."""

    app: str
    place: str
    """package.module:Class"""
    memory: int
    """Bytes of address space."""
    path: str = ""
    """Where modules are looked for first."""


@dataclass(frozen=True, slots=True)
class Duty:
    """What an app's surrogate is, and what it may take."""

    launch: Launch
    seconds: float
    """For one input."""
    state: int
    """Bytes."""


@dataclass(frozen=True, slots=True)
class Employment:
    """An app's surrogate: what the gateway has to know of it, and what its foreman has."""

    terms: SurrogateTerms
    duty: Duty
