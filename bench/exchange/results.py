"""What was measured, as `--json` has it."""

from __future__ import annotations

import msgspec

PARTS = ("application", "overhead", "transport")


class Point(msgspec.Struct, frozen=True):
    """One protocol over one network with so many calls: averages of all seeds."""

    network: str
    protocol: str
    calls: int
    seconds: float
    deviation: float
    application: float
    """Octets of the messages, both directions together."""
    overhead: float
    """What the protocol adds."""
    transport: float
    """TCP and IP: headers, and segments without data."""
    packets: float
