"""Decides whether a request comes from a process of this machine that acts for itself, which an
open gateway requires of requests without a credential.

An address only says where a connection ends: a proxy on this machine speaks for strangers, and a
browser on this machine does what the pages of strangers tell it to. Every HTTP door, for
publishers, people and devices alike, therefore asks `from_this_machine`.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any
from urllib.parse import SplitResult, urlsplit

FORWARDED = frozenset(
    {
        # The standards: RFC 7239, RFC 9110 (7.6.3) and RFC 8586.
        b"forwarded",
        b"via",
        b"cdn-loop",
        # The headers of nginx, Apache, Caddy, Traefik, HAProxy and most tunnels, alone or together.
        b"x-forwarded",
        b"x-forwarded-by",
        b"x-forwarded-for",
        b"x-forwarded-host",
        b"x-forwarded-port",
        b"x-forwarded-prefix",
        b"x-forwarded-proto",
        b"x-forwarded-protocol",
        b"x-forwarded-scheme",
        b"x-forwarded-server",
        b"x-forwarded-ssl",
        b"x-original-forwarded-for",
        b"x-original-host",
        b"x-real-ip",
        b"x-client-ip",
        b"x-cluster-client-ip",
        b"x-envoy-external-address",
        b"front-end-https",
        # Content delivery networks and clouds, whose agents may run on this machine.
        b"cf-connecting-ip",
        b"cf-connecting-ipv6",
        b"cf-ray",
        b"fastly-client-ip",
        b"fly-client-ip",
        b"true-client-ip",
        b"x-appengine-user-ip",
        b"x-azure-clientip",
    }
)
"""Headers that are only added by a program that passes on another's request. Such a request comes
from a stranger, whatever the header's value is: values are not read, so that forging them gains
nothing. A proxy that adds none of them cannot be told from a local process; whoever runs such a
proxy must require credentials of everybody."""

_DEFAULT_PORTS = {"http": 80, "https": 443}

_OWN_SITES = frozenset({b"same-origin", b"none"})
"""The values of Sec-Fetch-Site for requests by our own pages, and by a person at the address bar.
Pages of another port are `same-site`."""


def from_this_machine(headers: Mapping[bytes, bytes], peer: str | None) -> bool:
    """Whether a request with these headers (see `joined`) comes from a process of this machine that
    acts for itself.

    A proxy is recognised by the headers that it adds; a page as `from_foreign_page` says or, when
    its own name was made to lead here (DNS rebinding), by that name in Host.
    """
    return (
        peer is not None
        and _is_loopback(peer)
        and FORWARDED.isdisjoint(headers)
        and _names_this_machine(headers.get(b"host", b""))
        and not from_foreign_page(headers)
    )


def from_foreign_page(headers: Mapping[bytes, bytes]) -> bool:
    """Whether a page that is not the gateway's own has made a browser send this request.

    Then what a browser adds by itself, such as a cookie, does not show that its owner wants the
    request. A token that the page itself sends does show it.
    """
    origin = headers.get(b"origin")
    if origin is not None and not _same_place(origin, headers.get(b"host", b"")):
        return True
    return headers.get(b"sec-fetch-site", b"none") not in _OWN_SITES


def joined(headers: Iterable[tuple[bytes, bytes]]) -> dict[bytes, bytes]:
    """Return headers by their names in lower case; the values of a repeated header are joined (RFC
    9110, 5.3).

    Two of a header that may only occur once thus become one invalid value, and it does not depend
    on chance which of them counts.
    """
    found: dict[bytes, bytes] = {}
    for given, value in headers:
        name = given.lower()
        before = found.get(name)
        between = b"; " if name == b"cookie" else b", "
        found[name] = value if before is None else before + between + value
    return found


def peer_of(connection: Mapping[str, Any]) -> str | None:
    """Return the address at the other end of an ASGI connection; None if it is unknown."""
    client = connection.get("client")
    return client[0] if client else None


def is_local(peer: object) -> bool:
    """Whether a socket's peer is on this machine; a Unix socket's always is."""
    if isinstance(peer, str | bytes):
        return True
    if not isinstance(peer, tuple) or not peer:
        return peer is None
    return _is_loopback(str(peer[0]))


@lru_cache(256)
def _is_loopback(address: str) -> bool:
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    mapped = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None
    return (mapped or found).is_loopback


@lru_cache(256)
def _names_this_machine(host: bytes) -> bool:
    place = _split(b"//" + host)
    return place is not None and (
        place.hostname == "localhost" or _is_loopback(place.hostname or "")
    )


@lru_cache(256)
def _same_place(origin: bytes, host: bytes) -> bool:
    """Whether an Origin has the host and the port that Host names.

    The gateway's own scheme does not matter: behind a proxy that ends TLS it is not the browser's.
    A port that neither names is therefore the default of the Origin's scheme.
    """
    page, here = _split(origin), _split(b"//" + host)
    if page is None or here is None:
        return False
    default = _DEFAULT_PORTS.get(page.scheme)  # `null` and the pages of apps have none.
    if default is None:
        return False
    return (page.hostname, page.port or default) == (here.hostname, here.port or default)


def _split(address: bytes) -> SplitResult | None:
    try:
        found = urlsplit(address.decode("latin-1"))
        _ = found.port  # Parsed only on access: what follows the host may be no port at all.
    except ValueError:
        return None
    return found
