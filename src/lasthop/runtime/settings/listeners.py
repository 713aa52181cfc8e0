"""The settings of the listeners: addresses, limits and certificates."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from lasthop.clock import DAY, SECOND
from lasthop.delivery.http import LONGEST_HOLD
from lasthop.delivery.listener import MAX_CONNECTIONS
from lasthop.runtime.defaults import DEFAULT_HTTP, DEFAULT_TCP
from lasthop.runtime.units import Duration, ListenAddress, ProxyNetwork


class Http(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """The REST door, WebSocket devices, /health and /metrics."""

    listen: Annotated[ListenAddress, Meta(description="Port 0 lets the system choose.")] = (
        DEFAULT_HTTP
    )
    websocket: Annotated[
        str,
        Meta(
            description="Path at which devices connect by WebSocket; empty turns it off.",
            pattern="^(/.*)?$",
        ),
    ] = "/hop"
    requests: Annotated[
        str,
        Meta(
            description="Path at which devices connect that can only use HTTP requests,"
            " held or polling; empty turns it off.",
            pattern="^(/.*[^/])?$",
        ),
    ] = "/hop"
    hold: Annotated[
        Duration,
        Meta(
            description="How long such a request is held until there is an answer: less than the"
            " timeouts of the proxies on the way."
        ),
    ] = Duration(LONGEST_HOLD)
    drain: Annotated[
        Duration, Meta(description="How long a shutdown waits for requests to be answered.")
    ] = Duration(5 * SECOND)
    connections: Annotated[
        int,
        Meta(
            description="Open connections, never more than the limit of open files has room"
            " for. Beyond them only /health, /ready, /metrics and administrators are answered.",
            ge=1,
        ),
    ] = MAX_CONNECTIONS
    connections_per_address: Annotated[
        int,
        Meta(
            description="Open connections per IPv4 address or /64 of IPv6, at most half of all; 0"
            " turns it off. Those of this machine and of trusted proxies are not counted.",
            ge=0,
        ),
    ] = 10_000
    listeners: Annotated[
        int,
        Meta(description="Callers that receive topics over HTTP at the same time.", ge=0),
    ] = 10_000
    listeners_per_address: Annotated[int, Meta(description="Those of one address.", ge=0)] = 1000
    keepalive: Annotated[
        Duration,
        Meta(
            description="Time between two signs of life to them: clients of ntfy give a silent"
            " connection up after 77 seconds."
        ),
    ] = Duration(45 * SECOND)
    hsts: Annotated[
        Duration,
        Meta(
            description="How long browsers that have used TLS shall not connect to this host"
            " without it, on any port (Strict-Transport-Security); 0s says nothing about it."
        ),
    ] = Duration(DAY)
    trusted_proxies: Annotated[
        tuple[ProxyNetwork, ...],
        Meta(
            description="Addresses and networks of the proxies that are believed about the address,"
            " the scheme and the host of the callers whose requests they forward.",
            examples=["192.0.2.1", "10.0.0.0/8"],
        ),
    ] = ()


class Tcp(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """The listener for devices that connect by TCP."""

    listen: Annotated[ListenAddress, Meta(description="Port 0 lets the system choose.")] = (
        DEFAULT_TCP
    )


class Beep(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """The listener for devices that connect by BEEP."""

    listen: Annotated[
        str,
        Meta(description='Address, such as "127.0.0.1:7301"; empty turns it off.'),
    ] = ""


class Seqpacket(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """The listeners for devices on the same machine or nearby, over sockets that keep message
    boundaries."""

    path: Annotated[str, Meta(description="Path of a Unix socket; empty turns it off.")] = ""
    psm: Annotated[
        int,
        Meta(
            description="Port of Bluetooth's L2CAP, where the machine has it: odd, from 4097 on; 0"
            " turns it off.",
            ge=0,
            le=65535,
        ),
    ] = 0


class Tls(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Certificate and key for all listeners; without them they use plain HTTP and TCP."""

    cert: Annotated[str, Meta(description="PEM file with the certificate and its chain.")] = ""
    key: Annotated[str, Meta(description="PEM file with the private key.")] = ""
    required: Annotated[
        bool,
        Meta(description="Do not start without a certificate: nothing is ever sent unencrypted."),
    ] = False
    client_ca: Annotated[
        str,
        Meta(
            description="PEM file with the authorities of client certificates, whose subjects"
            " identify callers over HTTP; empty asks for none."
        ),
    ] = ""
