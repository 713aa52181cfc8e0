"""Where a gateway is, as a URL.

tcp://HOST:PORT     tcps://HOST:PORT     unix:PATH
ws://HOST:PORT/PATH     wss://HOST:PORT/PATH
http://HOST:PORT/PATH     https://HOST:PORT/PATH
poll+http://HOST:PORT/PATH?every=SECONDS     poll+https://HOST:PORT/PATH?every=SECONDS
seqpacket:PATH     l2cap://ADDRESS:PSM
beep://HOST:PORT     beeps://HOST:PORT
"""

from __future__ import annotations

import re
from urllib.parse import SplitResult, parse_qs, urlsplit

import msgspec

from lasthop.clock import SECOND, Micros
from lasthop.errors import InvalidRequest

DEFAULT_PORT = 7300
DEFAULT_BEEP_PORT = 7301
DEFAULT_PATH = "/hop"

DEFAULT_INTERVAL: Micros = 30 * SECOND
"""Between two polls of a device that names no interval: a user waits no longer for an answer, and a
radio that falls asleep after ten seconds still does."""

_PORTS = {
    "tcp": DEFAULT_PORT,
    "tcps": DEFAULT_PORT,
    "ws": 80,
    "wss": 443,
    "http": 80,
    "https": 443,
    "poll+http": 80,
    "poll+https": 443,
    "beep": DEFAULT_BEEP_PORT,
    "beeps": DEFAULT_BEEP_PORT,
}
_SECURE = frozenset({"tcps", "wss", "https", "poll+https", "beeps"})
_LOCAL = ("unix", "seqpacket")
SCHEMES = (*_PORTS, *_LOCAL, "l2cap")

_BLUETOOTH = re.compile("[0-9A-Fa-f]{2}(:[0-9A-Fa-f]{2}){5}")


class Address(msgspec.Struct, frozen=True):
    """Where a gateway is."""

    scheme: str
    host: str = ""
    port: int = 0
    path: str = ""
    url: str = ""
    every: Micros | None = None
    """How often it is polled; `None` where it is not."""

    @property
    def secure(self) -> bool:
        """Whether what is said there is encrypted, and the gateway's certificate checked."""
        return self.scheme in _SECURE

    @property
    def lasting(self) -> bool:
        """Whether one connection lasts as long as the link: only then the link shows how much
        silence a network allows."""
        return self.scheme not in ("http", "https", "poll+http", "poll+https")


def parse(url: str) -> Address:
    """Read an address, or raise InvalidRequest."""
    scheme, colon, rest = url.partition(":")
    place = rest.removeprefix("//")
    if not colon or scheme not in SCHEMES or (not place and scheme in _LOCAL):
        raise InvalidRequest(f"an address begins with one of {', '.join(SCHEMES)}", address=url)
    if scheme in _LOCAL:
        return Address(scheme, path=place, url=url)
    if scheme == "l2cap":
        return _bluetooth(url, place)
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise InvalidRequest(f"not an address: {error}", address=url) from None
    if not host:
        raise InvalidRequest("an address names a host", address=url)
    path = parts.path
    if scheme in ("tcp", "tcps", "beep", "beeps") and path not in ("", "/"):
        raise InvalidRequest(f"an address of {scheme} has no path", address=url)
    if "http" in scheme:
        path = path if path != "/" else ""
        path = (path or DEFAULT_PATH).rstrip("/")
        if not (path.isascii() and path.isprintable()) or " " in path:
            raise InvalidRequest("a path has only printable characters of ASCII", address=url)
    every = _interval(parts, url) if scheme.startswith("poll+") else None
    return Address(scheme, host, port or _PORTS[scheme], path, url, every)


def _interval(parts: SplitResult, url: str) -> Micros:
    said = parse_qs(parts.query).get("every")
    if said is None:
        return DEFAULT_INTERVAL
    try:
        seconds = float(said[-1])
    except ValueError:
        seconds = 0.0
    if not 0.01 <= seconds <= 86_400:
        raise InvalidRequest("every is a number of seconds, at most a day", address=url)
    return round(seconds * SECOND)


def _bluetooth(url: str, place: str) -> Address:
    host, _, psm = place.rpartition(":")
    if not _BLUETOOTH.fullmatch(host) or not re.fullmatch("[0-9]{1,5}", psm):
        raise InvalidRequest(
            "an address of l2cap is like l2cap://00:11:22:33:44:55:4099", address=url
        )
    return Address("l2cap", host.upper(), int(psm), url=url)
