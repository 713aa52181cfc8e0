"""The results of the experiment, as `--json` prints them."""

from __future__ import annotations

import msgspec

PARTS = ("application", "overhead", "transport")


class Point(msgspec.Struct, frozen=True):
    """One protocol over one network with a number of calls: averages of all seeds."""

    network: str
    protocol: str
    calls: int
    seconds: float
    deviation: float
    application: float
    """Octets of the messages, both directions together."""
    overhead: float
    """Octets that the protocol adds to the messages."""
    transport: float
    """Octets of TCP and IP: headers, and segments without data."""
    packets: float
