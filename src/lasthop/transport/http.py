"""One HTTP/1.1 request to another server, and a bounded answer.

Names are resolved here, and the connection goes to the very address that was checked: whoever
controls a name cannot make it lead elsewhere between the check and the connection.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable, Iterable
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import NamedTuple, TypeAlias
from urllib.parse import urlsplit

import httptools

IpAddress: TypeAlias = IPv4Address | IPv6Address
Headers: TypeAlias = tuple[tuple[str, str], ...]

CHUNK = 64 * 1024
MAX_HEADERS = 64 * 1024
"""The largest number of bytes in an answer's headers; servers send a few hundred."""


class HttpFailure(Exception):
    """A request without an answer. `sent` says whether the request may have arrived all the
    same."""

    def __init__(self, reason: str, *, sent: bool) -> None:
        super().__init__(reason)
        self.reason = reason
        self.sent = sent


class HttpAnswer(NamedTuple):
    status: int
    headers: Headers
    """The headers of the answer, with names in lower case."""
    body: bytes

    def header(self, name: str) -> str:
        """Return the first value of a header; empty when there is none."""
        return next((value for found, value in self.headers if found == name), "")


def anywhere(address: IpAddress) -> bool:
    """Allow every address: the default of `post`."""
    return True


async def post(
    url: str,
    headers: Iterable[tuple[str, str]],
    body: bytes,
    *,
    timeout: float,  # noqa: ASYNC109 - one deadline for everything, down to the last byte
    limit: int,
    allowed: Callable[[IpAddress], bool] = anywhere,
    tls: ssl.SSLContext | None = None,
) -> HttpAnswer:
    """POST a body and return the answer, whose body has at most `limit` bytes; raise
    `HttpFailure`."""
    return await _request("POST", url, headers, body, timeout, limit, allowed, tls)


async def get(
    url: str,
    headers: Iterable[tuple[str, str]],
    *,
    timeout: float,  # noqa: ASYNC109 - as `post`
    limit: int,
    allowed: Callable[[IpAddress], bool] = anywhere,
    tls: ssl.SSLContext | None = None,
) -> HttpAnswer:
    """GET a URL and return the answer, whose body has at most `limit` bytes; raise
    `HttpFailure`. A redirect is an answer like any other."""
    return await _request("GET", url, headers, None, timeout, limit, allowed, tls)


async def _request(
    method: str,
    url: str,
    headers: Iterable[tuple[str, str]],
    body: bytes | None,
    timeout: float,  # noqa: ASYNC109 - as `post`
    limit: int,
    allowed: Callable[[IpAddress], bool],
    tls: ssl.SSLContext | None,
) -> HttpAnswer:
    exchange = _Exchange(method, url, limit)
    try:
        async with asyncio.timeout(timeout):
            return await exchange.run(headers, body, allowed, tls)
    except TimeoutError:
        raise HttpFailure(f"no answer in {timeout:g} seconds", sent=exchange.sent) from None
    except ssl.SSLError as error:
        raise HttpFailure(f"TLS: {error.reason or error}", sent=exchange.sent) from None
    except OSError as error:
        raise HttpFailure(error.strerror or str(error), sent=exchange.sent) from None
    except httptools.HttpParserError as error:
        raise HttpFailure(f"not an HTTP answer: {error}", sent=True) from None


async def ask(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    request: bytes,
    parser: AnswerParser,
) -> HttpAnswer:
    """Write a request to an open connection and return its answer; raise OSError or `HttpFailure`
    when the connection is lost."""
    try:
        writer.write(request)
    except RuntimeError:
        # uvloop reports a connection that has ended already in this way; asyncio only in `drain`.
        raise ConnectionResetError("the connection had ended before the request") from None
    await writer.drain()
    return await parser.read(reader)


class AnswerParser:
    """Parses one answer, whose body has at most `limit` bytes."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._parser = httptools.HttpResponseParser(self)
        self._headers: list[tuple[str, str]] = []
        self._body = bytearray()
        self._started = False
        self._complete = False
        self.reusable = False
        """Whether another request may follow on the same connection."""

    async def read(self, reader: asyncio.StreamReader) -> HttpAnswer:
        """Return the answer when it is complete; raise HttpFailure."""
        size = 0
        while not self._complete:
            data = await reader.read(CHUNK)
            if not data:
                if self._ended_by_closing():
                    break
                raise HttpFailure("the connection ended before the answer", sent=True)
            size += len(data)
            self._parser.feed_data(data)
            if len(self._body) > self._limit or size > MAX_HEADERS + 2 * self._limit:
                raise HttpFailure("the answer is too large", sent=True)
        return HttpAnswer(self._parser.get_status_code(), tuple(self._headers), bytes(self._body))

    def _ended_by_closing(self) -> bool:
        """Whether the end of the connection completes the answer, because the answer has no
        length."""
        names = {name for name, _ in self._headers}
        return self._started and not names & {"content-length", "transfer-encoding"}

    # What the parser calls.

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers.append((name.decode("latin-1").lower(), value.decode("latin-1")))

    def on_headers_complete(self) -> None:
        self._started = True

    def on_body(self, body: bytes) -> None:
        self._body += body

    def on_message_complete(self) -> None:
        if self._parser.get_status_code() < 200:
            self._headers = []
            self._started = False
        else:
            self._complete = True
            # The parser knows this only now, and is about to forget the headers.
            self.reusable = self._parser.should_keep_alive()


class _Exchange:
    """One request to a server, and its answer."""

    def __init__(self, method: str, url: str, limit: int) -> None:
        self.sent = False
        self._method = method
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise HttpFailure("not an http or https URL", sent=False)
        try:
            port = parts.port
        except ValueError:
            raise HttpFailure("the URL's port is not a number up to 65535", sent=False) from None
        self._secure = parts.scheme == "https"
        self._host = parts.hostname
        self._port = port or (443 if self._secure else 80)
        self._netloc = parts.netloc.rpartition("@")[2]
        self._path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        if not (self._path + self._netloc).isascii() or not self._path.isprintable():
            raise HttpFailure("a URL may only have printable ASCII characters", sent=False)
        self._parser = AnswerParser(limit)

    async def run(
        self,
        headers: Iterable[tuple[str, str]],
        body: bytes | None,
        allowed: Callable[[IpAddress], bool],
        tls: ssl.SSLContext | None,
    ) -> HttpAnswer:
        request = self._request(headers, body)
        if self._secure and tls is None:
            tls = await asyncio.to_thread(ssl.create_default_context)
        address = await self._look_up(allowed)
        reader, writer = await asyncio.open_connection(
            str(address),
            self._port,
            ssl=tls if self._secure else None,
            server_hostname=self._host if self._secure else None,
        )
        try:
            self.sent = True
            return await ask(reader, writer, request, self._parser)
        finally:
            writer.close()

    async def _look_up(self, allowed: Callable[[IpAddress], bool]) -> IpAddress:
        loop = asyncio.get_running_loop()
        try:
            found = await loop.getaddrinfo(self._host, self._port, type=socket.SOCK_STREAM)
        except (socket.gaierror, UnicodeError):
            raise HttpFailure(f"no such host: {self._host}", sent=False) from None
        for *_, place in found:
            address = ip_address(str(place[0]).partition("%")[0])
            if allowed(address):
                return address
        raise HttpFailure(f"{self._host} has no address that is allowed", sent=False)

    def _request(self, headers: Iterable[tuple[str, str]], body: bytes | None) -> bytes:
        lines = [
            f"{self._method} {self._path} HTTP/1.1",
            f"Host: {self._netloc}",
            *(f"{name}: {value}" for name, value in headers),
            *([] if body is None else [f"Content-Length: {len(body)}"]),
            "Connection: close",
        ]
        if any("\r" in line or "\n" in line for line in lines):
            raise HttpFailure("a header has more than one line", sent=False)
        return "\r\n".join(lines).encode("latin-1", "replace") + b"\r\n\r\n" + (body or b"")
