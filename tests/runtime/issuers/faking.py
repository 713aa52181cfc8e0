"""A provider of OpenID Connect that answers as a test wants, right and wrong."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from threading import Event, Thread
from typing import Any
from urllib.parse import parse_qs

from lasthop.runtime.issuers.fetching import WELL_KNOWN
from tests.runtime.issuers.signing import ec_key, jwk, key_set, token

CLIENT = "lasthop"


class FakeProvider:
    """Answers every code with a token for whatever attempt it is told about."""

    def __init__(self) -> None:
        self.url = ""
        self.key = ec_key()
        self.nonce = ""
        self.fields: dict[str, Any] = {}
        """What its tokens say otherwise than they should."""
        self.header: dict[str, Any] = {}
        self.document: dict[str, Any] = {}
        self.answer: bytes | None = None
        """What it answers to a code, in place of a token."""
        self.status = 200
        self.forms: list[dict[str, str]] = []
        self.heads: list[bytes] = []

    def serve(self, head: bytes, body: bytes, now: int) -> tuple[int, bytes]:
        path = head.split(b" ")[1].decode()
        if path == WELL_KNOWN:
            document = {
                "issuer": self.url,
                "jwks_uri": f"{self.url}/keys",
                "authorization_endpoint": f"{self.url}/auth",
                "token_endpoint": f"{self.url}/token",
                "end_session_endpoint": f"{self.url}/end",
            }
            return 200, json.dumps(document | self.document).encode()
        if path == "/keys":
            return 200, key_set(jwk(ec_key(), kid="one"))
        self.heads.append(head)
        self.forms.append({k: v[0] for k, v in parse_qs(body.decode()).items()})
        if self.answer is not None:
            return self.status, self.answer
        fields = {"iss": self.url, "aud": CLIENT, "nonce": self.nonce, **self.fields}
        made = token(self.key, header=self.header, now=now, **fields)
        return self.status, json.dumps({"id_token": made, "token_type": "Bearer"}).encode()


@asynccontextmanager
async def providing(now: Any) -> AsyncIterator[FakeProvider]:
    """A provider that listens; `now` returns the time that its tokens have."""
    fake = FakeProvider()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        _, found, rest = head.lower().partition(b"content-length: ")
        body = await reader.readexactly(int(rest.split(b"\r\n")[0])) if found else b""
        status, said = fake.serve(head, body, now())
        writer.write(f"HTTP/1.1 {status} X\r\nContent-Length: {len(said)}\r\n\r\n".encode() + said)
        writer.close()

    listener = await asyncio.start_server(serve, "127.0.0.1", 0)
    fake.url = f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}"
    try:
        yield fake
    finally:
        listener.close()


@contextmanager
def providing_beside(now: Any) -> Iterator[FakeProvider]:
    """A provider that listens in a thread of its own."""
    ready, ended = Event(), Event()
    found: list[FakeProvider] = []

    async def listen() -> None:
        async with providing(now) as fake:
            found.append(fake)
            ready.set()
            await asyncio.to_thread(ended.wait)

    thread = Thread(target=lambda: asyncio.run(listen()))
    thread.start()
    try:
        assert ready.wait(60)
        yield found[0]
    finally:
        ended.set()
        thread.join()
