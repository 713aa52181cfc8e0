"""`lasthop doctor`: checks that everything a gateway needs is there, and says how to get what is
missing.

Each check is a function that examines one thing and returns a `Finding`; `examine` runs them all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from lasthop.errors import LasthopError
from lasthop.runtime import settings
from lasthop.runtime.doctor import build, gateway, learning, machine, signed_tokens
from lasthop.runtime.doctor.finding import Finding, FindingState

__all__ = ["Finding", "FindingState", "examine"]


def examine(
    config: Path | None, *, environment: Mapping[str, str], data: Path | None = None
) -> Iterator[Finding]:
    """Run all checks, one after the other; the checks of a gateway use the settings that the
    gateway would have."""
    yield machine.python()
    yield machine.sqlite()
    yield machine.event_loop()
    yield machine.open_files()
    options = {"data": str(data) if data is not None else None}
    try:
        chosen = settings.load(config, environment=environment, options=options)
    except LasthopError as error:
        yield gateway.unreadable(error)
    else:
        yield gateway.configuration(config, chosen)
        yield from gateway.certificates(chosen.tls)
        yield from gateway.traces(chosen.traces.endpoint)
        yield from gateway.rights(chosen)
        yield from signed_tokens.issuers(chosen.issuers)
        yield gateway.directory(Path(chosen.data))
        yield gateway.disk(Path(chosen.data))
        yield machine.clock(Path(chosen.data))
        yield from gateway.ports(chosen)
    yield build.accelerated()
    yield learning.spark()
    yield learning.java()
