"""Rules about who may do what, and the users that they name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lasthop.access.rest.operations.command import Command, Given, Row
from lasthop.access.rest.operations.deferred import deferred
from lasthop.access.rest.operations.operation import Operation, Scope

if TYPE_CHECKING:
    from lasthop.access.rest import rules
else:
    (rules,) = deferred("rules")

_RULE = "/v1/rules/{name}"


def _answer(row: Row) -> str:
    return f"{'allowed' if row['allowed'] else 'denied'}: {row['reason']}"


RIGHTS: tuple[Operation, ...] = (
    Operation(
        method="GET",
        path="/v1/rules",
        summary="List the rules that hold in the app",
        scope=Scope.ADMIN,
        handler=rules.list_rules,
        answers={200: rules.RuleList},
        command=Command(
            "rule list",
            rows="rules",
            columns="name app who allow deny on from",
            derived={
                "who": lambda row: " ".join(row["who"]),
                "allow": lambda row: " ".join(row["allow"]),
                "deny": lambda row: " ".join(row["deny"]),
                "on": lambda row: " ".join(row["on"]),
                "from": lambda row: "configuration" if row.get("configured") else "",
            },
            each=True,
        ),
    ),
    Operation(
        method="PUT",
        path=_RULE,
        summary="Add a rule about who may do what, in place of an earlier one of its name",
        scope=Scope.ADMIN,
        handler=rules.add,
        body=rules.RuleTerms,
        answers={200: rules.RuleInfo},
        refusals=(409, 415),
        command=Command(
            "rule add",
            "news 'device:*' --allow subscribe --on 'topic:news.#'\n"
            "quiet user:anna --deny send --deny publish",
            given={"who": Given(form="WHO"), "on": Given(default=["#"])},
            says="added {name}",
        ),
    ),
    Operation(
        method="DELETE",
        path=_RULE,
        summary="Remove a rule that was added; those of the configuration are removed there",
        scope=Scope.ADMIN,
        handler=rules.remove,
        answers={200: rules.RuleInfo},
        refusals=(404, 409),
        command=Command(
            "rule remove",
            "news",
            says="removed {name}",
            result=lambda removed: {"removed": removed["name"]},
        ),
    ),
    Operation(
        method="GET",
        path="/v1/rights",
        summary="Say whether a device or a credential may do something, and which rule decides",
        scope=Scope.ADMIN,
        handler=rules.check,
        query=rules.RightQuery,
        answers={200: rules.RightInfo},
        refusals=(404,),
        command=Command(
            "rule check",
            "device:phone subscribe 'topic:news.#'\ncredential:shop send device:phone",
            more="The exit code is 1 if it is denied.",
            offline=False,
            says=_answer,
            fails=lambda row: "" if row["allowed"] else "denied",
        ),
    ),
    Operation(
        method="GET",
        path="/v1/users",
        summary="List the users of the app: whoever has a device",
        scope=Scope.ADMIN,
        handler=rules.list_users,
        answers={200: rules.UserList},
        command=Command(
            "user list",
            rows="users",
            columns="name devices rules",
            derived={
                "devices": lambda row: " ".join(row["devices"]),
                "rules": lambda row: " ".join(row["rules"]),
            },
            each=True,
        ),
    ),
    Operation(
        method="GET",
        path="/v1/users/{name}",
        summary="Show the devices of a user, and the rules about them",
        scope=Scope.ADMIN,
        handler=rules.show_user,
        answers={200: rules.UserInfo},
        refusals=(404,),
        command=Command("user show", "anna"),
    ),
)
