"""Policies of other packages: found by their entry points, and loaded only if the settings name
them.

A package is installed for many reasons; that it is there does not mean that it may run in the
gateway. What is named and cannot be had stops the gateway before it has done anything.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib.metadata import entry_points

from lasthop.decision.policies import POLICIES, Policy
from lasthop.runtime.failure import Failure

POLICY_GROUP = "lasthop.policies"
"""The group of entry points under which a package offers classes derived from `Policy`."""


def load_policies(names: Iterable[str]) -> None:
    """Put these policies into the table, beside lasthop's own."""
    for name in names:
        found = _found(POLICY_GROUP, name, "plugins.policies")
        if not (isinstance(found, type) and issubclass(found, Policy)):
            raise Failure(f"plugins.policies: {name!r} is no subclass of lasthop's Policy")
        if POLICIES.setdefault(name, found) is not found:
            raise Failure(f"plugins.policies: there is a {name!r} already")


def _found(group: str, name: str, setting: str) -> object:
    offered = entry_points(group=group, name=name)
    if not offered:
        raise Failure(f"{setting}: no installed package offers {name!r} as one of {group}")
    if len({entry.value for entry in offered}) > 1:
        raise Failure(f"{setting}: several installed packages offer {name!r}")
    try:
        return next(iter(offered)).load()
    except Exception as error:
        why = " ".join(f"{type(error).__name__}: {error}".split())
        raise Failure(f"{setting}: {name!r} cannot be loaded: {why}") from None
