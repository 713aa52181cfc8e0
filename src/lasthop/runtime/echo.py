"""Repeats events among the gateway's log lines, for debugging with the log alone.

With `log_level = "debug"` every event is also written to standard error, with the ids of its
message and device.
"""

from __future__ import annotations

import structlog

from lasthop.events import Event

log = structlog.get_logger("lasthop.events")

_SAID = ("app", "topic", "link", "state", "reason", "policy", "size", "bytes")
"""The fields of an event that are shown besides its ids, where it has them."""


def say(event: Event) -> None:
    """Write one event as one log line."""
    facts: dict[str, object] = {"n": event.n}
    if event.dev:
        facts["device"] = event.dev
    if event.msg:
        facts["message"] = f"{event.msg:016x}"
    facts |= {name: value for name in _SAID if (value := getattr(event, name))}
    log.debug(event.kind, **facts)
