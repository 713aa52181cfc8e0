"""Sessions of people who have logged in: a cookie that cannot be guessed stands for a credential,
for half a day.

Sessions are kept in memory: after a restart people log in again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lasthop.clock import HOUR, Micros

COOKIE = "lasthop_session"

LIFETIME: Micros = 12 * HOUR
"""How long a session lasts: a working day."""

MOST = 1000
"""The largest number of sessions at a time; when there are more, the oldest session ends.
Administrators are few, and a script that logs in again and again must not fill the memory."""


@dataclass(frozen=True, slots=True)
class _Session:
    authorization: bytes
    ends_at: Micros


class Sessions:
    """The sessions of people who have logged in, by the cookie's value."""

    def __init__(self, make_token: Callable[[], str]) -> None:
        self._make_token = make_token
        self._open: dict[str, _Session] = {}

    def begin(self, authorization: bytes, now: Micros) -> str:
        """Start a session for a credential; return the cookie's value."""
        while len(self._open) >= MOST:
            del self._open[next(iter(self._open))]
        token = self._make_token()
        self._open[token] = _Session(authorization, now + LIFETIME)
        return token

    def find(self, token: str, now: Micros) -> bytes | None:
        """Return the Authorization header that a cookie stands for, or None."""
        session = self._open.get(token)
        if session is None:
            return None
        if now >= session.ends_at:
            del self._open[token]
            return None
        return session.authorization

    def end(self, token: str) -> None:
        """End the session that a cookie stands for."""
        self._open.pop(token, None)


def cookie_in(headers: dict[bytes, bytes]) -> str:
    """Return the value of the session cookie, or an empty text."""
    return cookie_named(COOKIE, headers)


def cookie_named(wanted: str, headers: dict[bytes, bytes]) -> str:
    """Return the value of a cookie, or an empty text."""
    for part in headers.get(b"cookie", b"").decode("latin-1").split(";"):
        name, _, value = part.strip().partition("=")
        if name == wanted:
            return value
    return ""


def by_tls(scheme: str, headers: dict[bytes, bytes]) -> bool:
    """Whether a browser has connected by TLS: to the gateway, or to the first proxy before it.

    The header of any proxy is believed, although anybody can forge it: it only decides whether the
    cookie is marked `Secure`, and the worst effect of that is that the browser does not send the
    cookie.
    """
    told = headers.get(b"x-forwarded-proto", b"").partition(b",")[0]
    # RFC 7239, section 4: the first element is that of the first proxy.
    first = headers.get(b"forwarded", b"").partition(b",")[0]
    pairs = (part.partition(b"=") for part in first.lower().split(b";"))
    standard = {name.strip(): value.strip(b' "') for name, _, value in pairs}
    return b"https" in {scheme.encode(), told.strip().lower(), standard.get(b"proto")}


def set_cookie(token: str, *, secure: bool) -> str:
    """Return the header that gives a session to the browser, so that no script sees it and no other
    site can use it."""
    lasts = LIFETIME // 1_000_000 if token else 0
    only = "; Secure" if secure else ""
    return f"{COOKIE}={token}; Path=/dashboard; Max-Age={lasts}; HttpOnly; SameSite=Strict{only}"
