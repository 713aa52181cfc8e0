"""The result of a check of `lasthop doctor`."""

from __future__ import annotations

from enum import StrEnum

import msgspec


class FindingState(StrEnum):
    """How good or bad the result of a check is."""

    GOOD = "good"
    COULD_BE_BETTER = "could be better"
    """A gateway runs, but slower, or for fewer devices, or without learning."""
    BROKEN = "broken"
    """A gateway does not run, or does not keep its promises."""


class Finding(msgspec.Struct, frozen=True):
    """The result of one check of `lasthop doctor`."""

    name: str
    state: FindingState
    found: str
    remedy: str = ""
    """What to do about it; empty if nothing needs to be done."""


def good(name: str, found: str) -> Finding:
    return Finding(name, FindingState.GOOD, found)


def could_be_better(name: str, found: str, remedy: str) -> Finding:
    return Finding(name, FindingState.COULD_BE_BETTER, found, remedy)


def broken(name: str, found: str, remedy: str) -> Finding:
    return Finding(name, FindingState.BROKEN, found, remedy)
