"""What the PAP door allows, and says of itself."""

from __future__ import annotations

from dataclasses import dataclass

from lasthop.clock import DAY, SECOND, Micros


@dataclass(frozen=True, slots=True, kw_only=True)
class PapSettings:
    """The door's limits; all of them can be set."""

    name: str = "lasthop"
    """The sender's name in answers."""
    max_body: int = 8 << 20
    """Bytes of a request: the control entity has one of them at most, the rest is content."""
    notify_hosts: tuple[str, ...] = ()
    """Hosts to which outcomes are reported; `*.example.org` for all below a name. None: any."""
    notify_private: bool = False
    """Report to addresses of this machine and of private networks as well. Otherwise an initiator
    could make the gateway post to services that only it can reach."""
    response_wait: Micros = DAY + 30 * SECOND
    """How long after the push a device may think of its answer, as the device is told."""
    traced: bool = False
    """Whether a push belongs to the trace that its request names."""
