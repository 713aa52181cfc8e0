"""How many HTTP connections there are, and what becomes of one too many.

Connections are settled up to a limit that stays below the one of open files, and up to another one
for every address. Those beyond are let in for a moment: they may ask how the gateway is, and an
administrator may ask for anything. There are few such places, and when all are taken, the oldest
guest leaves: whoever asks at once is answered, however many others only sit there.
"""

from __future__ import annotations

import resource
from collections import Counter
from collections.abc import Callable
from ipaddress import IPv6Address, ip_address

KEPT_FILES = 256
"""Open files that are not for connections: the store, the log, surrogates, reports to publishers,
and the places of `RESERVE`."""

RESERVE = 64
"""Connections beyond the limit. A probe that asks at once needs its place for milliseconds."""


class ConnectionPlace:
    """What one connection has taken."""

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
        """Ends the connection at once."""
        self.network = network
        self.crowded = crowded
        """Whether it is one too many, and is to ask one thing and leave."""
        self.trusted = False
        """Whether it is an administrator's; then others leave first."""

    def leave(self) -> None:
        """The connection is gone."""
        if self._admission is not None:
            self._admission.left(self)
            self._admission = None


class Admission:
    """Counts connections."""

    def __init__(
        self, *, most: Callable[[], int], per_address: int = 0, reserve: int = RESERVE
    ) -> None:
        """`most` connections are settled, at most half of them from one address, and at most
        `per_address` if that is not 0."""
        self._most = most
        self._per_address = per_address
        self._reserve = reserve
        self._settled = 0
        self._by_network: Counter[str] = Counter()
        self._guests: dict[ConnectionPlace, None] = {}

    @property
    def connections(self) -> int:
        """How many connections are open."""
        return self._settled + len(self._guests)

    def enter(self, peer: str | None, cut: Callable[[], object]) -> ConnectionPlace:
        """Give a new connection its place; `cut` ends it at once."""
        network = network_of(peer) if peer and self._per_address else None
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
        """See `ConnectionPlace.leave`."""
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
    """Whom a connection is counted for: an IPv4 address, or the /64 of IPv6 that one subscriber
    has. None for this machine, where a proxy may bring everybody."""
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
    """How many connections the limit of open files has room for; a quarter of a very low one."""
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0] if limit is None else limit
    return 1 << 30 if soft == resource.RLIM_INFINITY else max(soft // 4, soft - KEPT_FILES)
