"""Two counters for one kind of business: a running gateway, or a data directory that no gateway is
using."""

from __future__ import annotations

from pathlib import Path

from lasthop.runtime.cli.administration import Administration
from lasthop.runtime.cli.at_gateway import AtGateway
from lasthop.runtime.cli.at_store import AtStore


def desk(url: str, token: str | None, app: str, data: Path | None) -> Administration:
    """The counter to go to."""
    return AtGateway(url, token, app) if data is None else AtStore(data, app)
