"""Devices, and what they and their users wish."""

from __future__ import annotations

from lasthop.access.rest import answers, devices, preferences
from lasthop.access.rest.administration import DeviceChange, NewDevice
from lasthop.access.rest.operations.operation import Operation
from lasthop.core.apps.credentials import Scope
from lasthop.decision.preferences import Preferences

_DEVICE = "/v1/devices/{name}"

DEVICES: tuple[Operation, ...] = (
    Operation(
        method="POST",
        path="/v1/devices",
        summary="Register a device; its token is shown once",
        scope=Scope.DEVICES,
        handler=devices.register,
        body=NewDevice,
        answers={201: answers.DeviceInfo},
        refusals=(409, 415),
    ),
    Operation(
        method="GET",
        path="/v1/devices",
        summary="The devices of the app",
        scope=Scope.DEVICES,
        handler=devices.list_devices,
        query=devices.ListQuery,
        answers={200: answers.DeviceList},
    ),
    Operation(
        method="GET",
        path=f"{_DEVICE}/preferences",
        summary="What a device prefers: links, limits, queues, quiet hours",
        scope=Scope.DEVICES,
        handler=preferences.show,
        answers={200: Preferences},
        refusals=(404,),
    ),
    Operation(
        method="PUT",
        path=f"{_DEVICE}/preferences",
        summary="Say what a device prefers",
        scope=Scope.DEVICES,
        handler=preferences.change,
        body=Preferences,
        answers={200: Preferences},
        refusals=(404,),
    ),
    Operation(
        method="GET",
        path=f"{_DEVICE}/budgets",
        summary="What is used of a device's limits",
        scope=Scope.DEVICES,
        handler=preferences.budgets,
        answers={200: preferences.BudgetInfo},
        refusals=(404,),
    ),
    Operation(
        method="GET",
        path=_DEVICE,
        summary="A device, and how it is reached",
        scope=Scope.DEVICES,
        handler=devices.show,
        answers={200: answers.DeviceInfo},
        refusals=(404,),
    ),
    Operation(
        method="PATCH",
        path=_DEVICE,
        summary="Change a device's user, zone or capabilities",
        scope=Scope.DEVICES,
        handler=devices.change,
        body=DeviceChange,
        answers={200: answers.DeviceInfo},
        refusals=(404, 415),
    ),
    Operation(
        method="DELETE",
        path=_DEVICE,
        summary="Remove a device",
        scope=Scope.DEVICES,
        handler=devices.remove,
        query=devices.RemoveQuery,
        answers={200: answers.Removed},
        refusals=(404,),
    ),
    Operation(
        method="POST",
        path=f"{_DEVICE}/token",
        summary="Give a device a new token; it is shown once",
        scope=Scope.DEVICES,
        handler=devices.rotate,
        answers={200: answers.DeviceInfo},
        refusals=(404,),
    ),
)
