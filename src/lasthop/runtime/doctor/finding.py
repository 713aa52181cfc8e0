"""What a check has found."""

from __future__ import annotations

from enum import StrEnum

import msgspec


class FindingState(StrEnum):
    """How it is."""

    GOOD = "good"
    COULD_BE_BETTER = "could be better"
    """A gateway runs without it, but slower, or not for as many, or learns nothing."""
    BROKEN = "broken"
    """A gateway does not run, or not as it promises."""


class Finding(msgspec.Struct, frozen=True):
    """One thing that was looked at."""

    name: str
    state: FindingState
    found: str
    remedy: str = ""
    """What to do about it; empty if nothing."""


def good(name: str, found: str) -> Finding:
    return Finding(name, FindingState.GOOD, found)


def could_be_better(name: str, found: str, remedy: str) -> Finding:
    return Finding(name, FindingState.COULD_BE_BETTER, found, remedy)


def broken(name: str, found: str, remedy: str) -> Finding:
    return Finding(name, FindingState.BROKEN, found, remedy)
