"""The table of channel kinds by URL scheme: how such a channel is addressed, dialled and listened
for, and what it guarantees.

Dialling and listening are named as `module:name` and loaded when first used: the device's side
knows nothing of the gateway's, and a program pays only for what it uses. A new kind is one more row
of `SCHEMES`; addresses, help and messages follow from it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from enum import Enum, auto
from functools import cache
from pkgutil import resolve_name
from typing import Any

import msgspec

DEFAULT_PORT = 7300
DEFAULT_BEEP_PORT = 7301

_STREAM = "lasthop.transport.dial:connect_stream", "lasthop.delivery.tcp:TcpListener"
_WEBSOCKET = (
    "lasthop.transport.dial:connect_websocket",
    "lasthop.delivery.websocket:WebSocketListener",
)
_REQUESTS = "lasthop.transport.dial:connect_http", "lasthop.delivery.http:HttpListener"
_BEEP = "lasthop.transport.dial:connect_beep", "lasthop.delivery.beep:BeepListener"
_PACKETS = (
    "lasthop.transport.dial:connect_seqpacket",
    "lasthop.delivery.seqpacket:SeqpacketListener",
)


class Form(Enum):
    """What follows the scheme of an address."""

    HOST = auto()
    """The form `//HOST:PORT`, with nothing behind it."""
    URL = auto()
    """The form `//HOST:PORT/PATH`, used exactly as given."""
    ROOT = auto()
    """The form `//HOST:PORT/PATH`, where requests go below the path; `/hop` if there is none."""
    FILE = auto()
    """The path of a socket on this machine."""
    BLUETOOTH = auto()
    """The form `//ADDRESS:PSM`, for a Bluetooth device."""


class Scheme(msgspec.Struct, frozen=True):
    """One kind of channel, chosen by the scheme of a URL."""

    form: Form
    dialled: str
    """The function `connect(address, tls, max_frame)`, which returns a `HeldConnection` or raises
    OSError, as `module:name`."""
    listened: str
    """The class of the gateway's `Listener`, as `module:name`."""
    port: int = 0
    """The port of an address that names none."""
    secure: bool = False
    """Whether the connection is encrypted and the gateway's certificate checked."""
    polled: bool = False
    """Whether the device makes a request every so many seconds instead of keeping a connection."""
    reliable: bool = True
    """Whether everything that was sent before the end of a channel arrives. Over a channel that is
    not reliable, what is not acknowledged in time is sent again."""

    @property
    def lasting(self) -> bool:
        """Whether one connection lasts as long as the link: only then does the link show how much
        silence a network allows."""
        return self.form is not Form.ROOT

    def dial(self) -> Callable[..., Awaitable[Any]]:
        """Return the function that connects to such an address from the device's side."""
        dial: Callable[..., Awaitable[Any]] = _resolved(self.dialled)
        return dial

    def listener(self) -> Any:
        """Return the class that lets devices in over such channels."""
        return _resolved(self.listened)


_resolved = cache(resolve_name)

SCHEMES: dict[str, Scheme] = {
    "tcp": Scheme(Form.HOST, *_STREAM, DEFAULT_PORT),
    "tcps": Scheme(Form.HOST, *_STREAM, DEFAULT_PORT, secure=True),
    "ws": Scheme(Form.URL, *_WEBSOCKET, 80),
    "wss": Scheme(Form.URL, *_WEBSOCKET, 443, secure=True),
    "http": Scheme(Form.ROOT, *_REQUESTS, 80),
    "https": Scheme(Form.ROOT, *_REQUESTS, 443, secure=True),
    "poll+http": Scheme(Form.ROOT, *_REQUESTS, 80, polled=True),
    "poll+https": Scheme(Form.ROOT, *_REQUESTS, 443, secure=True, polled=True),
    "beep": Scheme(Form.HOST, *_BEEP, DEFAULT_BEEP_PORT),
    "beeps": Scheme(Form.HOST, *_BEEP, DEFAULT_BEEP_PORT, secure=True),
    "unix": Scheme(Form.FILE, *_STREAM),
    "seqpacket": Scheme(Form.FILE, *_PACKETS),
    "l2cap": Scheme(Form.BLUETOOTH, *_PACKETS),
}


def secure_schemes() -> str:
    """Return the schemes that encrypt, as a phrase for messages."""
    *others, last = (name for name, scheme in SCHEMES.items() if scheme.secure)
    return f"{', '.join(others)} or {last}"


def all_schemes() -> str:
    """Return all schemes, as a phrase for help and messages."""
    both = [name for name in SCHEMES if f"{name}s" in SCHEMES]
    alone = [n for n, scheme in SCHEMES.items() if n not in both and not scheme.secure]
    return f"{', '.join(both)}, each with an s for TLS; {', '.join(alone)}"
