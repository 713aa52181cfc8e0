"""How long a battery lasts, and the paper's index of efficiency.

The index is printed without its operators in the text that we have. Our reading: the share of the
longest operation that a service reaches, divided by the share of the longest idle time that its
device has, and all of it scaled so that the best service has one.
"""

from __future__ import annotations

from collections.abc import Mapping

from lasthop.clock import HOUR, SECOND, Micros

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
