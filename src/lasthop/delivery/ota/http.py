"""OTA-HTTP: pushes are posted to clients, over connections that either side has opened."""

from __future__ import annotations

from collections.abc import Callable

from lasthop.clock import Clock
from lasthop.delivery.carrier import Parcel
from lasthop.delivery.ota.http_client import Client, Connection, Report

MAX_CLIENTS = 100_000
"""Whose registrations are remembered; who is forgotten is asked again."""


class HttpCarrier:
    """Posts pushes to clients."""

    def __init__(
        self,
        *,
        clock: Clock,
        invite: Callable[[str], None] | None = None,
        reachable: Callable[[str], None] = lambda host: None,
    ) -> None:
        """`invite` asks the client at a host to connect to us, where we can be connected to;
        `reachable` is told who has done so."""
        self.clock = clock
        self.invite = invite
        self.reachable = reachable
        self._clients: dict[str, Client] = {}
        self.connections = 0

    def carry(self, parcel: Parcel, report: Report) -> None:
        """Post it, as soon as there is a connection."""
        endpoint = parcel.route.endpoint()
        self.client(endpoint[0]).take(parcel, report, endpoint)

    def client(self, host: str) -> Client:
        """The client at a host."""
        client = self._clients.pop(host, None) or Client(self, host)
        self._clients[host] = client  # Newest last.
        if len(self._clients) > MAX_CLIENTS:
            oldest = next(iter(self._clients))
            if not self._clients[oldest].busy:
                del self._clients[oldest]
        return client

    def accept(self) -> Connection:
        """A client connects to us: the protocol of its connection."""
        return Connection(self, None)

    def close(self) -> None:
        """Let everybody go; nothing more is reported."""
        for client in self._clients.values():
            client.close()
