"""Durations, sizes and addresses as people write them: `7d`, `4MiB`, `127.0.0.1:8080`."""

from __future__ import annotations

import ipaddress
import re

from lasthop.clock import DAY, HOUR, MILLISECOND, MINUTE, SECOND
from lasthop.decision.budgets import Limit, parse_limits
from lasthop.errors import InvalidRequest

_DURATIONS = {"d": DAY, "h": HOUR, "m": MINUTE, "s": SECOND, "ms": MILLISECOND}
_SIZES = {"GiB": 1 << 30, "MiB": 1 << 20, "KiB": 1 << 10, "B": 1}
_QUANTITY = re.compile(r"(\d{1,15})\s*([A-Za-z]+)")


class Duration(int):
    """A span of time in microseconds.

    >>> Duration.parse("2d") == 2 * DAY
    True
    >>> str(Duration.parse("90s"))
    '90s'
    """

    @classmethod
    def parse(cls, text: object) -> Duration:
        return cls(_parse(text, _DURATIONS, 'a duration, such as "7d", "12h", "30m" or "90s"'))

    @property
    def seconds(self) -> float:
        return self / SECOND

    def __str__(self) -> str:
        return _format(self, _DURATIONS, smallest="ms")


class Size(int):
    """A number of bytes.

    >>> Size.parse("4MiB")
    4194304
    >>> str(Size(1024))
    '1KiB'
    """

    @classmethod
    def parse(cls, text: object) -> Size:
        return cls(_parse(text, _SIZES, 'a size, such as "256MiB", "64KiB" or "100B"'))

    def __repr__(self) -> str:
        return int.__repr__(self)

    def __str__(self) -> str:
        return _format(self, _SIZES, smallest="B")


class LimitList(str):
    """The limits on what is sent, as text: `5000000 bytes per day over mno; 100 messages per
    week`."""

    __slots__ = ()

    @classmethod
    def parse(cls, text: object) -> LimitList:
        if not isinstance(text, str):
            raise ValueError(f"expected limits as text, got {text!r}")
        try:
            return cls("; ".join(map(str, parse_limits(text))))
        except InvalidRequest as error:
            raise ValueError(str(error)) from None

    @property
    def limits(self) -> tuple[Limit, ...]:
        return parse_limits(self)


class ListenAddress(str):
    """Where to listen, as `HOST:PORT`; an IPv6 address stands in brackets. Port 0 lets the system
    choose.

    >>> ListenAddress.parse("[::1]:8080").host
    '::1'
    """

    __slots__ = ()

    @classmethod
    def parse(cls, text: object) -> ListenAddress:
        host, colon, port = text.rpartition(":") if isinstance(text, str) else ("", "", "")
        bare = host[1:-1] if host.startswith("[") and host.endswith("]") else host
        valid = colon and bare and port.isascii() and port.isdigit() and int(port) < 1 << 16
        if not valid or (":" in bare and bare is host):
            wanted = 'an address, such as "127.0.0.1:8080", "[::1]:8080" or "0.0.0.0:80"'
            raise ValueError(f"expected {wanted}, got {text!r}")
        return cls.of(bare, int(port))

    @classmethod
    def of(cls, host: str, port: int) -> ListenAddress:
        """Return an address made from its host and port."""
        return cls(f"[{host}]:{port}" if ":" in host else f"{host}:{port}")

    @property
    def host(self) -> str:
        return self.rpartition(":")[0].strip("[]")

    @property
    def port(self) -> int:
        return int(self.rpartition(":")[2])

    @property
    def loopback(self) -> bool:
        """Whether only this machine can connect to the address."""
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"


class ProxyNetwork(str):
    """The address of a proxy, or a network of proxies: `192.0.2.1`, `10.0.0.0/8`."""

    __slots__ = ()

    @classmethod
    def parse(cls, text: object) -> ProxyNetwork:
        try:
            network = ipaddress.ip_network(text if isinstance(text, str) else "")
        except ValueError:
            wanted = 'an address or a network, such as "192.0.2.1" or "10.0.0.0/8"'
            raise ValueError(f"expected {wanted}, got {text!r}") from None
        if not network.prefixlen:
            raise ValueError(f"{text} is every address: nobody would be a stranger")
        return cls(text)


def _parse(text: object, units: dict[str, int], wanted: str) -> int:
    found = _QUANTITY.fullmatch(text.strip()) if isinstance(text, str) else None
    if found is None or found[2] not in units:
        raise ValueError(f"expected {wanted}, got {text!r}")
    return int(found[1]) * units[found[2]]


def _format(value: int, units: dict[str, int], *, smallest: str) -> str:
    if value:
        for name, unit in units.items():
            if value % unit == 0:
                return f"{value // unit}{name}"
    return f"{value // units[smallest]}{smallest}"
