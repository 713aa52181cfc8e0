"""Requests to one HTTP server, over connections that are kept for the next request."""

from __future__ import annotations

import asyncio
import ssl
from typing import TypeAlias

import httptools

from lasthop.transport.http import AnswerParser, HttpAnswer, HttpFailure, ask

Streams: TypeAlias = tuple[asyncio.StreamReader, asyncio.StreamWriter]

MOST_IDLE = 4
"""The largest number of connections that are kept: as many as a device has requests open."""


class HttpServer:
    """An HTTP server that gets many requests, and the idle connections to it."""

    def __init__(self, host: str, port: int, *, tls: ssl.SSLContext | None, limit: int) -> None:
        """Start without connections; `limit` is the most bytes of an answer's body."""
        self._host = host
        self._port = port
        self._tls = tls
        self._limit = limit
        name = f"[{host}]" if ":" in host else host
        usual = 443 if tls is not None else 80
        self._name = name if port == usual else f"{name}:{port}"
        self._idle: list[Streams] = []
        self._closed = False

    async def connect(self) -> None:
        """Make a connection for the first request; raise OSError."""
        self._idle.append(await self._connect())

    async def post(self, target: str, kind: str, body: bytes) -> HttpAnswer:
        """POST a body of this content type and return the answer; raise OSError or HttpFailure when
        there is none."""
        reader, writer = self._kept() or await self._connect()
        parser = AnswerParser(self._limit)
        reusable = False
        try:
            answer = await ask(reader, writer, self._request(target, kind, body), parser)
            reusable = parser.reusable and not self._closed and len(self._idle) < MOST_IDLE
        except httptools.HttpParserError as error:
            raise HttpFailure(f"not an HTTP answer: {error}", sent=True) from None
        finally:
            if reusable:
                self._idle.append((reader, writer))
            else:
                writer.close()
        return answer

    def close(self) -> None:
        """Close the idle connections, and keep none from now on."""
        self._closed = True
        for _, writer in self._idle:
            writer.close()
        self._idle = []

    def _kept(self) -> Streams | None:
        """Return an idle connection that the server has not closed, as far as known; None if there
        is none."""
        while self._idle:
            reader, writer = self._idle.pop()
            if not (writer.is_closing() or reader.at_eof() or reader.exception()):
                return reader, writer
            writer.close()
        return None

    async def _connect(self) -> Streams:
        return await asyncio.open_connection(self._host, self._port, ssl=self._tls)

    def _request(self, target: str, kind: str, body: bytes) -> bytes:
        head = (
            f"POST {target} HTTP/1.1\r\n"
            f"Host: {self._name}\r\n"
            f"Content-Type: {kind}\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        return head.encode("ascii") + body
