"""An HTTP connection in memory: a wire, a clock that is turned by hand, and a server's end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from uvicorn.config import Config
from uvicorn.server import ServerState

from lasthop.access.direct import Request, Response
from lasthop.runtime.admission import Admission
from lasthop.runtime.direct import DirectProtocol
from lasthop.runtime.guard import Guard
from lasthop.runtime.proxies import TrustedProxies
from lasthop.runtime.upgraded import UpgradedProtocol

PEER = "192.0.2.1"
KEEP_ALIVE = 75
ANSWER = Response(202, b"text/plain", b"taken")


class Wire(asyncio.Transport):
    """The other end of a connection."""

    def __init__(self) -> None:
        super().__init__({"peername": (PEER, 4321), "sockname": ("192.0.2.2", 80)})
        self._protocol: asyncio.BaseProtocol = asyncio.Protocol()
        self.written: list[bytes] = []
        self.closed = False
        self.aborted = False
        self.ended = False
        self.unread = 0
        """Bytes that the peer has not read."""

    def write(self, data: Any) -> None:
        self.written.append(bytes(data))

    def close(self) -> None:
        self.closed = True

    def abort(self) -> None:
        self.closed = self.aborted = True

    def can_write_eof(self) -> bool:
        return True

    def write_eof(self) -> None:
        self.ended = True

    def is_closing(self) -> bool:
        return self.closed

    def is_aborted(self) -> bool:
        return self.aborted

    def is_over(self) -> bool:
        """Whether nothing more will come back."""
        return self.closed or self.ended

    def get_write_buffer_size(self) -> int:
        return self.unread

    def get_protocol(self) -> asyncio.BaseProtocol:
        return self._protocol

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self._protocol = protocol

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...


class Time:
    """A loop's clock and timers, turned by hand."""

    def __init__(self) -> None:
        self.now = 0.0
        self.alarms: list[tuple[float, Callable[[], None]]] = []
        self._loop = asyncio.get_running_loop()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loop, name)

    def time(self) -> float:
        return self.now

    def call_later(self, delay: float, act: Callable[[], None]) -> Alarm:
        entry = (self.now + delay, act)
        self.alarms.append(entry)
        return Alarm(self.alarms, entry)

    def pass_by(self, seconds: float) -> None:
        self.now += seconds
        for entry in [entry for entry in self.alarms if entry[0] <= self.now]:
            self.alarms.remove(entry)
            entry[1]()


class Alarm:
    def __init__(self, alarms: list[Any], entry: Any) -> None:
        self._alarms = alarms
        self._entry = entry

    def cancel(self) -> None:
        if self._entry in self._alarms:
            self._alarms.remove(self._entry)


class Connection:
    """A connection to a server with a door at /door, and an application everywhere."""

    def __init__(self, *, most: int = 1, proxies: Sequence[str] = ()) -> None:
        self.guard = Guard(
            Admission(most=lambda: most),
            administers=lambda headers, peer, certificate: headers.get(b"authorization") == b"me",
            proxies=TrustedProxies(proxies),
        )
        self.taken: list[tuple[Request, Callable[[Response], None]]] = []
        self.wire = Wire()
        self.time = Time()
        config = Config(
            self.app,
            interface="asgi3",
            ws=UpgradedProtocol,
            lifespan="off",
            log_config=None,
            timeout_keep_alive=KEEP_ALIVE,
        )
        config.load()
        self.state = ServerState()
        self.state.default_headers = [(b"date", b"today")]
        self.protocol = DirectProtocol(
            config=config,
            server_state=self.state,
            app_state={},
            _loop=self.time,
            direct={b"/door": self.take},
            guard=self.guard,
        )
        self.wire.set_protocol(self.protocol)
        self.protocol.connection_made(self.wire)

    def take(self, request: Request, respond: Callable[[Response], None]) -> None:
        self.taken.append((request, respond))

    async def app(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.accept"})
            while (await receive())["type"] != "websocket.disconnect":
                pass
            return
        body, more = b"", True
        while more:
            message = await receive()
            body += message.get("body", b"")
            more = message.get("more_body", False)
        said = f"{scope['method']} {scope['path']} {len(body)} {dict(scope['headers'])}".encode()
        length = (b"content-length", b"%d" % len(said))
        await send({"type": "http.response.start", "status": 200, "headers": [length]})
        await send({"type": "http.response.body", "body": said})

    def send(self, data: bytes, pieces: int = 0) -> None:
        size = pieces or len(data) or 1
        for at in range(0, len(data), size):
            self.protocol.data_received(data[at : at + size])

    async def heard(self) -> bytes:
        """What came back, when the application has had its turn."""
        for _ in range(20):
            await asyncio.sleep(0)
        written, self.wire.written = b"".join(self.wire.written), []
        return written


def post(body: bytes, *headers: str, path: str = "/door", version: str = "1.1") -> bytes:
    lines = [f"POST {path} HTTP/{version}", "Host: x", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join([*lines, "", ""]).encode() + body
