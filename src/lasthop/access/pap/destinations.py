"""Decides to which URLs outcomes may be reported: an initiator names a URL, and the gateway checks
that posting there is allowed."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from urllib.parse import urlsplit

from lasthop.errors import Forbidden, InvalidRequest

MAX_URL = 2000
"""The longest URL, in characters; the URL is stored with every push."""

REMEMBERED = 1000
"""How many checked URLs are remembered; at most 2 MB."""


_CARRYING_IPV4 = (
    (IPv6Network("::/96"), 0),  # IPv4-compatible (RFC 4291, 2.5.5.1); unspecified and loopback too
    (IPv6Network("::ffff:0:0/96"), 0),  # IPv4-mapped (RFC 4291, 2.5.5.2)
    (IPv6Network("64:ff9b::/96"), 0),  # NAT64 (RFC 6052), which DNS64 makes of any IPv4 address
    (IPv6Network("2002::/16"), 80),  # 6to4 (RFC 3056)
)
"""The IPv6 networks whose addresses contain an IPv4 address, and by how many bits that is shifted
to the left."""

_GLOBAL_UNICAST = IPv6Network("2000::/3")
"""All IPv6 addresses that are assigned to hosts on the internet (RFC 4291, 2.4). Python also calls
others global that are not: local NAT64 (64:ff9b:1::/48), IPv4-translated, site-local and segment
routing addresses. Teredo (2001::/32) is within this network, but Python never calls it global."""


class Destinations:
    """The policy for the URLs to which outcomes are reported, and for the addresses behind their
    host names."""

    def __init__(self, *, hosts: tuple[str, ...] = (), private: bool = False) -> None:
        self._hosts = tuple(host.lower() for host in hosts)
        self._private = private
        self._good: dict[str, None] = {}
        """The URLs that passed the check; most initiators always use the same one."""

    def check(self, url: str) -> None:
        """Raise `InvalidRequest` or `Forbidden` for a URL to which outcomes are not reported. The
        addresses of a host name are checked by `allows` when a report is sent."""
        if url in self._good:
            return
        self._check(url)
        if len(self._good) >= REMEMBERED:
            self._good.clear()
        self._good[url] = None

    def _check(self, url: str) -> None:
        try:
            parts = urlsplit(url)
            host, _ = parts.hostname, parts.port
        except ValueError:
            raise InvalidRequest("ppg-notify-requested-to is not a URL", url=url[:80]) from None
        if parts.scheme not in ("http", "https") or not host:
            raise InvalidRequest("ppg-notify-requested-to is not an http URL", url=url[:80])
        if len(url) > MAX_URL or not url.isascii() or not url.isprintable() or " " in url:
            raise InvalidRequest(
                "ppg-notify-requested-to is too long, or has characters that no URL has",
                url=url[:80],
            )
        if parts.username is not None:
            raise InvalidRequest("ppg-notify-requested-to must not contain a user name", host=host)
        if self._hosts and not any(_matches(host, pattern) for pattern in self._hosts):
            raise Forbidden("outcomes are not reported to this host", host=host)
        try:
            address = ip_address(host)
        except ValueError:
            return
        if not self.allows(address):
            raise Forbidden("outcomes are not reported to private addresses", host=host)

    def allows(self, address: IPv4Address | IPv6Address) -> bool:
        """Whether outcomes may be posted to this address."""
        return self._private or is_public(address)


def is_public(address: IPv4Address | IPv6Address) -> bool:
    """Whether this address is reachable from the whole internet and means the same host
    everywhere."""
    if isinstance(address, IPv6Address):
        for network, shift in _CARRYING_IPV4:
            if address in network:
                return is_public(IPv4Address(int(address) >> shift & 0xFFFFFFFF))
        if address not in _GLOBAL_UNICAST:
            return False
    return address.is_global and not address.is_multicast


def _matches(host: str, pattern: str) -> bool:
    if pattern.startswith("*."):
        return host.endswith(pattern[1:])
    return host == pattern
