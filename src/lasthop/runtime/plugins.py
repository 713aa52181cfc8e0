"""Loads policies and carriers of other packages by their entry points, if the settings name them.

A package may be installed for other reasons, so a plugin runs in the gateway only if the settings
name it. If a named plugin cannot be loaded, the gateway does not start.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib.metadata import entry_points
from typing import Any

from lasthop.decision.policies import POLICIES, Policy
from lasthop.decision.routes import VARIANTS, Variation
from lasthop.delivery.carrier import CarrierKind
from lasthop.runtime.failure import Failure

POLICY_GROUP = "lasthop.policies"
"""The entry point group under which a package offers classes derived from `Policy`."""

CARRIER_GROUP = "lasthop.carriers"
"""The entry point group under which a package offers objects with the interface of
`CarrierKind`."""


def load_policies(names: Iterable[str]) -> None:
    """Add the named policies to the table of policies, which also has lasthop's own."""
    for name in names:
        found = _found(POLICY_GROUP, name, "plugins.policies")
        if not (isinstance(found, type) and issubclass(found, Policy)):
            raise Failure(f"plugins.policies: {name!r} is not a subclass of lasthop's Policy")
        if POLICIES.setdefault(name, found) is not found:
            raise Failure(f"plugins.policies: there is already a policy {name!r}")


def load_carriers(names: Iterable[str]) -> dict[str, CarrierKind]:
    """Add the named protocols to the table of variants; return their carriers by name."""
    kinds: dict[str, CarrierKind] = {}
    for name in names:
        found: Any = _found(CARRIER_GROUP, name, "plugins.carriers")
        described = getattr(found, "variation", None)
        if not (isinstance(described, Variation) and callable(getattr(found, "open", None))):
            raise Failure(f"plugins.carriers: {name!r} lacks a `variation` or an `open`")
        if VARIANTS.setdefault(name, described) is not described:
            raise Failure(f"plugins.carriers: there is already a carrier {name!r}")
        kinds[name] = found
    return kinds


def _found(group: str, name: str, setting: str) -> object:
    offered = entry_points(group=group, name=name)
    if not offered:
        raise Failure(
            f"{setting}: no installed package offers {name!r} in the entry point group {group}"
        )
    if len({entry.value for entry in offered}) > 1:
        raise Failure(f"{setting}: several installed packages offer {name!r}")
    try:
        return next(iter(offered)).load()
    except Exception as error:
        why = " ".join(f"{type(error).__name__}: {error}".split())
        raise Failure(f"{setting}: {name!r} cannot be loaded: {why}") from None
