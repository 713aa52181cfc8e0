"""Two counters for one kind of business: a running gateway, or a data directory that no gateway is
using."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lasthop.runtime.cli.administration import AdminGateway
from lasthop.runtime.cli.at_gateway import AtGateway
from lasthop.runtime.cli.client import RestClient


@contextmanager
def desk(url: str, token: str | None, app: str, data: Path | None) -> Iterator[AdminGateway]:
    """The counter to go to."""
    if data is not None:
        # A whole gateway, which commands for a running one need not wait for.
        from lasthop.runtime.cli.at_store import AtStore  # noqa: PLC0415

        yield AtStore(data, app)
        return
    with RestClient(url, token=token, app=app) as client:
        yield AtGateway(client)
