"""Rules about who may do what, and the users that they name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lasthop.access.rest.operations.command import Command, Given, Row
from lasthop.access.rest.operations.deferred import deferred
from lasthop.access.rest.operations.operation import Operation, Scope

if TYPE_CHECKING:
    from lasthop.access.rest import rules, users
else:
    rules, users = deferred("rules", "users")

_RULE = "/v1/rules/{name}"
_USER = "/v1/users/{name}"


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
        method="POST",
        path="/v1/users",
        summary="Add a user: what it may do when it signs in or shows a signed token",
        scope=Scope.ADMIN,
        handler=users.add,
        body=users.NewUser,
        answers={201: users.UserInfo},
        refusals=(409, 415),
        command=Command(
            "user add",
            "anna --scope admin\nci:build --role operators",
            more="Users whom an issuer lets in need not be added, unless its added_only is set.",
            given={"scopes": Given(flag="--scope"), "roles": Given(flag="--role")},
            says="added {name}",
        ),
    ),
    Operation(
        method="PATCH",
        path=_USER,
        summary="Change what a user may do, or let nobody in as the user",
        scope=Scope.ADMIN,
        handler=users.change,
        body=users.UserChange,
        answers={200: users.UserInfo},
        refusals=(404, 415),
        command=Command(
            "user change",
            "anna --access blocked\nanna --scope admin --no-roles",
            more="Whatever is not given stays as it is.",
            given={"scopes": Given(flag="--scope"), "roles": Given(flag="--role")},
            says="changed {given} of {name}",
        ),
    ),
    Operation(
        method="DELETE",
        path=_USER,
        summary="Remove a user that was added; its devices and rules stay",
        scope=Scope.ADMIN,
        handler=users.remove,
        answers={200: users.UserRemoved},
        refusals=(404,),
        command=Command("user remove", "anna", says="removed {removed}"),
    ),
    Operation(
        method="GET",
        path="/v1/users",
        summary="List the users of the app: whoever was added, or has a device",
        scope=Scope.ADMIN,
        handler=users.list_users,
        answers={200: users.UserList},
        command=Command(
            "user list",
            rows="users",
            columns="name added access scopes roles devices rules",
            derived={
                "added": lambda row: "yes" if row.get("added") else "",
                "access": lambda row: row.get("access", "open"),
                "scopes": lambda row: " ".join(row.get("scopes", ())),
                "roles": lambda row: " ".join(row.get("roles", ())),
                "devices": lambda row: " ".join(row["devices"]),
                "rules": lambda row: " ".join(row["rules"]),
            },
            each=True,
        ),
    ),
    Operation(
        method="GET",
        path=_USER,
        summary="Show a user, its devices, and the rules about them",
        scope=Scope.ADMIN,
        handler=users.show,
        answers={200: users.UserInfo},
        refusals=(404,),
        command=Command("user show", "anna"),
    ),
)
