"""The door by which topics are received over plain HTTP and WebSocket."""

from __future__ import annotations

import asyncio
from heapq import merge
from operator import attrgetter
from typing import Any

from starlette.types import Receive, Scope as Connection, Send

from lasthop.access.callers import Caller, Callers
from lasthop.access.live_gateway import LiveGateway
from lasthop.access.ntfy.ntfy_errors import NtfyError
from lasthop.access.ntfy.ntfy_parameters import NtfyParameters
from lasthop.access.ntfy.ntfy_values import authorized
from lasthop.access.receive.encoded import MEDIA, ReceiveForm
from lasthop.access.receive.hub import Hub
from lasthop.access.receive.receive_request import FORMS, ReceiveRequest, asking_of, topics_in
from lasthop.access.receive.topic_listener import TopicListener
from lasthop.access.rest.problems import headers_of
from lasthop.core.apps.credentials import Scope
from lasthop.core.gateway import Gateway
from lasthop.core.rights.rights import NoRight
from lasthop.core.rights.rule import Verb
from lasthop.core.topics.topic_history import RememberedMessage, Since
from lasthop.errors import LasthopError
from lasthop.message import TargetKind, short_form
from lasthop.transport.locality import joined, peer_of

BATCH = 100
"""Messages that are read from the store together for one listener."""

FULL = 64 << 10
"""Unsent bytes at which a listener gets nothing more of what the topic remembers."""

PAUSE = 0.05
"""Seconds between two looks at a listener that is full."""

TRANSPORT = "lasthop.transport"
"""The key of an ASGI scope with the connection's transport, to which listeners are written."""

CORS = (b"access-control-allow-origin", b"*")

MOST_HEARD = 64
"""The longest frame of a client that only listens."""


class ReceiveDoor:
    """Serves `GET /TOPICS/json`, `/sse`, `/raw`, `/ws` and `/auth`."""

    def __init__(self, live: LiveGateway, callers: Callers, hub: Hub) -> None:
        self._live = live
        self._callers = callers
        self.hub = hub

    async def receive_http(
        self, connection: Connection, receive: Receive, send: Send, topics: str, kind: str
    ) -> None:
        """Serve a request to receive over HTTP; raise an error before anything was sent."""
        form = FORMS.get(kind)
        if form is ReceiveForm.WS:
            raise NtfyError(40016, "this path is for WebSocket", field="Upgrade")
        caller, parameters = self._let_in(connection, topics)
        names = topics_in(topics, self.hub.settings.topics)
        self._check_rights(caller, names)
        if form is None:
            await _answer(send, b'{"success":true}\n')
            return
        asking = asking_of(names, form, parameters, self._live.now())
        stream = HttpStream(connection, receive, send, MEDIA[form])
        await self._serve(asking, caller, peer_of(connection) or "", stream)

    async def receive_websocket(
        self, connection: Connection, receive: Receive, send: Send, topics: str
    ) -> None:
        """Serve a WebSocket, or refuse its handshake."""
        await receive()
        try:
            caller, parameters = self._let_in(connection, topics)
            names = topics_in(topics, self.hub.settings.topics)
            self._check_rights(caller, names)
            asking = asking_of(names, ReceiveForm.WS, parameters, self._live.now())
            stream = WebSocketStream(connection, receive, send)
            await self._serve(asking, caller, peer_of(connection) or "", stream)
        except LasthopError as error:
            await _refuse_websocket(connection, send, error)

    def _let_in(self, connection: Connection, topics: str) -> tuple[Caller, NtfyParameters]:
        headers = joined(connection["headers"])
        parameters = NtfyParameters(headers, connection.get("query_string", b""))
        extensions = connection.get("extensions") or {}
        certificate = (extensions.get("tls") or {}).get("client_cert_name")
        caller = self._callers.recognise(
            authorized(headers, parameters), peer_of(connection), certificate
        )
        caller.require(Scope.SUBSCRIBE)
        return caller, parameters

    def _check_rights(self, caller: Caller, topics: tuple[str, ...]) -> None:
        rights = self._live.look(lambda gateway: gateway.deliveries.rights)
        if rights is None:
            return
        of_caller = rights.credential(caller.app, caller.name)
        for topic in topics:
            answer = of_caller.answer(Verb.SUBSCRIBE, TargetKind.TOPIC, topic)
            if not answer.allowed:
                raise NoRight(answer.reason)

    async def _serve(
        self, asking: ReceiveRequest, caller: Caller, address: str, stream: ListenerStream
    ) -> None:
        self.hub.admit(address)
        try:
            listener = TopicListener(
                caller.app,
                asking.named,
                asking.form,
                stream,
                chunked=stream.chunked,
                wants=asking.wants,
                over=stream.ended.set,
                fell_behind=self.hub.note_fallen_behind,
            )
            await stream.begin()
            if asking.poll:
                await self._live.durable()
                await self._give(listener, stream, asking)
            else:
                await self._follow(listener, stream, asking)
            await stream.finish(listener)
        finally:
            self.hub.dismiss(address)

    async def _follow(
        self, listener: TopicListener, stream: ListenerStream, asking: ReceiveRequest
    ) -> None:
        self.hub.join(listener, asking.topics)
        gone = asyncio.ensure_future(stream.gone())
        over = asyncio.ensure_future(stream.ended.wait())
        giving = asyncio.ensure_future(self._begin(listener, stream, asking))
        try:
            await asyncio.wait({gone, over, giving}, return_when=asyncio.FIRST_COMPLETED)
            if giving.done():
                giving.result()
                await asyncio.wait({gone, over}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self.hub.leave(listener)
            for task in (gone, over, giving):
                task.cancel()
            await asyncio.gather(gone, over, giving, return_exceptions=True)

    async def _begin(
        self, listener: TopicListener, stream: ListenerStream, asking: ReceiveRequest
    ) -> None:
        """Give a listener what it asks for of the past, and then let it go on live."""
        opened = self.hub.signal("open", asking.named)
        opened.event.ignored = asking.ignored
        listener.say(opened)
        # From here on everything is reported: what came before is in the history once it is
        # durable.
        await self._live.durable()
        await self._give(listener, stream, asking)
        for seat in listener.seats:
            seat.catch_up()

    async def _give(
        self, listener: TopicListener, stream: ListenerStream, asking: ReceiveRequest
    ) -> None:
        entries = self._remembered(listener, asking)
        for start in range(0, len(entries), BATCH):
            batch = entries[start : start + BATCH]
            found = await self.hub.read([entry.key for entry in batch])
            for entry in batch:
                message = found.get(entry.key)
                if message is not None:
                    listener.send(self.hub.encode(message, kept=True))
            # A transport says how much waits, and not when that is less.
            while stream.unsent > FULL and not listener.ended and not stream.lost:  # noqa: ASYNC110
                await asyncio.sleep(PAUSE)
            if listener.ended or stream.lost:
                return

    def _remembered(
        self, listener: TopicListener, asking: ReceiveRequest
    ) -> list[RememberedMessage]:
        """Return what the topics remember from the asked point on, and let the seats begin behind
        it."""

        def ask(gateway: Gateway) -> list[RememberedMessage]:
            durable, now = gateway.durable, self._live.now()
            found: list[list[RememberedMessage]] = []
            scheduled: list[RememberedMessage] = []
            for number, topic in enumerate(asking.topics):
                history = gateway.topics.histories.find(listener.app, topic)
                if history is None:
                    continue
                found.append(history.select(asking.since, durable, now))
                newest = next(history.newest_first(durable, now), None)
                if listener.seats and newest is not None:
                    listener.seats[number].after = newest.place
                if asking.scheduled:
                    scheduled += history.scheduled.values()
            given = list(merge(*found, key=attrgetter("at")))
            return [*_latest(given, asking.since), *sorted(scheduled, key=attrgetter("at"))]

        return self._live.look(ask)


def _latest(found: list[RememberedMessage], since: Since) -> list[RememberedMessage]:
    """Return at most as many as were asked for of several topics together; `latest` is one of
    each."""
    last = since.last
    return found if last is None or last <= 1 else found[-last:]


class ListenerStream:
    """The connection of one listener: bytes go to its transport, or by ASGI where there is none."""

    chunked = False

    def __init__(self, connection: Connection, receive: Receive, send: Send) -> None:
        self._receive = receive
        self._send = send
        self._transport: Any = connection.get(TRANSPORT)
        self._waiting: list[bytes] = []
        self.ended = asyncio.Event()
        """Set when the gateway ends the listener."""
        self.lost = False

    async def begin(self) -> None:
        """Send what comes before the first event."""
        raise NotImplementedError

    async def finish(self, listener: TopicListener) -> None:
        """End the answer, if the client is still there."""
        raise NotImplementedError

    async def gone(self) -> None:
        """Wait until the client is gone."""
        raise NotImplementedError

    def write(self, data: bytes) -> None:
        """Hand bytes to the transport, unless it is closing."""
        if self._transport is None:
            self._waiting.append(data)
        elif not self._transport.is_closing():
            self._transport.write(data)

    @property
    def unsent(self) -> int:
        """The number of bytes that wait in this process."""
        if self._transport is None or self._transport.is_closing():
            return 0
        return int(self._transport.get_write_buffer_size())


class HttpStream(ListenerStream):
    """An answer of HTTP that does not end by itself."""

    def __init__(self, connection: Connection, receive: Receive, send: Send, media: bytes) -> None:
        super().__init__(connection, receive, send)
        self._media = media
        self.chunked = self._transport is not None

    async def begin(self) -> None:
        headers = [(b"content-type", self._media), CORS, (b"x-accel-buffering", b"no")]
        await self._send({"type": "http.response.start", "status": 200, "headers": headers})
        # The head leaves with this; from then on chunks go to the transport itself.
        await self._send({"type": "http.response.body", "body": b"", "more_body": True})

    async def gone(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self.lost = True

    async def finish(self, listener: TopicListener) -> None:
        if not self.lost:
            rest = b"".join(self._waiting)
            await self._send({"type": "http.response.body", "body": rest, "more_body": False})


class WebSocketStream(ListenerStream):
    """A WebSocket whose frames are written by the gateway itself."""

    async def begin(self) -> None:
        await self._send({"type": "websocket.accept", "subprotocol": None})

    async def gone(self) -> None:
        while (event := await self._receive())["type"] == "websocket.receive":
            if len(event.get("bytes") or event.get("text") or "") > MOST_HEARD:
                self.ended.set()
        self.lost = event["type"] == "websocket.disconnect"

    async def finish(self, listener: TopicListener) -> None:
        if not self.lost:
            reason = f"since={short_form(listener.last)}" if listener.last else ""
            await self._send({"type": "websocket.close", "code": 1000, "reason": reason})


async def _answer(send: Send, body: bytes, status: int = 200) -> None:
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", b"%d" % len(body)),
        CORS,
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def _refuse_websocket(connection: Connection, send: Send, error: LasthopError) -> None:
    """Refuse a handshake with the status of an error and no body, where the server can do that."""
    extensions = connection.get("extensions") or {}
    if "websocket.http.response" in extensions:
        headers = [(n.encode(), v.encode()) for n, v in headers_of(error).items()]
        await send(
            {
                "type": "websocket.http.response.start",
                "status": error.http_status,
                "headers": headers,
            }
        )
        await send({"type": "websocket.http.response.body", "body": b""})
    else:
        await send({"type": "websocket.close", "code": 1008, "reason": error.detail[:100]})
