"""What is known of a client: what it accepts, and what it assumes."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import msgspec

from lasthop.errors import InvalidRequest, Malformed
from lasthop.wire.wsp.applications import Application, parse_application
from lasthop.wire.wsp.headers import DEFAULT_VERSION
from lasthop.wire.wsp.primitives import Version

ACCEPT = "ota.accept"
APPLICATION = "ota.application"
ENCODING_VERSION = "ota.encoding-version"
CODINGS = "ota.accept-encoding"
DEFLATE = "ota.deflate"
MAX_SIZE = "ota.max-size"
"""Names of the capabilities of a registered device that concern OTA. Others belong to
applications."""


class Terminal(msgspec.Struct, frozen=True):
    """A client, as far as it has been described. The default describes nothing."""

    accept: frozenset[str] = frozenset()
    """The accepted media types in lower case; empty if they are not known."""
    default_application: Application | None = None
    """The application that the client assumes where a push names none."""
    encoding_version: Version = DEFAULT_VERSION
    """The version of WSP's header encoding that the client understands."""
    codings: frozenset[str] = frozenset()
    """Content codings that the client can undo."""
    raw_deflate: bool = False
    """Whether the client means RFC 1951 by `deflate`; HTTP means RFC 1950, which wraps it."""
    max_size: int | None = None
    """The largest number of octets in a push that the client accepts; None if unknown."""

    def takes(self, media: str) -> bool:
        """Whether the client is positively known to accept this media type."""
        accept = self.accept
        return media in accept or "*/*" in accept or media.partition("/")[0] + "/*" in accept

    def known_as(self, registered: Terminal) -> Terminal:
        """Return what the client said itself, completed by what is registered of it."""
        if registered is UNKNOWN:
            return self
        return Terminal(
            accept=self.accept or registered.accept,
            default_application=registered.default_application,
            encoding_version=max(self.encoding_version, registered.encoding_version),
            codings=self.codings or registered.codings,
            raw_deflate=registered.raw_deflate,
            max_size=self.max_size or registered.max_size,
        )


UNKNOWN = Terminal()


def described(capabilities: Mapping[str, str]) -> Terminal:
    """Return the client described by registered capabilities; raise InvalidRequest for a bad
    one."""
    if not capabilities:
        return UNKNOWN
    found = tuple((k, v) for k, v in capabilities.items() if k.startswith("ota."))
    return _described(found) if found else UNKNOWN


@lru_cache(maxsize=4096)
def _described(capabilities: tuple[tuple[str, str], ...]) -> Terminal:
    known = dict(capabilities)
    try:
        return Terminal(
            accept=media_types(known.pop(ACCEPT, "")),
            default_application=_application(known.pop(APPLICATION, "")),
            encoding_version=version_of(known.pop(ENCODING_VERSION, "")),
            codings=frozenset(_words(known.pop(CODINGS, ""))),
            raw_deflate=_raw(known.pop(DEFLATE, "zlib")),
            max_size=int(known.pop(MAX_SIZE, "0")) or None,
        )
    except (ValueError, Malformed) as error:
        raise InvalidRequest(f"a capability cannot be read: {error}") from None


def media_types(text: str) -> frozenset[str]:
    """Return the types of an Accept list, without their parameters and without those that have
    q=0."""
    found = set()
    for element in text.split(","):
        media, *parameters = (part.strip().lower() for part in element.split(";"))
        if "/" in media and not any(_refuses(parameter) for parameter in parameters):
            found.add(media)
    return frozenset(found)


def _refuses(parameter: str) -> bool:
    name, _, value = parameter.partition("=")
    return name.strip() == "q" and value.strip().rstrip("0") in ("0.", "")


def version_of(text: str) -> Version:
    """Parse a version such as `1.4` as a pair; an empty text is the default version."""
    if not text:
        return DEFAULT_VERSION
    major, _, minor = text.partition(".")
    return int(major), int(minor or "0")


def _application(text: str) -> Application | None:
    return parse_application(text) if text else None


def _words(text: str) -> list[str]:
    return [w for part in text.split(",") if (w := part.partition(";")[0].strip().lower())]


def _raw(text: str) -> bool:
    if text not in ("raw", "zlib"):
        raise ValueError(f"{DEFLATE} must be raw or zlib")
    return text == "raw"
