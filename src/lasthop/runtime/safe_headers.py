"""Headers that tell browsers to be careful with every answer of the HTTP server, whichever door it
is from. A door that needs another value, as pages do for their scripts, sends its own."""

from __future__ import annotations

import ipaddress
from functools import lru_cache

from lasthop.runtime.front import App, Message, Receive, Scope, Send
from lasthop.runtime.units import Duration

SAFE = (
    (b"x-content-type-options", b"nosniff"),
    # With "no-referrer" browsers would also hide from which site a form was sent.
    (b"referrer-policy", b"same-origin"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    # Answers have tokens, bodies and states that change.
    (b"cache-control", b"no-store"),
)
"""What an answer says unless its door says otherwise: nothing in it is run, framed or stored, and
its address is told to nobody."""

HSTS = b"strict-transport-security"


class SafeHeaders:
    """An ASGI application that adds the headers that another application leaves out."""

    def __init__(self, app: App, *, hsts: bytes | None = None) -> None:
        """`hsts` is the value of Strict-Transport-Security, or None to send none."""
        self._app = app
        self._hsts = hsts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def careful(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = list(message.get("headers", ()))
                said = {name.lower() for name, _ in headers}
                headers += [field for field in SAFE if field[0] not in said]
                if self._hsts is not None and scope["scheme"] == "https":
                    host = next((v for name, v in scope["headers"] if name == b"host"), b"")
                    if is_name(host):
                        headers.append((HSTS, self._hsts))
                message["headers"] = headers
            await send(message)

        await self._app(scope, receive, careful)


def hsts_value(lasts: Duration) -> bytes | None:
    """Return the value of Strict-Transport-Security for this long; None for no time at all.

    It is for the host alone, not for names below it: those may be somebody else's.
    """
    return b"max-age=%d" % lasts.seconds if lasts else None


@lru_cache(256)
def is_name(host: bytes) -> bool:
    """Whether a Host header names a machine that browsers can be told to use TLS with.

    They ignore it for addresses (RFC 6797, section 8.1.1). `localhost` is shared by all programs of
    a machine, most of which have no TLS.
    """
    name = host.decode("latin-1").partition(":")[0].lower().rstrip(".")
    if not name or name.startswith("[") or name == "localhost" or name.endswith(".localhost"):
        return False
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return True
    return False
