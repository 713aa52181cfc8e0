"""How long a battery lasts, and the paper's index of efficiency.

The index is printed without its operators in the text that we have. Our reading: the share of the
longest operation that a service reaches, divided by the share of the longest idle time that its
device has, and all of it scaled so that the best service has one.
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
"""Joules: 1650 mAh at 3.7 V, the larger of the paper's phones."""

REST = 0.025
"""Watts of a phone that does nothing, without its radio."""


def operation(joules: float, length: Micros) -> float:
    """Hours that a battery lasts, when the radio takes so much in that time."""
    seconds = length / SECOND
    watts = REST + joules / seconds
    return BATTERY / watts / (HOUR / SECOND)


def index(
    operation_hours: Mapping[str, float], idle_hours: Mapping[str, float]
) -> dict[str, float]:
    """Of every service, between 0 and 1."""
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
    """What some hours of messages took, and how long a battery would last at that."""

    service: str
    bearer: str
    radio_joules: float
    hours: float
    """That a battery lasts."""
    idle_hours: float
    index: float
    """The paper's, by our reading of it."""


def idle(bearer: Bearer, length: Micros, *, seed: int = 0) -> float:
    """Joules of our own device when nobody sends anything: its heartbeats, as often as a gateway
    asks for by default. The emulated services are given none."""
    nothing = Setting(length=length, every=2 * length)
    return Experiment(bearer, nothing, seed=seed).run().joules


def energy(bearer: Bearer, setting: Setting, *, seed: int = 0) -> list[Energy]:
    """Everyone on one kind of network: our own gateway and device, and emulated services."""
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
