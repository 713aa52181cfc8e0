"""The one table of channel kinds: by the scheme of a URL, how such a channel is addressed, dialled,
listened for, and what it promises.

Dialling and listening are named as `module:name`, and loaded when somebody wants them: the device's
side knows nothing of the gateway's, and a program pays only for what it uses. A new kind takes its
place in `SCHEMES`; addresses, help and messages follow from it.
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

_STREAM = "lasthop.transport.dial:dial_stream", "lasthop.delivery.tcp:TcpListener"
_WEBSOCKET = "lasthop.transport.dial:dial_websocket", "lasthop.delivery.websocket:WebSocketListener"
_REQUESTS = "lasthop.transport.dial:dial_http", "lasthop.delivery.http:HttpListener"
_BEEP = "lasthop.transport.dial:dial_beep", "lasthop.delivery.beep:BeepListener"
_PACKETS = "lasthop.transport.dial:dial_seqpacket", "lasthop.delivery.seqpacket:SeqpacketListener"


class Form(Enum):
    """What stands behind the scheme of an address."""

    HOST = auto()
    """`//HOST:PORT`, and nothing else."""
    URL = auto()
    """`//HOST:PORT/PATH`, as it is."""
    ROOT = auto()
    """`//HOST:PORT/PATH`, below which requests go; `/hop` if there is none."""
    FILE = auto()
    """The path of a socket on this machine."""
    BLUETOOTH = auto()
    """`//ADDRESS:PSM` of a Bluetooth device."""


class Scheme(msgspec.Struct, frozen=True):
    """One kind of channel."""

    form: Form
    dialled: str
    """`dial(address, hello, ends, tls)`, which returns a link or raises OSError."""
    listened: str
    """The `Listener` at the gateway."""
    port: int = 0
    """If the address names none."""
    secure: bool = False
    """Whether what is said is encrypted, and the gateway's certificate checked."""
    polled: bool = False
    """Whether the device comes and asks every so many seconds."""
    reliable: bool = True
    """Whether everything that was sent before the end of a channel arrives. Over a channel that is
    not reliable, what is not acknowledged in time leaves again."""

    @property
    def lasting(self) -> bool:
        """Whether one connection lasts as long as the link: only then the link shows how much
        silence a network allows."""
        return self.form is not Form.ROOT

    def dial(self) -> Callable[..., Awaitable[Any]]:
        """The function that opens such a channel from the device's side."""
        dial: Callable[..., Awaitable[Any]] = _resolved(self.dialled)
        return dial

    def listener(self) -> Any:
        """The class that lets devices in over such channels."""
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
    """The schemes that encrypt, in words."""
    *others, last = (name for name, scheme in SCHEMES.items() if scheme.secure)
    return f"{', '.join(others)} or {last}"


def all_schemes() -> str:
    """All schemes, in words."""
    both = [name for name in SCHEMES if f"{name}s" in SCHEMES]
    alone = [n for n, scheme in SCHEMES.items() if n not in both and not scheme.secure]
    return f"{', '.join(both)}, each with an s for TLS; {', '.join(alone)}"
