"""How long a battery lasts, and the paper's index of efficiency.

The index is printed without its operators in the text that we have. Our interpretation: the share
of the longest operation that a service reaches, divided by the share of the longest idle time that
its device has, all scaled so that the best service has one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lasthop.clock import HOUR, SECOND, Micros
from lasthop.simulation.odin.ours import Experiment
from lasthop.simulation.odin.radio import Bearer
from lasthop.simulation.odin.services import SERVICES, emulate
from lasthop.simulation.odin.setting import Setting

OURS = "lasthop"

BATTERY = 6.1 * 3600
"""Energy of a full battery in joules: 1650 mAh at 3.7 V, the larger of the paper's phones."""

REST = 0.025
"""Power of a phone that does nothing, in watts, without its radio."""


def operation(joules: float, length: Micros) -> float:
    """Return the hours that a battery lasts if the radio takes `joules` in the time `length`."""
    seconds = length / SECOND
    watts = REST + joules / seconds
    return BATTERY / watts / (HOUR / SECOND)


def index(
    operation_hours: Mapping[str, float], idle_hours: Mapping[str, float]
) -> dict[str, float]:
    """Return the efficiency index of every service, between 0 and 1."""
    longest = max(operation_hours.values())
    longest_idle = max(idle_hours.values())
    raw = {
        name: (hours / longest) / (idle_hours[name] / longest_idle)
        for name, hours in operation_hours.items()
    }
    best = max(raw.values())
    return {name: value / best for name, value in raw.items()}


@dataclass(frozen=True, slots=True)
class Energy:
    """The energy of one service for some hours of messages, and how long a battery would last."""

    service: str
    bearer: str
    radio_joules: float
    hours: float
    """Hours that a battery lasts with this service."""
    idle_hours: float
    index: float
    """The paper's efficiency index, by our interpretation of it."""


def idle(bearer: Bearer, length: Micros, *, seed: int = 0) -> float:
    """Return the joules that our own device takes without any messages: its heartbeats, as often as
    a gateway asks for by default. The emulated services have none."""
    nothing = Setting(length=length, every=2 * length)
    return Experiment(bearer, nothing, seed=seed).run().joules


def energy(bearer: Bearer, setting: Setting, *, seed: int = 0) -> list[Energy]:
    """Measure our own gateway and device, and all emulated services, on one kind of network."""
    joules = {OURS: Experiment(bearer, setting, seed=seed).run().joules}
    for service in SERVICES:
        joules[service.name] = emulate(service, bearer, setting).joules
    length = setting.length
    hours = {name: operation(spent, length) for name, spent in joules.items()}
    asleep = operation(bearer.asleep * length / SECOND, length)
    efficiency = index(hours, dict.fromkeys(hours, asleep))
    return [
        Energy(name, bearer.name, joules[name], hours[name], asleep, efficiency[name])
        for name in joules
    ]
