"""Where outcomes may be reported to: an initiator names a URL, and we decide whether to go."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_address
from urllib.parse import urlsplit

from lasthop.errors import Forbidden, InvalidRequest

MAX_URL = 2000
"""Characters; it is kept with every push."""

REMEMBERED = 1000
"""URLs that need not be looked at again; at most 2 MB."""


class Destinations:
    """The policy for URLs, and for the addresses behind their names."""

    def __init__(self, *, hosts: tuple[str, ...] = (), private: bool = False) -> None:
        self._hosts = tuple(host.lower() for host in hosts)
        self._private = private
        self._good: dict[str, None] = {}
        """URLs that were looked at: most initiators have one."""

    def check(self, url: str) -> None:
        """Refuse a URL to which nothing will be sent. What a name stands for is looked at when
        something is."""
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
            raise InvalidRequest("ppg-notify-requested-to is not a proper URL", url=url[:80])
        if parts.username is not None:
            raise InvalidRequest("ppg-notify-requested-to has a user in it", host=host)
        if self._hosts and not any(_matches(host, pattern) for pattern in self._hosts):
            raise Forbidden("outcomes are not reported to this host", host=host)
        try:
            address = ip_address(host)
        except ValueError:
            return
        if not self.allows(address):
            raise Forbidden("outcomes are not reported to private addresses", host=host)

    def allows(self, address: IPv4Address | IPv6Address) -> bool:
        """Whether to connect to this address."""
        mapped = getattr(address, "ipv4_mapped", None)
        real = mapped or address
        return self._private or (real.is_global and not real.is_multicast)


def _matches(host: str, pattern: str) -> bool:
    if pattern.startswith("*."):
        return host.endswith(pattern[1:])
    return host == pattern
