"""Operations on groups and their members, and on queues and their consumers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lasthop.access.rest.operations.command import Command, Given, Row
from lasthop.access.rest.operations.deferred import deferred
from lasthop.access.rest.operations.operation import Operation, Scope

if TYPE_CHECKING:
    from lasthop.access.rest import groups, resources
else:
    groups, resources = deferred("groups", "resources")

_GROUP, _QUEUE = "/v1/groups/{name}", "/v1/queues/{name}"
_MEMBER, _CONSUMER = f"{_GROUP}/members/{{device}}", f"{_QUEUE}/consumers/{{device}}"

_CLOSED = Given(flag="--closed", about="Do not let devices join by themselves.")
_DEVICES = {"device": Given(many=True, about="The names of the devices.")}
_LISTED = 1000
"""The number of devices that a command shows: as many as one answer holds."""


def _members(group: Row) -> str:
    more = [f"... of {group['members']}"] if group.get("more") else []
    return "\n".join([*group["devices"], *more])


GROUPS: tuple[Operation, ...] = (
    Operation(
        method="PUT",
        path=_GROUP,
        summary="Create a group, or change one",
        scope=Scope.DEVICES,
        handler=groups.make_group,
        body=resources.GroupTerms,
        optional=True,
        answers={200: groups.GroupInfo},
        refusals=(413, 415),
        command=Command(
            "group make",
            'crew --title "On duty"',
            given={"open": _CLOSED},
            says="{name} has {members} members",
        ),
    ),
    Operation(
        method="GET",
        path="/v1/groups",
        summary="List the groups of the app",
        scope=Scope.DEVICES,
        handler=groups.list_groups,
        answers={200: groups.GroupList},
        command=Command(
            "group list",
            rows="groups",
            columns="group=name members =closed title",
            derived={"closed": lambda group: "" if group["open"] else "closed"},
        ),
    ),
    Operation(
        method="GET",
        path=_GROUP,
        summary="Show a group and its members",
        scope=Scope.DEVICES,
        handler=groups.show_group,
        query=resources.MembersQuery,
        answers={200: groups.GroupInfo},
        refusals=(404,),
        command=Command("group show", "crew", fixed={"limit": _LISTED}, says=_members),
    ),
    Operation(
        method="PUT",
        path=_MEMBER,
        summary="Add a device to a group",
        scope=Scope.DEVICES,
        handler=groups.add_member,
        answers={200: groups.Membership},
        refusals=(404,),
        command=Command(
            "group add", "crew phone watch", given=_DEVICES, says="{device} is in {name}"
        ),
    ),
    Operation(
        method="DELETE",
        path=_MEMBER,
        summary="Remove a device from a group",
        scope=Scope.DEVICES,
        handler=groups.remove_member,
        answers={200: groups.Membership},
        refusals=(404,),
        command=Command(
            "group drop", "crew phone", given=_DEVICES, says="{device} is not in {name}"
        ),
    ),
    Operation(
        method="DELETE",
        path=_GROUP,
        summary="Remove a group",
        scope=Scope.DEVICES,
        handler=groups.remove_group,
        answers={200: groups.Dissolved},
        refusals=(404,),
        command=Command(
            "group remove", "crew", says="{name} is removed; {left} devices were in it"
        ),
    ),
    Operation(
        method="PUT",
        path=_QUEUE,
        summary="Create a queue, or change one",
        scope=Scope.DEVICES,
        handler=groups.make_queue,
        body=resources.QueueRules,
        optional=True,
        answers={200: groups.QueueInfo},
        refusals=(413, 415),
        command=Command(
            "queue make",
            "jobs --patience 300 --prefetch 1",
            given={"open": _CLOSED, "patience": Given(form="SECONDS")},
            says="{name} has {waiting} messages and {consumers} consumers",
        ),
    ),
    Operation(
        method="GET",
        path="/v1/queues",
        summary="List the queues of the app",
        scope=Scope.DEVICES,
        handler=groups.list_queues,
        answers={200: groups.QueueList},
        command=Command(
            "queue list",
            rows="queues",
            columns="name waiting consumers patience prefetch title",
        ),
    ),
    Operation(
        method="GET",
        path=_QUEUE,
        summary="Show a queue and the devices that take messages from it",
        scope=Scope.DEVICES,
        handler=groups.show_queue,
        query=resources.MembersQuery,
        answers={200: groups.QueueInfo},
        refusals=(404,),
        command=Command(
            "queue show",
            "jobs",
            fixed={"limit": _LISTED},
            says="{waiting} messages wait",
            rows="devices",
            columns="consumer=device =contact has=holding",
            derived={"contact": lambda row: "in contact" if row["in_contact"] else "away"},
        ),
    ),
    Operation(
        method="PUT",
        path=_CONSUMER,
        summary="Let a device take messages from a queue",
        scope=Scope.DEVICES,
        handler=groups.add_consumer,
        answers={200: groups.Membership},
        refusals=(404,),
        command=Command(
            "queue add", "jobs printer", given=_DEVICES, says="{device} takes messages from {name}"
        ),
    ),
    Operation(
        method="DELETE",
        path=_CONSUMER,
        summary="Stop a device from taking messages from a queue",
        scope=Scope.DEVICES,
        handler=groups.remove_consumer,
        answers={200: groups.Membership},
        refusals=(404,),
        command=Command(
            "queue drop",
            "jobs printer",
            given=_DEVICES,
            says="{device} does not take messages from {name}",
        ),
    ),
    Operation(
        method="DELETE",
        path=_QUEUE,
        summary="Remove an empty queue",
        scope=Scope.DEVICES,
        handler=groups.remove_queue,
        answers={200: groups.Dissolved},
        refusals=(404, 409),
        command=Command(
            "queue remove", "jobs", says="{name} is removed; {left} devices took messages from it"
        ),
    ),
)
