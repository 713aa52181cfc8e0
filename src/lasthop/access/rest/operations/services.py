"""Operations on the services that devices offer: list, show and call them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lasthop.access.rest.operations.command import Command, Row
from lasthop.access.rest.operations.deferred import deferred
from lasthop.access.rest.operations.operation import Operation, Scope

if TYPE_CHECKING:
    from lasthop.access.rest import resources, services
else:
    resources, services = deferred("resources", "services")


_ONE = {"version": "1"}
"""The version of a service that states none."""


def _interfaces(found: Row) -> str:
    """Format every version of a service for people: which devices offer it, and its operations."""
    return "\n".join(line for offer in found["services"] for line in _interface(offer))


def _interface(offer: Row) -> list[str]:
    service, devices = offer["service"], offer["devices"]
    lines = ["{name}, version {version}".format(**_ONE | service)]
    lines += [service["about"]] if service.get("about") else []
    others = offer["providers"] - len(devices)
    more = f" and {others} more" if others else ""
    lines.append(f"offered by {', '.join(devices)}{more}; {offer['in_contact']} in contact")
    headings = ("operation", "takes", "gives", "about")
    rows = [
        (operation["name"], *(operation.get(name, "") for name in headings[1:]))
        for operation in service.get("operations", [])
    ]
    if rows:
        widths = [max(map(len, column)) for column in zip(headings, *rows, strict=True)]
        lines += ["  ".join(map(str.ljust, row, widths)).rstrip() for row in (headings, *rows)]
    return lines


SERVICES: tuple[Operation, ...] = (
    Operation(
        method="GET",
        path="/v1/services",
        summary="List the services that devices offer",
        scope=Scope.PUBLISH,
        handler=services.list_services,
        query=resources.FindQuery,
        answers={200: services.ServiceList},
        command=Command(
            "service list",
            "--operation price",
            offline=False,
            rows="services",
            columns="service devices=providers in_contact about",
            derived={
                "service": lambda offer: "{name}@{version}".format(**_ONE | offer["service"]),
                "about": lambda offer: offer["service"].get("about"),
            },
        ),
    ),
    Operation(
        method="GET",
        path="/v1/services/{name}",
        summary="Show the interface of a service in all its versions, and which devices offer it",
        scope=Scope.PUBLISH,
        handler=services.show,
        answers={200: services.ServiceList},
        refusals=(404,),
        command=Command(
            "service show",
            "pricing",
            offline=False,
            says=_interfaces,
            result=lambda found: found["services"],
        ),
    ),
    Operation(
        method="POST",
        path="/v1/services/{name}/{operation}",
        summary="Call a service, and wait for its answer",
        scope=Scope.PUBLISH,
        handler=services.ask,
        query=services.AskQuery,
        body=bytes,
        answers={200: bytes},
        refusals=(404, 422),
        command="This operation publishes a message and waits for the reply: nothing is"
        " administered.",
    ),
)
