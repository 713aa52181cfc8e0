"""Streams: opened, filled, read, ended."""

from __future__ import annotations

from lasthop.access.rest import streams
from lasthop.access.rest.operations.operation import Operation
from lasthop.core.apps.credentials import Scope

_STREAM = "/v1/streams/{id}"

STREAMS: tuple[Operation, ...] = (
    Operation(
        method="POST",
        path="/v1/streams",
        summary="Open a stream to a device",
        scope=Scope.PUBLISH,
        handler=streams.open_stream,
        body=streams.NewStream,
        answers={201: streams.StreamInfo},
        refusals=(404, 415),
    ),
    Operation(
        method="GET",
        path="/v1/streams",
        summary="Your streams that are not over, and those that any publisher may fetch",
        scope=Scope.PUBLISH,
        handler=streams.list_streams,
        answers={200: streams.StreamList},
    ),
    Operation(
        method="GET",
        path=_STREAM,
        summary="How far a stream is",
        scope=Scope.PUBLISH,
        handler=streams.show,
        answers={200: streams.StreamInfo},
        refusals=(404,),
    ),
    Operation(
        method="PUT",
        path=f"{_STREAM}/content",
        summary="Send what follows an offset; the receiver sets the pace",
        scope=Scope.PUBLISH,
        handler=streams.send,
        query=streams.ContentQuery,
        answers={200: streams.StreamInfo},
        refusals=(404, 409),
    ),
    Operation(
        method="GET",
        path=f"{_STREAM}/content",
        summary="Fetch what follows an offset, of a stream that a device sends to its publishers",
        scope=Scope.PUBLISH,
        handler=streams.fetch,
        query=streams.ContentQuery,
        answers={200: bytes},
        refusals=(404, 409),
    ),
    Operation(
        method="POST",
        path=f"{_STREAM}/end",
        summary="End a stream: everything was sent",
        scope=Scope.PUBLISH,
        handler=streams.end,
        body=streams.End,
        optional=True,
        answers={200: streams.StreamInfo},
        refusals=(404, 409, 415),
    ),
    Operation(
        method="DELETE",
        path=_STREAM,
        summary="Give a stream up",
        scope=Scope.PUBLISH,
        handler=streams.give_up,
        answers={200: streams.StreamInfo},
        refusals=(404,),
    ),
)
