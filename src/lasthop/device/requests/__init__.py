"""Requests whose answer somebody waits for."""

from __future__ import annotations

from lasthop.device.happenings import Answered, Gathered, TimedOut
from lasthop.device.requests.expectation import Expectation

__all__ = ["Answered", "Expectation", "Gathered", "TimedOut"]
