"""Handlers for streams over HTTP: to open a stream, send it in pieces or in one long request, fetch
it and end it.

A sender names the offset of what it sends, and a receiver the offset from which it fetches: after a
lost connection both ask for the stream's position, and continue there.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Annotated

import msgspec
from msgspec import Meta
from starlette.responses import Response

from lasthop.access.callers import Caller
from lasthop.access.rest.answers import json_response
from lasthop.access.rest.exchange import RestExchange
from lasthop.access.rest.requests import Publication
from lasthop.access.rest.times import datetime_of
from lasthop.clock import Micros
from lasthop.core.contacts.inbound import PUBLISHERS
from lasthop.core.gateway import Gateway
from lasthop.core.names import parse_target
from lasthop.core.pieces.stream import Stream, StreamRecord
from lasthop.core.pieces.streams import no_such_stream, read_record
from lasthop.core.publishing.submission import Submission
from lasthop.errors import Conflict, InvalidRequest, NotFound
from lasthop.message import DEFAULT_PRIORITY, Target, TargetKind, parse_id
from lasthop.store.streams import StreamRow

FETCH = 1 << 20
"""The largest number of bytes of a stream in one response."""

FULL = 30.0
"""Seconds that a request to send waits for room in the stream's window; after that it is answered
with the stream's position."""

_BINARY = "application/octet-stream"


class NewStream(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The description of a stream to open."""

    to: Annotated[str, Meta(min_length=1, max_length=250, description="device:NAME or publisher:")]
    content_type: Annotated[str, Meta(max_length=250)] = _BINARY
    title: Annotated[str, Meta(max_length=250)] | None = None
    priority: Annotated[
        int, Meta(ge=0, le=9, description="Pieces of higher priority are sent first")
    ] = DEFAULT_PRIORITY
    headers: Annotated[dict[str, str], Meta(max_length=32)] | None = None


class StreamInfo(msgspec.Struct, omit_defaults=True):
    """A stream, its state and its position."""

    id: str
    source: str
    to: str
    state: str
    """The stream's state: open, complete, aborted or stopped."""
    position: int
    """The number of bytes that the gateway has received: the offset at which to continue
    sending."""
    taken: int
    """The number of bytes that the receiver has taken."""
    checksum: str
    """The CRC-32 of the bytes received so far, in hexadecimal."""
    opened_at: datetime
    content_type: str = ""
    title: str | None = None
    reason: str = ""
    room: int = 0
    """The number of bytes that can be sent now."""


class StreamList(msgspec.Struct):
    """The streams that have not ended, oldest first."""

    streams: list[StreamInfo]


class ContentQuery(msgspec.Struct, forbid_unknown_fields=True):
    """The query to send or fetch a stream's content: from which offset, and how long to wait."""

    offset: Annotated[int, Meta(ge=0)] = 0
    timeout: Annotated[float, Meta(ge=0, description="Seconds to wait for more")] = 0.0


class End(msgspec.Struct, forbid_unknown_fields=True):
    """The size and checksum of everything that the sender has sent, to compare with what the
    gateway received."""

    size: Annotated[int, Meta(ge=0)] | None = None
    checksum: Annotated[str, Meta(pattern="^[0-9a-f]{8}$", description="CRC-32")] | None = None


async def open_stream(exchange: RestExchange) -> Response:
    """Open a stream to a device or to publishers."""
    new = await exchange.body(NewStream)
    caller, context = exchange.caller, exchange.context
    context.charge(caller, messages=1, size=0)
    target = Target(TargetKind.PUBLISHER, "") if new.to == PUBLISHERS else parse_target(new.to)
    # The stream's description is checked like that of a message.
    said = Publication(
        to="device:checked",
        content_type=new.content_type,
        title=new.title,
        priority=new.priority,
        headers=new.headers,
    )
    form = context.converter(exchange.headers).one(said)

    def act(gateway: Gateway, now: Micros) -> StreamInfo:
        submission = Submission(
            target=target,
            content_type=form.content_type,
            title=form.title,
            priority=form.priority,
            headers=form.headers,
        )
        stream = gateway.streams.open(caller.app, caller.source, submission, now)
        return info(stream, gateway.streams.window)

    return json_response(await context.live.call(act), 201)


async def list_streams(exchange: RestExchange) -> Response:
    """List the streams that have not ended: the caller's own, and those that any publisher may
    fetch."""
    caller = exchange.caller

    def look(gateway: Gateway) -> StreamList:
        window = gateway.streams.window
        streams = gateway.streams.of(caller.app)
        return StreamList([info(s, window) for s in streams if _concerns(caller, s.record)])

    return json_response(exchange.context.live.look(look))


async def show(exchange: RestExchange) -> Response:
    """Show the state and position of a stream, also after its end."""
    key = _key(exchange)
    caller, live = exchange.caller, exchange.context.live

    def look(gateway: Gateway) -> StreamInfo | None:
        stream = gateway.streams.get(key)
        if stream is None or not _concerns(caller, stream.record):
            return None
        return info(stream, gateway.streams.window)

    found = live.look(look)
    if found is None:
        row = (await live.read(lambda reader: reader.find(StreamRow, [key]))).get(key)
        record = None if row is None else read_record(row)
        if record is None or not _concerns(caller, record):
            raise NotFound("no such stream", id=exchange.path("id"))
        found = _info(key, record)
    return json_response(found)


async def send(exchange: RestExchange) -> Response:
    """Append the request's body to a stream, from `offset`. The request is read only as fast as the
    receiver takes the stream."""
    query = exchange.query(ContentQuery)
    key, caller, live = _key(exchange), exchange.caller, exchange.context.live
    window = live.look(lambda gateway: gateway.streams.window)
    offset = query.offset
    position = live.look(lambda gateway: _from_publisher(gateway, caller, key).record.received)
    if offset > position:
        raise Conflict("the stream goes on at its position", offset=offset, position=position)
    async for data in exchange.request.stream():
        for start in range(0, len(data), window):
            part = data[start : start + window]
            if not await _append(exchange, key, offset, part):
                return json_response(live.look(_described(caller, key)))
            offset += len(part)
    return json_response(live.look(_described(caller, key)))


async def _append(exchange: RestExchange, key: int, offset: int, part: bytes) -> bool:
    """Append all of a part to the stream; return False if there is no room for it within `FULL`
    seconds."""
    caller, live = exchange.caller, exchange.context.live
    end = offset + len(part)

    def act(gateway: Gateway, now: Micros) -> int:
        stream = _from_publisher(gateway, caller, key)
        return gateway.streams.append(stream, offset, part, now)

    def room(gateway: Gateway) -> bool | None:
        stream = gateway.streams.get(key)
        if stream is None or not stream.open:
            return True
        free = stream.record.taken + gateway.streams.window - stream.record.received
        return True if free > 0 else None

    exchange.context.charge(caller, messages=0, size=len(part))
    while await live.call(act) < end:
        if not await live.watch(key, room, FULL):
            return False
    return True


async def fetch(exchange: RestExchange) -> Response:
    """Return the stream's content from `offset`; the gateway discards everything before
    `offset`."""
    query = exchange.query(ContentQuery)
    key, caller, context = _key(exchange), exchange.caller, exchange.context

    def act(gateway: Gateway, now: Micros) -> None:
        stream = _find(gateway, caller, key)
        record = stream.record
        if record.receiver:
            raise InvalidRequest("this stream goes to a device: only that device can fetch it")
        if query.offset > stream.durable:
            raise Conflict(
                "the stream has not reached this offset",
                offset=query.offset,
                position=stream.durable,
            )
        if query.offset < record.taken:
            raise Conflict(
                "this part of the stream was fetched already",
                offset=query.offset,
                position=record.taken,
            )
        gateway.streams.taken(stream, query.offset, now)
        if not stream.open and query.offset == record.received:
            gateway.streams.receiver_done(stream, now)

    def more(gateway: Gateway) -> tuple[bytes, StreamRecord] | None:
        stream = gateway.streams.get(key)
        if stream is None:
            return None
        body = stream.read(query.offset, FETCH)
        if not body and stream.open:
            return None
        return body, stream.record

    before = context.live.look(lambda gateway: _find(gateway, caller, key).record)
    await context.live.call(act)
    seconds = min(query.timeout, context.settings.max_wait)
    found = await context.live.watch(key, more, seconds)
    body, record = (b"", before) if found is None else found
    headers = {
        "content-type": _BINARY,
        "content-disposition": "attachment",
        "x-content-type-options": "nosniff",
        "cache-control": "no-store",
        "x-stream-position": str(query.offset + len(body)),
        "x-stream-state": str(record.state),
        "x-stream-checksum": f"{record.checksum:08x}",
    }
    return Response(body, 200, headers)


async def end(exchange: RestExchange) -> Response:
    """End a stream whose content was sent completely."""
    said = await exchange.optional_body(End) or End()
    key, caller = _key(exchange), exchange.caller
    checksum = None if said.checksum is None else int(said.checksum, 16)

    def act(gateway: Gateway, now: Micros) -> StreamInfo:
        stream = _from_publisher(gateway, caller, key)
        gateway.streams.end(stream, now, size=said.size, checksum=checksum)
        return info(stream, 0)

    return json_response(await exchange.context.live.call(act))


async def give_up(exchange: RestExchange) -> Response:
    """Stop a stream before its end: abort it as its sender, or refuse the rest as its receiver."""
    key, caller = _key(exchange), exchange.caller

    def act(gateway: Gateway, now: Micros) -> StreamInfo:
        stream = _find(gateway, caller, key)
        if stream.record.sender:
            gateway.streams.stop(stream, "stopped over REST", now)
        else:
            stream = _from_publisher(gateway, caller, key)
            gateway.streams.abort(stream, "given up by its sender", now)
        return info(stream, 0)

    return json_response(await exchange.context.live.call(act))


def info(stream: Stream, window: int) -> StreamInfo:
    """Return the description of a stream that the gateway still has in memory."""
    found = _info(stream.key, stream.record)
    if stream.open:
        found.room = max(0, stream.record.taken + window - stream.record.received)
    return found


def _info(key: int, record: StreamRecord) -> StreamInfo:
    return StreamInfo(
        id=f"{key:016x}",
        source=record.source,
        to=record.target,
        state=str(record.state),
        position=record.received,
        taken=record.taken,
        checksum=f"{record.checksum:08x}",
        opened_at=datetime_of(record.opened_at),
        content_type=record.content_type,
        title=record.title,
        reason=record.reason,
    )


def _described(caller: Caller, key: int) -> Callable[[Gateway], StreamInfo]:
    def look(gateway: Gateway) -> StreamInfo:
        return info(_find(gateway, caller, key), gateway.streams.window)

    return look


def _concerns(caller: Caller, record: StreamRecord) -> bool:
    """Whether the caller has opened the stream, or may fetch it like any publisher of the app."""
    return record.app == caller.app and (caller.owns(record.source) or record.target == PUBLISHERS)


def _find(gateway: Gateway, caller: Caller, key: int) -> Stream:
    stream = gateway.streams.find(caller.app, key)
    if not _concerns(caller, stream.record):
        raise no_such_stream(key)
    return stream


def _from_publisher(gateway: Gateway, caller: Caller, key: int) -> Stream:
    stream = _find(gateway, caller, key)
    if stream.record.sender:
        raise InvalidRequest("a device sends this stream: only that device can add to it")
    if not caller.owns(stream.record.source):
        raise no_such_stream(key)
    return stream


def _key(exchange: RestExchange) -> int:
    try:
        return parse_id(exchange.path("id"))[0]
    except ValueError as error:
        raise InvalidRequest(str(error)) from None
