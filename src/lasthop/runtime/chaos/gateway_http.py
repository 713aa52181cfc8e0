"""HTTP connections to the gateway for publishers and for the preparations of a run."""

from __future__ import annotations

import http.client
import ssl
from urllib.parse import urlsplit


def open_connection(url: str, ca: str | None, timeout: float) -> http.client.HTTPConnection:
    """Return a connection that is made at its first request."""
    parts = urlsplit(url)
    assert parts.hostname is not None
    if parts.scheme == "https":
        context = ssl.create_default_context(cafile=ca)
        return http.client.HTTPSConnection(
            parts.hostname, parts.port, timeout=timeout, context=context
        )
    return http.client.HTTPConnection(parts.hostname, parts.port, timeout=timeout)
