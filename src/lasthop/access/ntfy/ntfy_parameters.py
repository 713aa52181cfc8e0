"""Parameters in the way of ntfy: each has several names, as headers and in the query."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from email.errors import HeaderParseError
from email.header import decode_header
from urllib.parse import parse_qsl

from lasthop.errors import InvalidRequest

TRUE = frozenset({"1", "yes", "true"})

MAX_QUERY = 16 << 10
"""The longest query, in bytes, before it is decoded: a message is 4 KiB, percent-encoded 12."""

NAMES: Mapping[str, tuple[str, ...]] = {
    "sequence_id": ("x-sequence-id", "sequence-id", "sid"),
    "cache": ("x-cache", "cache"),
    "firebase": ("x-firebase", "firebase"),
    "title": ("x-title", "title", "t"),
    "click": ("x-click", "click"),
    "filename": ("x-filename", "filename", "file", "f"),
    "attach": ("x-attach", "attach", "a"),
    "icon": ("x-icon", "icon"),
    "email": ("x-email", "x-e-mail", "email", "e-mail", "mail", "e"),
    "call": ("x-call", "call"),
    "template": ("x-template", "template", "tpl"),
    "message": ("x-message", "message", "m"),
    "priority": ("x-priority", "priority", "prio", "p"),
    "tags": ("x-tags", "tags", "tag", "ta"),
    "delay": ("x-delay", "delay", "x-at", "at", "x-in", "in"),
    "actions": ("x-actions", "actions", "action"),
    "markdown": ("x-markdown", "markdown", "md"),
    "unifiedpush": ("x-unifiedpush", "unifiedpush", "up"),
    "poll_id": ("x-poll-id", "poll-id"),
    "percentage": ("x-percentage", "percentage"),
    "end": ("x-end", "end"),
    "poll": ("x-poll", "poll", "po"),
    "since": ("x-since", "since", "si"),
    "scheduled": ("x-scheduled", "scheduled", "sched"),
    "id": ("x-id", "id"),
    "auth": ("authorization", "auth"),
    # The gateway's own.
    "rank": ("x-rank", "rank"),
    "ttl": ("x-ttl", "ttl"),
    "expires": ("x-expires", "expires"),
    "delay_tolerance": ("x-delay-tolerance", "delay-tolerance"),
    "replace_key": ("x-replace-key", "replace-key"),
    "reliability": ("x-reliability", "reliability"),
    "handling": ("x-handling", "handling"),
    "queue": ("x-queue", "queue"),
    "immediate": ("x-immediate", "immediate"),
    "content_type": ("x-content-type",),
    "last": ("x-last", "last"),
    "app": ("x-app",),
}
"""The names of each parameter, in the order in which they are looked for."""

KNOWN = frozenset(name for names in NAMES.values() for name in names)

_OTHERS = re.compile(
    r"x-(forwarded|real-ip|client-ip|cluster|envoy|request|correlation|amzn|amz|b3|azure|cloud"
    r"|original|requested-with|appengine|vercel|trace|datadog|cache-status|csrf|xsrf|ntfy"
    r"|scheme|proxy|http|lasthop).*"
)
"""Headers of proxies, tracers and browsers: they mean nothing to any door."""


class NtfyParameters:
    """The parameters of one request, in its headers and its query."""

    def __init__(self, headers: Mapping[bytes, bytes], query: bytes) -> None:
        if len(query) > MAX_QUERY:
            raise InvalidRequest("the query is too long", field="query", limit=MAX_QUERY)
        self.headers = headers
        self.query: dict[str, str] = {}
        for name, value in parse_qsl(query.decode("latin-1"), keep_blank_values=True):
            self.query.setdefault(name, value)

    def all(self, parameter: str) -> Iterator[str]:
        """Yield the values that are given for a parameter, in the order in which they count."""
        names = NAMES[parameter]
        for name in names:
            value = self.headers.get(name.encode())
            if value is not None and (text := header_text(value)):
                yield text
        for name in names:
            if text := self.query.get(name, "").strip():
                yield text

    def get(self, parameter: str) -> str:
        """Return the value of a parameter; empty if it has none."""
        return next(self.all(parameter), "")

    def true(self, parameter: str, *, default: bool = False) -> bool:
        """Return the value of a parameter that is true or false."""
        value = self.get(parameter)
        return default if not value else value.lower() in TRUE

    def unknown(self) -> list[str]:
        """Return the headers and parameters that look meant for a door, and that none knows."""
        found = [
            name
            for name in (header.decode("latin-1") for header in self.headers)
            if name.startswith("x-") and name not in KNOWN and not _OTHERS.fullmatch(name)
        ]
        return sorted({*found, *(name for name in self.query if name not in KNOWN)})


def header_text(value: bytes) -> str:
    """Return the text of a header: UTF-8, or encoded by RFC 2047."""
    try:
        text = value.decode()
    except UnicodeDecodeError:
        text = value.decode("latin-1")
    text = text.strip()
    if "=?" not in text:
        return text
    try:
        parts = decode_header(text)
        return "".join(
            part if isinstance(part, str) else part.decode(charset or "ascii")
            for part, charset in parts
        ).strip()
    except (HeaderParseError, LookupError, UnicodeDecodeError, ValueError):
        return text
