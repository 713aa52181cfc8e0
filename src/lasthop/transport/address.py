"""The address of a gateway as a URL: `tcp://HOST:PORT`, `wss://HOST/PATH`, `unix:PATH`. The schemes
are those of `transport.schemes`."""

from __future__ import annotations

import re
from urllib.parse import SplitResult, parse_qs, urlsplit

import msgspec

from lasthop.clock import SECOND, Micros
from lasthop.errors import InvalidRequest
from lasthop.transport.schemes import SCHEMES, Form

DEFAULT_PATH = "/hop"

DEFAULT_INTERVAL: Micros = 30 * SECOND
"""The interval of a device that polls and names no interval: a user waits no longer for an answer,
and a radio that falls asleep after ten seconds still does."""

_BLUETOOTH = re.compile("[0-9A-Fa-f]{2}(:[0-9A-Fa-f]{2}){5}")


class GatewayAddress(msgspec.Struct, frozen=True):
    """The address at which a device reaches its gateway."""

    scheme: str
    host: str = ""
    port: int = 0
    path: str = ""
    url: str = ""
    every: Micros | None = None
    """The interval at which the device polls, in microseconds; None for schemes without polling."""

    @property
    def secure(self) -> bool:
        """Whether the connection is encrypted and the gateway's certificate checked."""
        return SCHEMES[self.scheme].secure

    @property
    def lasting(self) -> bool:
        """Whether one connection lasts as long as the link."""
        return SCHEMES[self.scheme].lasting


def parse(url: str) -> GatewayAddress:
    """Parse the URL of a gateway; raise InvalidRequest."""
    scheme, colon, rest = url.partition(":")
    place = rest.removeprefix("//")
    kind = SCHEMES.get(scheme) if colon else None
    if kind is None or (not place and kind.form is Form.FILE):
        raise InvalidRequest(f"an address must begin with one of {', '.join(SCHEMES)}", address=url)
    if kind.form is Form.FILE:
        return GatewayAddress(scheme, path=place, url=url)
    if kind.form is Form.BLUETOOTH:
        return _bluetooth(url, scheme, place)
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise InvalidRequest(f"not an address: {error}", address=url) from None
    if not host:
        raise InvalidRequest("an address must name a host", address=url)
    path = parts.path
    if kind.form is Form.HOST and path not in ("", "/"):
        raise InvalidRequest(f"an address of {scheme} must not have a path", address=url)
    if kind.form is Form.ROOT:
        path = path if path != "/" else ""
        path = (path or DEFAULT_PATH).rstrip("/")
        if not (path.isascii() and path.isprintable()) or " " in path:
            raise InvalidRequest("a path may only have printable ASCII characters", address=url)
    every = _interval(parts, url) if kind.polled else None
    return GatewayAddress(scheme, host, port or kind.port, path, url, every)


def _interval(parts: SplitResult, url: str) -> Micros:
    said = parse_qs(parts.query).get("every")
    if said is None:
        return DEFAULT_INTERVAL
    try:
        seconds = float(said[-1])
    except ValueError:
        seconds = 0.0
    if not 0.01 <= seconds <= 86_400:
        raise InvalidRequest("every must be a number of seconds, at most a day", address=url)
    return round(seconds * SECOND)


def _bluetooth(url: str, scheme: str, place: str) -> GatewayAddress:
    host, _, psm = place.rpartition(":")
    if not _BLUETOOTH.fullmatch(host) or not re.fullmatch("[0-9]{1,5}", psm):
        raise InvalidRequest(
            f"an address of {scheme} must be like {scheme}://00:11:22:33:44:55:4099", address=url
        )
    return GatewayAddress(scheme, host.upper(), int(psm), url=url)
