"""Sends requests to the REST interface of a running gateway, with the standard library alone."""

from __future__ import annotations

import http.client
from typing import Any, Self
from urllib.parse import SplitResult, quote, urlencode, urlsplit

import msgspec

from lasthop.runtime.failure import Failure

TIMEOUT = 30.0
"""Seconds to wait for an answer, in addition to the time that the request asks the gateway to
wait."""


class RestClient:
    """One connection to a gateway, kept open between requests."""

    def __init__(self, url: str, *, token: str | None = None, app: str | None = None) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise Failure(f"--url must be like http://127.0.0.1:8080, not {url!r}", exit_code=2)
        self._base = f"{parts.scheme}://{parts.netloc}"
        self._prefix = parts.path.rstrip("/")
        self._headers: dict[str, str] = {}
        if token:
            self._headers["Authorization"] = f"Bearer {token}"
        if app:
            self._headers["X-App"] = app
        self._connection = _connect(parts)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def call(
        self,
        method: str,
        path: str,
        *,
        query: dict[str, object] | None = None,
        body: object = None,
        headers: dict[str, str] | None = None,
        wait: float = 0,
        accept_refusal: bool = False,
    ) -> Any:
        """Send a request and return the decoded answer. A refusal raises a `Failure` with its
        reason, unless `accept_refusal` is true.

        A body of bytes is sent as it is, any other body as JSON.
        """
        sent = dict(self._headers)
        data: bytes | None = None
        if isinstance(body, bytes):
            data = body
        elif body is not None:
            data = msgspec.json.encode(body)
            sent["Content-Type"] = "application/json"
        sent |= headers or {}
        status, content_type, answer = self._exchange(
            method, self._prefix + path + _query(query), data, sent, TIMEOUT + wait
        )
        if status >= 400 and not accept_refusal:
            raise Failure(_reason(status, answer))
        if content_type.startswith("application/json"):
            return msgspec.json.decode(answer) if answer else None
        return answer

    def _exchange(
        self, method: str, path: str, data: bytes | None, headers: dict[str, str], timeout: float
    ) -> tuple[int, str, bytes]:
        connection = self._connection
        connection.timeout = timeout
        if connection.sock is not None:
            connection.sock.settimeout(timeout)
        try:
            connection.request(method, path, data, headers)
            response = connection.getresponse()
            answer = response.read()
        except ConnectionRefusedError:
            raise Failure(f"no gateway at {self._base}; start one with: lasthop up") from None
        except TimeoutError:
            raise Failure(f"{self._base} did not answer in {timeout:.0f} seconds") from None
        except (OSError, http.client.HTTPException) as error:
            said = str(error) or type(error).__name__
            raise Failure(f"lost the gateway at {self._base}: {said}") from None
        return response.status, response.headers.get("Content-Type", ""), answer


def segment(name: str) -> str:
    """Quote a name as one segment of a path."""
    return quote(name, safe="")


def _connect(parts: SplitResult) -> http.client.HTTPConnection:
    assert parts.hostname is not None
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    return kind(parts.hostname, parts.port, timeout=TIMEOUT)


def _query(query: dict[str, object] | None) -> str:
    given = {name: value for name, value in (query or {}).items() if value is not None}
    return "?" + urlencode(given) if given else ""


def _reason(status: int, answer: bytes) -> str:
    try:
        return str(msgspec.json.decode(answer)["error"]["detail"])
    except (msgspec.DecodeError, KeyError, TypeError):
        return f"the gateway answered {status} {http.client.responses.get(status, '')}".rstrip()
