"""Operations on streams: open, fill, read, end and abort them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lasthop.access.rest.operations.command import Command
from lasthop.access.rest.operations.deferred import deferred
from lasthop.access.rest.operations.operation import Operation, Scope

if TYPE_CHECKING:
    from lasthop.access.rest import streams
else:
    (streams,) = deferred("streams")

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
        command="`lasthop stream send` opens a stream, fills it and ends it.",
    ),
    Operation(
        method="GET",
        path="/v1/streams",
        summary="List your open streams, and those that any publisher may fetch",
        scope=Scope.PUBLISH,
        handler=streams.list_streams,
        answers={200: streams.StreamList},
        command=Command(
            "stream list",
            offline=False,
            rows="streams",
            columns="id from=source to state came=position taken",
        ),
    ),
    Operation(
        method="GET",
        path=_STREAM,
        summary="Show the state and position of a stream",
        scope=Scope.PUBLISH,
        handler=streams.show,
        answers={200: streams.StreamInfo},
        refusals=(404,),
        command=Command("stream show", "03be4d5c92800000", offline=False),
    ),
    Operation(
        method="PUT",
        path=f"{_STREAM}/content",
        summary="Send bytes of a stream from an offset on; the receiver sets the pace",
        scope=Scope.PUBLISH,
        handler=streams.send,
        query=streams.ContentQuery,
        answers={200: streams.StreamInfo},
        refusals=(404, 409),
        command="`lasthop stream send` opens a stream, fills it and ends it.",
    ),
    Operation(
        method="GET",
        path=f"{_STREAM}/content",
        summary="Fetch bytes from an offset on, of a stream that a device sends to its publishers",
        scope=Scope.PUBLISH,
        handler=streams.fetch,
        query=streams.ContentQuery,
        answers={200: bytes},
        refusals=(404, 409),
        command="`lasthop stream fetch` writes all of a stream to a file.",
    ),
    Operation(
        method="POST",
        path=f"{_STREAM}/end",
        summary="End a stream of which everything was sent",
        scope=Scope.PUBLISH,
        handler=streams.end,
        body=streams.End,
        optional=True,
        answers={200: streams.StreamInfo},
        refusals=(404, 409, 415),
        command="`lasthop stream send` opens a stream, fills it and ends it.",
    ),
    Operation(
        method="DELETE",
        path=_STREAM,
        summary="Abort a stream",
        scope=Scope.PUBLISH,
        handler=streams.give_up,
        answers={200: streams.StreamInfo},
        refusals=(404,),
        command=Command(
            "stream abort",
            "03be4d5c92800000",
            offline=False,
            says="stream {id} is {state} after {position} bytes",
        ),
    ),
)
