"""Requests of this device whose answer has not come."""

from __future__ import annotations

from lasthop.device.requests.expectation import Expectation
from lasthop.device.session_events import Gathered, RequestAnswered, TimedOut

__all__ = ["Expectation", "Gathered", "RequestAnswered", "TimedOut"]
