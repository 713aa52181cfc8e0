"""Reads the bodies of requests, and limits how many bytes of bodies are in memory at a time."""

from __future__ import annotations

from collections.abc import Mapping

from starlette.requests import ClientDisconnect
from starlette.types import Receive

from lasthop.errors import Overloaded, TooLarge, UnsupportedMedia

RETRY_WHEN_FULL = 1.0
"""Seconds after which a refused publisher may try again: held bodies wait for the disk, which takes
milliseconds."""


class Intake:
    """The bodies of all requests in progress, counted against the door's memory limit."""

    def __init__(self, *, max_body: int, max_held: int) -> None:
        self._max_body = max_body
        self._max_held = max_held
        self.held = 0

    async def read(self, headers: Mapping[bytes, bytes], receive: Receive) -> bytes:
        """Read the whole body of a request. The body counts as held until `release` is called."""
        _check_coding(headers)
        declared = headers.get(b"content-length", b"")
        if declared.isdigit() and (len(declared) > 18 or int(declared) > self._max_body):
            raise TooLarge("request too large", limit=self._max_body)
        chunks: list[bytes] = []
        size = 0
        try:
            more = True
            while more:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise ClientDisconnect
                chunk: bytes = message.get("body", b"")
                more = message.get("more_body", False)
                self._hold(len(chunk))
                size += len(chunk)
                if size > self._max_body:
                    raise TooLarge("request too large", limit=self._max_body)
                chunks.append(chunk)
        except BaseException:
            self.release(size)
            raise
        return chunks[0] if len(chunks) == 1 else b"".join(chunks)

    def hold(self, headers: Mapping[bytes, bytes], body: bytes) -> None:
        """Count a body that has already arrived as held, until `release` is called."""
        _check_coding(headers)
        if len(body) > self._max_body:
            raise TooLarge("request too large", limit=self._max_body)
        self._hold(len(body))

    def release(self, size: int) -> None:
        """Stop counting a body of this many bytes as held."""
        self.held -= size

    def _hold(self, size: int) -> None:
        if self.held + size > self._max_held:
            raise Overloaded("too many bytes are waiting to be stored", retry_after=RETRY_WHEN_FULL)
        self.held += size


def _check_coding(headers: Mapping[bytes, bytes]) -> None:
    if headers.get(b"content-encoding", b"identity").lower() != b"identity":
        raise UnsupportedMedia("send the body uncompressed", field="Content-Encoding")
