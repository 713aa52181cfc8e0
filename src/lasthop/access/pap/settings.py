"""The settings of the PAP door."""

from __future__ import annotations

from dataclasses import dataclass

from lasthop.clock import DAY, SECOND, Micros


@dataclass(frozen=True, slots=True, kw_only=True)
class PapSettings:
    """The limits of the PAP door and the name that it gives in answers; every field can be set."""

    name: str = "lasthop"
    """The gateway's name as the sender of PAP answers."""
    max_body: int = 8 << 20
    """The largest request, in bytes. The control entity may use one MiB of it; the rest is
    content."""
    notify_hosts: tuple[str, ...] = ()
    """The hosts to which outcomes may be reported; `*.example.org` allows all hosts below that
    name. If empty, any host is allowed."""
    notify_private: bool = False
    """Whether outcomes may also be reported to addresses of this machine and of private networks.
    If so, an initiator can make the gateway post to services that only the gateway can reach."""
    response_wait: Micros = DAY + 30 * SECOND
    """How long after the push a device may take to answer; the device is told this limit."""
    traced: bool = False
    """Whether a push becomes part of the trace that its request names."""
