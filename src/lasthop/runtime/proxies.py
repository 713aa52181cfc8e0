"""What trusted proxies say about the callers whose requests they forward: the address, the scheme
and the host.

Nobody else is believed. The headers of other peers only show that a request was forwarded, which
makes its caller a stranger (`lasthop.transport.locality`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Literal, TypeAlias

from lasthop.errors import InvalidRequest
from lasthop.runtime.heads import is_host
from lasthop.transport.locality import joined

Address: TypeAlias = IPv4Address | IPv6Address
Scheme: TypeAlias = Literal["http", "https"]
Fields: TypeAlias = list[tuple[bytes, bytes]]

MAX_HOPS = 32
"""The most addresses that a forwarded request may have passed. Two or three are usual; every one of
them is parsed, so a caller must not be able to send thousands."""

BELIEVED = frozenset({b"forwarded", b"x-forwarded-for", b"x-forwarded-host", b"x-forwarded-proto"})
"""The headers that are read when a trusted proxy sends them."""

_TOKEN = rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_PAIR = re.compile(
    rb"[ \t]*(" + _TOKEN + rb")=(?:(" + _TOKEN + rb')|"((?:[^"\\]|\\.)*)")[ \t]*([;,]|$)'
)
"""One parameter of a Forwarded header, and what ends it (RFC 7239, section 4)."""

_NODE = re.compile(r"\[([0-9A-Fa-f:.]+)\](?::\d{1,5})?|([0-9.]+)(?::\d{1,5})?|([0-9A-Fa-f:.]+)")
"""An address, with the port that some proxies add."""

_HIDDEN = re.compile(r"(?:unknown|_[A-Za-z0-9._-]+)(?::[A-Za-z0-9._-]+)?", re.IGNORECASE)
"""A node that does not want to be known (RFC 7239, section 6)."""

_SCHEMES: dict[bytes, Scheme] = {b"http": "http", b"ws": "http", b"https": "https", b"wss": "https"}


@dataclass(frozen=True, slots=True)
class ForwardedRequest:
    """What is believed about a request that a trusted proxy has forwarded."""

    fields: Fields
    """The headers of the request as they would be without the proxy."""
    address: str | None
    """The address of the caller; None if the proxy does not know it."""
    scheme: Scheme | None
    """`http` or `https` if the proxy says how the caller has connected, else None."""


class TrustedProxies:
    """The addresses and networks of the proxies that are believed."""

    def __init__(self, networks: Iterable[str] = ()) -> None:
        """Raise `ValueError` for a text that is neither an address nor a network."""
        self._networks: list[IPv4Network | IPv6Network] = [ip_network(text) for text in networks]

    def __contains__(self, address: object) -> bool:
        if not self._networks:
            return False
        try:
            found = _plain(ip_address(str(address)))
        except ValueError:
            return False
        return any(found in network for network in self._networks)

    def read(self, fields: Fields, proxy: str) -> ForwardedRequest | None:
        """Return what this trusted proxy says about the caller of a request, or None if the proxy
        says nothing; raise `InvalidRequest` for what cannot be understood."""
        headers = joined(fields)
        if BELIEVED.isdisjoint(headers):
            return None
        host, scheme = headers.get(b"x-forwarded-host"), headers.get(b"x-forwarded-proto")
        callers: set[str | None] = set()
        if (value := headers.get(b"x-forwarded-for")) is not None:
            callers.add(self._caller(_addresses(value.split(b","), "X-Forwarded-For"), proxy)[0])
        if (value := headers.get(b"forwarded")) is not None:
            elements = _elements(value)
            nodes = [one.get(b"for", b"unknown") for one in elements]
            caller, place = self._caller(_addresses(nodes, "Forwarded"), proxy)
            callers.add(caller)
            host = elements[place].get(b"host", host)
            scheme = elements[place].get(b"proto", scheme)
        # A proxy that writes only one of them passes the other on as a stranger has written it.
        if len(callers) > 1:
            raise InvalidRequest("Forwarded and X-Forwarded-For name different callers")
        return ForwardedRequest(
            # Without an address the headers stay, and the caller is a stranger.
            fields=_rewritten(fields, _host(host), drop=BELIEVED if callers else frozenset()),
            address=callers.pop() if callers else proxy,
            scheme=_scheme(scheme),
        )

    def _caller(self, chain: list[Address | None], proxy: str) -> tuple[str | None, int]:
        """Return the last address of a chain that is no trusted proxy's, and its place.

        What stands before that address was written by somebody who is not trusted.
        """
        at = _plain(ip_address(proxy))
        place = len(chain)
        while place and at in self:
            place -= 1
            hop = chain[place]
            if hop is None:
                return None, place
            if hop.is_loopback and not at.is_loopback:
                break  # A process on the proxy's machine, which is not this machine.
            at = hop
        return str(at), place


def _addresses(nodes: list[bytes], header: str) -> list[Address | None]:
    if len(nodes) > MAX_HOPS:
        raise InvalidRequest("the request was forwarded too often", limit=MAX_HOPS)
    return [_address(node, header) for node in nodes]


def _address(node: bytes, header: str) -> Address | None:
    """Return the address of a node; None if the node is hidden."""
    text = node.strip().decode("latin-1")
    if _HIDDEN.fullmatch(text):
        return None
    found = _NODE.fullmatch(text)
    try:
        if found is not None:
            return _plain(ip_address(found[1] or found[2] or found[3]))
    except ValueError:
        pass
    raise InvalidRequest(f"{header} has something that is not an address", field=header)


def _elements(value: bytes) -> list[dict[bytes, bytes]]:
    """Return the elements of a Forwarded header, with the names of their parameters in lower
    case."""
    elements: list[dict[bytes, bytes]] = [{}]
    at = 0
    while at <= len(value) and len(elements) <= MAX_HOPS:
        found = _PAIR.match(value, at)
        name = found[1].lower() if found else b""
        if found is None or name in elements[-1]:
            raise InvalidRequest("the Forwarded header cannot be read", field="Forwarded")
        quoted = found[3]
        elements[-1][name] = found[2] if quoted is None else re.sub(rb"\\(.)", rb"\1", quoted)
        if not found[4]:
            break
        if found[4] == b",":
            elements.append({})
        at = found.end()
    return elements


def _scheme(value: bytes | None) -> Scheme | None:
    if value is None:
        return None
    # Of several, the first is what the caller has used.
    scheme = _SCHEMES.get(value.partition(b",")[0].strip().lower())
    if scheme is None:
        raise InvalidRequest("the forwarded scheme is neither http nor https")
    return scheme


def _host(value: bytes | None) -> bytes | None:
    host = value.partition(b",")[0].strip() if value is not None else None
    if host is not None and not (host and is_host(host)):
        raise InvalidRequest("the forwarded host is not a host with an optional port")
    return host


def _rewritten(fields: Fields, host: bytes | None, *, drop: frozenset[bytes]) -> Fields:
    kept = [field for field in fields if field[0] not in drop]
    if host is not None:
        kept = [field for field in kept if field[0] != b"host"]
        kept.append((b"host", host))
    return kept


def _plain(address: Address) -> Address:
    """Return an IPv4 address that is written as an IPv6 address as what it is."""
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped or address
