"""Operations on the learned policies: which version is in force, which is on trial."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lasthop.access.rest.operations.command import Command, Row
from lasthop.access.rest.operations.deferred import deferred
from lasthop.access.rest.operations.operation import Operation, Scope

if TYPE_CHECKING:
    from lasthop.access.rest import learned_versions, policy_manager
else:
    learned_versions, policy_manager = deferred("learned_versions", "policy_manager")

_TRIAL = "/v1/policy/trial"


def _says(row: Row) -> str:
    """Return the status of the learned policies for people."""
    lines = [f"in force: {row['in_force']}"]
    trial = row["trial"]
    if trial is None:
        return f"{lines[0]}\nno version is or was on trial"
    if trial["state"] == "running":
        lines.append(
            f"on trial: {trial['version']} on {trial['percent']:g} % of devices,"
            f" since {trial['since']}"
        )
        for name, group in (("on trial", trial["trial"]), ("compared", trial["control"])):
            lines.append(
                f"  {name}: live loss {group['loss']:.1%} of {group['messages']} messages"
                f" of {group['devices']} devices"
            )
    else:
        lines.append(f"last trial: {trial['version']} was {trial['state']}: {trial['reason']}")
    return "\n".join(lines)


POLICY: tuple[Operation, ...] = (
    Operation(
        method="GET",
        path="/v1/policy",
        summary="Show which learned policies are in force and on trial",
        scope=Scope.ADMIN,
        handler=learned_versions.show,
        answers={200: policy_manager.PolicyStatus},
        refusals=(404,),
        command=Command("policy status", "--json", says=_says, offline=False),
    ),
    Operation(
        method="PUT",
        path=_TRIAL,
        summary="Change the share of the devices on which a version is tried",
        scope=Scope.ADMIN,
        handler=learned_versions.widen,
        body=learned_versions.TrialShare,
        answers={200: policy_manager.PolicyStatus},
        refusals=(404, 409, 415),
        command=Command("policy percent", "20", says=_says, offline=False),
    ),
    Operation(
        method="POST",
        path=f"{_TRIAL}/promote",
        summary="Put the version on trial in force for all devices",
        scope=Scope.ADMIN,
        handler=learned_versions.promote,
        body=learned_versions.TrialEnd,
        optional=True,
        answers={200: policy_manager.PolicyStatus},
        refusals=(404, 409, 415),
        command=Command("policy promote", '\n--reason "looks good"', says=_says, offline=False),
    ),
    Operation(
        method="POST",
        path=f"{_TRIAL}/take-back",
        summary="Take the version on trial back: the one in force decides for all devices again",
        scope=Scope.ADMIN,
        handler=learned_versions.take_back,
        body=learned_versions.TrialEnd,
        optional=True,
        answers={200: policy_manager.PolicyStatus},
        refusals=(404, 409, 415),
        command=Command("policy take-back", '--reason "complaints"', says=_says, offline=False),
    ),
)
