"""The jobs and orders of the processes of a soak, and their answers."""

from __future__ import annotations

import msgspec


class Coming(msgspec.Struct, kw_only=True):
    """The job of a process with devices that come and go."""

    port: int
    count: int
    online: float
    """Mean seconds for which a device stays connected."""
    away: float
    """Mean seconds until it comes back."""


class Pouring(msgspec.Struct, kw_only=True):
    """The job of a publisher that sends to one device after the other."""

    port: int
    devices: int
    rate: float
    """Messages per second."""


class Report(msgspec.Struct, kw_only=True):
    """The order to report; with `last` to stop publishing, or to connect all devices for good."""

    last: bool = False


class Arrived(msgspec.Struct, kw_only=True):
    """What the devices have got until now."""

    received: int
    duplicated: int
    misordered: int
    contacts: int
    """How often a device has connected."""


class Poured(msgspec.Struct, kw_only=True):
    """What the publisher was answered until now."""

    accepted: int
    refused: int


def device_name(number: int) -> str:
    """Return the name of a device of a soak."""
    return f"soak-{number}"
