"""Events among the gateway's own log lines, for whoever debugs with that alone.

With `log_level = "debug"` every event is also said on standard error, with the ids of its message
and device.
"""

from __future__ import annotations

import structlog

from lasthop.events import Event

log = structlog.get_logger("lasthop.events")

_SAID = ("app", "topic", "link", "state", "reason", "policy", "size", "bytes")
"""What is worth a word of an event that has it, beside its ids."""


def say(event: Event) -> None:
    """One event as one line."""
    facts: dict[str, object] = {"n": event.n}
    if event.dev:
        facts["device"] = event.dev
    if event.msg:
        facts["message"] = f"{event.msg:016x}"
    facts |= {name: value for name in _SAID if (value := getattr(event, name))}
    log.debug(event.kind, **facts)
