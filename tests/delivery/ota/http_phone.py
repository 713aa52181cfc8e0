"""A client of OTA-HTTP on a real socket: an HTTP server that answers as it is told."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import cast

import httptools


@dataclass
class Request:
    """What the gateway asked."""

    method: str = ""
    path: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""

    @property
    def pushed(self) -> tuple[dict[str, str], bytes]:
        """The response in the body of a POST: its headers and content."""
        head, _, content = self.body.partition(b"\r\n\r\n")
        status, *lines = head.decode().split("\r\n")
        assert status == "HTTP/1.1 200 OK"
        pairs = (line.partition(": ") for line in lines)
        return {name.lower(): value for name, _, value in pairs}, content


def accepted(request: Request) -> bytes:
    """Registers, and takes everything."""
    if request.method == "OPTIONS":
        return registered()
    return b"HTTP/1.1 204 No Content\r\nX-Wap-Push-Status: 400\r\n\r\n"


def registered(*lines: str, status: int = 501) -> bytes:
    head = ["HTTP/1.1 204 No Content", f"X-Wap-Push-Status: {status}", "X-Wap-Terminal-Id: t1"]
    return "\r\n".join([*head, *lines, "", ""]).encode()


class Phone:
    """Listens, or calls; answers every request by `answer`, or not at all by None."""

    def __init__(self, answer: Callable[[Request], bytes | None] = accepted) -> None:
        self.answer = answer
        self.requests: list[Request] = []
        self.arrived = asyncio.Event()
        self._server: asyncio.Server | None = None
        self._transports: list[asyncio.Transport] = []
        self.port = 0

    @property
    def posts(self) -> list[Request]:
        return [request for request in self.requests if request.method == "POST"]

    async def listen(self, host: str = "127.0.0.1", port: int = 0) -> None:
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: _Line(self), host, port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def call(self, host: str, port: int) -> None:
        await asyncio.get_running_loop().create_connection(lambda: _Line(self), host, port)

    def hang_up(self) -> None:
        for transport in self._transports:
            transport.abort()
        self._transports.clear()

    def close(self) -> None:
        self.hang_up()
        if self._server is not None:
            self._server.close()

    async def wait_for(self, requests: int) -> None:
        async with asyncio.timeout(10):
            while len(self.requests) < requests:
                self.arrived.clear()
                await self.arrived.wait()


class _Line(asyncio.Protocol):
    def __init__(self, phone: Phone) -> None:
        self._phone = phone
        self._request = Request()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._phone._transports.append(self._transport)
        self._parser = httptools.HttpRequestParser(self)

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_url(self, url: bytes) -> None:
        self._request = Request(self._parser.get_method().decode(), url.decode())

    def on_header(self, name: bytes, value: bytes) -> None:
        self._request.headers[name.decode().lower()] = value.decode()

    def on_body(self, body: bytes) -> None:
        self._request.body += body

    def on_message_complete(self) -> None:
        request = self._request
        request.method = self._parser.get_method().decode()
        self._phone.requests.append(request)
        self._phone.arrived.set()
        answer = self._phone.answer(request)
        if answer is not None:
            self._transport.write(answer)
            if b"Connection: close" in answer:
                self._transport.close()
