"""What the HTTP server says itself, before a door has seen the request: in the REST door's shape,
and always the last thing on a connection."""

from __future__ import annotations

from collections.abc import Iterable

from uvicorn.protocols.http.httptools_impl import STATUS_LINE

from lasthop.access.rest.answers import encode
from lasthop.access.rest.problems import headers_of, problem_of
from lasthop.errors import LasthopError, Rejected


class TooSlow(Rejected):
    """A request that does not get on."""

    code = "too_slow"
    http_status = 408


def refusal(error: LasthopError, default_headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    """A whole answer that refuses a request and ends its connection."""
    body = encode(problem_of(error))
    headers = headers_of(error) | {
        "content-type": "application/json",
        "content-length": str(len(body)),
        "connection": "close",
    }
    lines = [b"%b: %b\r\n" % pair for pair in default_headers]
    lines += [f"{name}: {value}\r\n".encode() for name, value in headers.items()]
    return b"".join([STATUS_LINE[error.http_status], *lines, b"\r\n", body])
