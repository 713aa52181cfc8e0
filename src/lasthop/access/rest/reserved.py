"""The first segments of paths that are the gateway's own, and no topics of the one-line form."""

from __future__ import annotations

from lasthop.access.ntfy.ntfy_errors import NtfyError

RESERVED = frozenset(
    {
        "v1",
        "v2",
        "v3",
        "api",
        "pap",
        "hop",
        "ws",
        "wsp",
        "ota",
        "push",
        "ppg",
        "wappush",
        "sms",
        "health",
        "healthz",
        "live",
        "ready",
        "readyz",
        "metrics",
        "docs",
        "openapi.json",
        "admin",
        "dashboard",
        "static",
        "assets",
        "events",
        "explain",
        "status",
        "login",
        "logout",
        "favicon.ico",
        "file",
        "robots.txt",
        ".well-known",
    }
)
"""First path segments that the gateway uses or may use later, so that they cannot be topics in the
one-line form. `POST /v1/messages` publishes to topics of any name."""

PUSH_PATHS = frozenset({"pap", "ppg", "wappush"})
"""Usual paths of PAP: an initiator that is configured for another gateway, or for an earlier
`pap.path`, must learn that none of its pushes were accepted."""


def refuse_reserved(segment: str, pap: str) -> NtfyError:
    """Return the error for publishing to a reserved path; `pap` is the path of the PAP door, if
    there is one."""
    words = (
        f"{segment!r} is a path of the gateway, not a topic in the one-line form;"
        " POST /v1/messages publishes to any topic"
    )
    if segment in PUSH_PATHS:
        words += f"; {where_pap_is_spoken(pap)}"
    return NtfyError(40010, words, field="topic")


def where_pap_is_spoken(pap: str) -> str:
    """Return where initiators of PAP have to go, in words."""
    return f"PAP requests go to POST {pap}" if pap else "this gateway does not accept PAP"
