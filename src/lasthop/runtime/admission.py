"""Counts the HTTP connections of a gateway, and limits them.

There is a limit on all connections, below the limit of open files, and a limit for every address.
Connections beyond these limits are guests: they may ask only for the gateway's health, but an
administrator may ask for anything. There are few places for guests, and when all are taken, the
oldest guest is disconnected: a client that asks at once is answered, however many others stay
connected without asking.
"""

from __future__ import annotations

import resource
from collections import Counter
from collections.abc import Callable, Container
from ipaddress import IPv6Address, ip_address

KEPT_FILES = 256
"""Open files that are not for connections: the store, the log, surrogates, reports to publishers,
and the guests of `RESERVE`."""

RESERVE = 64
"""The largest number of guests: connections beyond the limit. A health probe that sends its request
at once needs its place only for milliseconds."""


class ConnectionPlace:
    """The place of one connection among the admitted ones."""

    __slots__ = ("_admission", "crowded", "cut", "network", "trusted")

    def __init__(
        self,
        admission: Admission,
        cut: Callable[[], object],
        network: str | None,
        *,
        crowded: bool,
    ) -> None:
        self._admission: Admission | None = admission
        self.cut = cut
        """The function that ends the connection at once."""
        self.network = network
        self.crowded = crowded
        """Whether the connection is a guest beyond the limit, which may make one request only."""
        self.trusted = False
        """Whether the connection is an administrator's; other guests are disconnected first."""

    def leave(self) -> None:
        """Give the place back when the connection has ended."""
        if self._admission is not None:
            self._admission.left(self)
            self._admission = None


class Admission:
    """Counts the open connections and gives each new one its place."""

    def __init__(
        self,
        *,
        most: Callable[[], int],
        per_address: int = 0,
        reserve: int = RESERVE,
        proxies: Container[str] = (),
    ) -> None:
        """`most` connections are settled, at most half of them from one address, and at most
        `per_address` if that is not 0; `proxies` may have more, as they forward everybody's
        requests."""
        self._proxies = proxies
        self._most = most
        self._per_address = per_address
        self._reserve = reserve
        self._settled = 0
        self._by_network: Counter[str] = Counter()
        self._guests: dict[ConnectionPlace, None] = {}

    @property
    def connections(self) -> int:
        """The number of open connections, guests included."""
        return self._settled + len(self._guests)

    def enter(self, peer: str | None, cut: Callable[[], object]) -> ConnectionPlace:
        """Give a new connection its place; `cut` is called to end the connection at once."""
        counted = peer and self._per_address and peer not in self._proxies
        network = network_of(peer) if peer and counted else None
        place = ConnectionPlace(self, cut, network, crowded=self._is_full(network))
        if place.crowded:
            if len(self._guests) >= self._reserve:
                self._send_one_away()
            self._guests[place] = None
        else:
            self._settled += 1
            if network is not None:
                self._by_network[network] += 1
        return place

    def left(self, place: ConnectionPlace) -> None:
        """Stop counting a connection; called by `ConnectionPlace.leave`."""
        if place.crowded:
            self._guests.pop(place, None)
            return
        self._settled -= 1
        if place.network is not None:
            self._by_network[place.network] -= 1
            if not self._by_network[place.network]:
                del self._by_network[place.network]

    def _is_full(self, network: str | None) -> bool:
        most = self._most()
        if self._settled >= most:
            return True
        return network is not None and self._by_network[network] >= min(
            self._per_address, most // 2
        )

    def _send_one_away(self) -> None:
        oldest = next(iter(self._guests))
        place = next((guest for guest in self._guests if not guest.trusted), oldest)
        del self._guests[place]
        place.cut()


def network_of(peer: str) -> str | None:
    """Return the network for which a connection is counted: an IPv4 address, or the /64 network of
    an IPv6 address, which one subscriber has. None for a connection from this machine, where a
    proxy may forward everybody's requests."""
    try:
        address = ip_address(peer.partition("%")[0])
    except ValueError:
        return None
    if isinstance(address, IPv6Address):
        if address.ipv4_mapped is None:
            return None if address.is_loopback else address.exploded[:19]
        address = address.ipv4_mapped
    return None if address.is_loopback else str(address)


def descriptors_for_connections(limit: int | None = None) -> int:
    """Return how many connections the limit of open files allows; if the limit is very low, a
    quarter of it."""
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0] if limit is None else limit
    return 1 << 30 if soft == resource.RLIM_INFINITY else max(soft // 4, soft - KEPT_FILES)
