"""Refusals by the HTTP server itself, before a door has seen the request. They have the REST door's
form and always end the connection."""

from __future__ import annotations

from collections.abc import Iterable

from uvicorn.protocols.http.httptools_impl import STATUS_LINE

from lasthop.access.rest.answers import encode
from lasthop.access.rest.problems import headers_of, problem_of
from lasthop.errors import LasthopError, Rejected
from lasthop.runtime.safe_headers import SAFE


class TooSlow(Rejected):
    """A request whose parts arrive too slowly."""

    code = "too_slow"
    http_status = 408


def refusal(error: LasthopError, default_headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    """Return a whole response that refuses a request and ends its connection."""
    body = encode(problem_of(error))
    headers = headers_of(error) | {
        "content-type": "application/json",
        "content-length": str(len(body)),
        "connection": "close",
    }
    lines = [b"%b: %b\r\n" % pair for pair in (*default_headers, *SAFE)]
    lines += [f"{name}: {value}\r\n".encode() for name, value in headers.items()]
    return b"".join([STATUS_LINE[error.http_status], *lines, b"\r\n", body])
