"""Operations on devices, and on the preferences of devices and their users."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lasthop.access.rest.operations.command import Command, Given
from lasthop.access.rest.operations.deferred import Deferred, deferred
from lasthop.access.rest.operations.operation import Operation, Scope

if TYPE_CHECKING:
    from lasthop.access.rest import administration, answers, devices, preferences, resources
    from lasthop.decision.preferences import Preferences
else:
    administration, answers, devices = deferred("administration", "answers", "devices")
    resources, preferences = deferred("resources", "preferences")
    Preferences = Deferred("lasthop.decision.preferences", "Preferences")

_DEVICE = "/v1/devices/{name}"

_ADDRESSES = {
    "addresses": Given(flag="--address", form="TYPE:VALUE"),
    "routes": Given(
        flag="--route", about="How the device is reached over the air: by wsp, wsp-session or http."
    ),
    "capabilities": Given(flag="--capability"),
}

DEVICES: tuple[Operation, ...] = (
    Operation(
        method="POST",
        path="/v1/devices",
        summary="Register a device; its token is shown once and not stored",
        scope=Scope.DEVICES,
        handler=devices.register,
        body=administration.NewDevice,
        answers={201: answers.DeviceInfo},
        refusals=(409, 415),
        command=Command(
            "device register",
            "phone --user alice --topic news\nhandset --route wsp=192.0.2.10",
            given={"subscriptions": Given(flag="--topic"), **_ADDRESSES},
            says="{token}",
        ),
    ),
    Operation(
        method="PATCH",
        path=_DEVICE,
        summary="Change a device's user, its addresses or its capabilities",
        scope=Scope.DEVICES,
        handler=devices.change,
        body=administration.DeviceChange,
        answers={200: answers.DeviceInfo},
        refusals=(404, 415),
        command=Command(
            "device change",
            "phone --user alice --address PLMN:+15551999\n"
            "phone --capability Model=A1 --capability 'Push-Accept=text/plain'",
            more="Whatever is not given stays as it is.",
            given=_ADDRESSES,
            says="changed {given} of {name}",
        ),
    ),
    Operation(
        method="GET",
        path="/v1/devices",
        summary="List the devices of the app",
        scope=Scope.DEVICES,
        handler=devices.list_devices,
        query=resources.ListQuery,
        answers={200: answers.DeviceList},
        command=Command(
            "device list",
            fixed={"after": 0, "limit": 1000},
            rows="devices",
            columns="name user contact open topics=subscriptions",
            derived={
                "contact": lambda row: row.get("link") or ("yes" if row["in_contact"] else "")
            },
            each=True,
        ),
    ),
    Operation(
        method="GET",
        path=_DEVICE,
        summary="Show a device and how it is reached",
        scope=Scope.DEVICES,
        handler=devices.show,
        answers={200: answers.DeviceInfo},
        refusals=(404,),
        command=Command("device show", "phone"),
    ),
    Operation(
        method="POST",
        path=f"{_DEVICE}/token",
        summary="Give a device a new token, which is shown once and not stored",
        scope=Scope.DEVICES,
        handler=devices.rotate,
        body=administration.TokenRotation,
        optional=True,
        answers={200: answers.DeviceInfo},
        refusals=(404, 415),
        command=Command(
            "device token", "phone\nphone --overlap 3600 --expires-in 2592000", says="{token}"
        ),
    ),
    Operation(
        method="GET",
        path=f"{_DEVICE}/preferences",
        summary="Show the preferences of a device: links, limits, queues, quiet hours",
        scope=Scope.DEVICES,
        handler=preferences.show,
        answers={200: Preferences},
        refusals=(404,),
        command=Command("device preferences", "phone"),
    ),
    Operation(
        method="PUT",
        path=f"{_DEVICE}/preferences",
        summary="Set the preferences of a device, in place of its earlier ones",
        scope=Scope.DEVICES,
        handler=preferences.change,
        body=Preferences,
        answers={200: Preferences},
        refusals=(404,),
        command=Command(
            "device prefer",
            "phone preferences.json",
            file=True,
            says="{name} has the preferences of {file}",
        ),
    ),
    Operation(
        method="GET",
        path=f"{_DEVICE}/budgets",
        summary="Show how much of a device's limits is used",
        scope=Scope.DEVICES,
        handler=preferences.budgets,
        answers={200: preferences.BudgetInfo},
        refusals=(404,),
        command=Command(
            "device budgets",
            "phone",
            offline=False,
            says="{held} deliveries wait for a link, a limit or a better time",
            rows="limits",
            columns="limit queues link used reserved until",
            derived={
                "limit": lambda row: "{amount} {measure} per {period}".format(**row["limit"]),
                "queues": lambda row: row["limit"].get("queues"),
                "link": lambda row: row["limit"].get("link"),
            },
        ),
    ),
    Operation(
        method="DELETE",
        path=_DEVICE,
        summary="Remove a device: its open deliveries become undeliverable",
        scope=Scope.DEVICES,
        handler=devices.remove,
        query=resources.RemoveQuery,
        answers={200: answers.Removed},
        refusals=(404,),
        command=Command(
            "device remove",
            "phone --erase",
            says="removed {name}",
            result=lambda gone: {"removed": gone["name"], "erased": gone["erased"]},
        ),
    ),
)
