"""Whether a request can be met at all by the devices that it is for.

A publisher who sends to one device is told at once if the device's preferences rule the message
out; nothing is stored then. For one device among many the delivery is suppressed with the same
words.
"""

from __future__ import annotations

from collections.abc import Mapping

from lasthop.clock import Micros
from lasthop.core.deliveries import Deliveries
from lasthop.core.feature import Asked
from lasthop.core.registry import Device
from lasthop.errors import Contradiction

FEW = 16
"""The largest number of devices of one user that are all checked: each check is a proof that takes
time. For more devices the message is accepted, and every delivery records what became of it."""


def check_possible(
    deliveries: Deliveries, devices: Mapping[int, Device], asked: Asked, now: Micros
) -> None:
    """Raise an error if none of these devices can ever get a message as its publisher asks."""
    if len(devices) > FEW:
        return
    first: Contradiction | None = None
    for device in devices.values():
        error = _objection(deliveries, device, asked, now)
        if error is None:
            return
        first = first or error
    if first is not None:
        raise first


def check_possible_for_all(
    deliveries: Deliveries, devices: Mapping[int, Device], asked: Asked, now: Micros
) -> None:
    """Raise an error if one of these devices can never get a message that all must get."""
    for device in devices.values():
        error = _objection(deliveries, device, asked, now)
        if error is not None:
            raise error


def _objection(
    deliveries: Deliveries, device: Device, asked: Asked, now: Micros
) -> Contradiction | None:
    sender = deliveries.session(device).sender
    if sender is deliveries.sender:
        return None  # Like most devices, it accepts everything at any time.
    against = sender.objection(asked, now)
    if against is None:
        return None
    error = against.error()
    error.fields["device"] = device.name
    return error
