"""The application on a device that a push goes to: X-Wap-Application-Id.

A publisher writes a URI, a number, or both; over the air a registered URI is always a number. The
rules are those of the Push Proxy Gateway service specification, 5.1.2.1.2.
"""

from __future__ import annotations

import re
from functools import lru_cache

from lasthop.errors import Malformed
from lasthop.wire.wsp.registry import APPLICATIONS, CODES

WML_UA = 2
"""The number of the WML user agent, which is the default application."""

PUSH_SIA = 1
"""The number of the session initiation application."""

Application = int | str
"""An application: its number, or a URI that has none."""

_NUMBER = re.compile(r"[0-9]+|0[xX][0-9A-Fa-f]+")
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[\x21-\x7e]+")
_BARE = re.compile(r"[A-Za-z0-9*][A-Za-z0-9._*-]*")
_PREFIX = "x-wap-application:"


@lru_cache(maxsize=1024)
def parse_application(text: str) -> Application:
    """Return the application, as it goes over the air, for the value of a header; raise Malformed.

    >>> parse_application("x-wap-application:wml.ua;app-encoding=99")
    2
    """
    text = text.strip()
    if _NUMBER.fullmatch(text) is not None:
        return _number(text)
    uri, number = _split(text)
    if number is not None and _NUMBER.fullmatch(number) is None:
        raise Malformed("not a number of an application", value=text)
    name = _absolute(uri)
    # PPG service, 5.1.2.1.2: a registered application is always sent as its number.
    if name.lower() in CODES:
        return CODES[name.lower()]  # Registered: its number replaces any other.
    if number is not None:
        return _number(number)  # Not registered: the number replaces the URI.
    if _URI.fullmatch(name) is None:
        raise Malformed("not an application identifier", value=text)
    return name


def _split(text: str) -> tuple[str, str | None]:
    """Split a value into the URI, which may hold semicolons itself, and the number behind
    `app-encoding`."""
    uri, _, option = text.rpartition(";")
    name, _, number = option.partition("=")
    if uri and name.strip().lower() == "app-encoding":
        return uri.rstrip(), number.strip()
    return text, None


def _number(text: str) -> int:
    number = int(text[:12], 16 if text[:2] in ("0x", "0X") else 10)
    if number > 0xFFFFFFFF or len(text) > 12:
        raise Malformed("not a number of an application", value=text[:40])
    return number


def _absolute(uri: str) -> str:
    """Return the full URI: publishers also write `urn:` in front, or only `wml.ua`."""
    if uri[:4].lower() == "urn:" and uri[4:].lower() in CODES:
        return uri[4:]
    if _BARE.fullmatch(uri) is not None:
        return _PREFIX + uri
    return uri


def over_the_air(
    header: str | None, *, client_default: Application | None = None
) -> Application | None:
    """Return the application to name in a push; None to name none.

    `header` is what the publisher wrote, if anything, and `client_default` the application that the
    client is known to assume. An application that the client assumes anyway is not named.
    """
    application = WML_UA if header is None else parse_application(header)
    return None if application == client_default else application


def name_of(application: Application) -> str:
    """Return the text of an application: its registered URI, or else the number."""
    if isinstance(application, str):
        return application
    urn = APPLICATIONS.get(application)
    if urn is None or CODES[urn.lower()] != application:
        return str(application)
    return urn


def resource_identifier(application: Application) -> str:
    """Return the value of SIP's g.oma.pusheventapp feature tag: for a registered application only
    what follows the namespace, such as `mms.ua`."""
    name = APPLICATIONS.get(application, str(application)) if isinstance(application, int) else None
    if name is None:
        return str(application)
    return name.partition(":")[2] or name
