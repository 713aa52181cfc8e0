"""The list of forwarding policies, by the names that settings, terms, policy files and the command
line use.

`POLICIES` is the only list. Policies of other packages are added to it when a gateway starts whose
settings name them; see docs/how-to/extend.md.
"""

from __future__ import annotations

from lasthop.decision.policies.fixed import Buffer, Expiration, OnDemand, OnLine
from lasthop.decision.policies.policy import Policy, Tuning
from lasthop.decision.policies.predictive import Predictive
from lasthop.decision.policies.rate import RatePolicy
from lasthop.decision.policies.unified import Unified

POLICIES: dict[str, type[Policy]] = {
    "on-line": OnLine,
    "on-demand": OnDemand,
    "buffer": Buffer,
    "rate": RatePolicy,
    "expiration": Expiration,
    "unified": Unified,
    "predictive": Predictive,
}

__all__ = ["POLICIES", "Policy", "Tuning"]
