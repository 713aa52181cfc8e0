"""Requests whose answer somebody waits for."""

from __future__ import annotations

from lasthop.device.happenings import Gathered, RequestAnswered, TimedOut
from lasthop.device.requests.expectation import Expectation

__all__ = ["Expectation", "Gathered", "RequestAnswered", "TimedOut"]
