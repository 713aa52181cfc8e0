"""OTA-HTTP: pushes are posted to clients, over connections that either side has opened."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from lasthop.clock import Clock
from lasthop.delivery.carrier import Outcome, Parcel
from lasthop.delivery.ota.http_client import Client, Connection
from lasthop.delivery.ota.http_push import HttpPush, Report

MAX_CLIENTS = 100_000
"""The largest number of clients whose registrations are remembered; a forgotten client is asked to
register again."""


class HttpCarrier:
    """Posts pushes to clients that are HTTP servers."""

    def __init__(
        self,
        *,
        clock: Clock,
        invite: Callable[[str], None] | None = None,
        reachable: Callable[[str], None] = lambda host: None,
    ) -> None:
        """Create the carrier. `invite` asks the client at a host to connect to the gateway, None if
        clients cannot connect to it; `reachable` is called with the host of each client that
        connects."""
        self.clock = clock
        self.invite = invite
        self.reachable = reachable
        self._clients: dict[str, Client] = {}
        self._pushes: dict[int, tuple[Client, HttpPush]] = {}
        """The pushes that have no outcome yet, by the numbers of their parcels."""
        self.connections = 0

    def carry(self, parcel: Parcel, report: Report) -> None:
        """Post the parcel as soon as there is a connection to the client."""
        endpoint = parcel.route.endpoint()
        client = self.client(endpoint[0])
        push = HttpPush(parcel, report)
        if parcel.number:
            push = HttpPush(parcel, partial(self._ended, parcel.number, report))
            self._pushes[parcel.number] = client, push
        client.take(push, endpoint)

    def withdraw(self, number: int) -> bool:
        """Take back a parcel that waits for a connection, or for its turn on one."""
        client, push = self._pushes.get(number, (None, None))
        if client is None or push is None or not client.withdraw(push):
            return False
        del self._pushes[number]
        return True

    def _ended(self, number: int, report: Report, outcome: Outcome) -> None:
        del self._pushes[number]
        report(outcome)

    def client(self, host: str) -> Client:
        """Return the client at a host, and remember it as the one used last."""
        client = self._clients.pop(host, None) or Client(self, host)
        self._clients[host] = client  # Used last: at the end.
        if len(self._clients) > MAX_CLIENTS:
            oldest = next(iter(self._clients))
            if not self._clients[oldest].busy:
                del self._clients[oldest]
        return client

    def accept(self) -> Connection:
        """Return the protocol for a connection that a client opens."""
        return Connection(self, None)

    def close(self) -> None:
        """Close all connections; nothing more is reported."""
        for client in self._clients.values():
            client.close()
