"""Encodes frames and the session's state for an inbox on disk: in msgpack, without headers that
have their default value."""

from __future__ import annotations

from typing import Any

import msgspec

from lasthop.device.change import (
    FlowState,
    IncomingLaneNumbers,
    OutgoingLaneNumbers,
    SessionNumbers,
)
from lasthop.errors import StoreBroken
from lasthop.wire.hop.frames import Headers, MessageFrame

_DEFAULTS = msgspec.structs.asdict(Headers())
_encode = msgspec.msgpack.Encoder().encode


class _Packed(msgspec.Struct, array_like=True, gc=False):
    """The stored fields of a frame; its number is stored beside it. New fields go to the end."""

    key: int | None
    topic: str | None
    headers: dict[str, Any] | None
    body: bytes


_decode = msgspec.msgpack.Decoder(_Packed).decode
_decode_incoming = msgspec.msgpack.Decoder(IncomingLaneNumbers).decode
_decode_outgoing = msgspec.msgpack.Decoder(OutgoingLaneNumbers).decode
_decode_flow = msgspec.msgpack.Decoder(FlowState).decode
_decode_state = msgspec.msgpack.Decoder(SessionNumbers).decode


def pack(frame: MessageFrame) -> bytes:
    """Encode a frame for the inbox, without its number."""
    headers = None
    if frame.headers is not None:
        said = msgspec.structs.asdict(frame.headers)
        headers = {name: value for name, value in said.items() if value != _DEFAULTS[name]}
    return _encode(_Packed(frame.key, frame.topic, headers, frame.body))


def unpack(data: bytes) -> MessageFrame:
    """Decode a frame of the inbox, which is stored without its number. Raises StoreBroken if the
    stored data is damaged."""
    try:
        packed = _decode(data)
        headers = None if packed.headers is None else msgspec.convert(packed.headers, Headers)
    except msgspec.DecodeError as error:
        raise StoreBroken("a message in the inbox cannot be read", error=str(error)) from None
    return MessageFrame(None, packed.key, packed.topic, headers, packed.body)


def pack_state(state: SessionNumbers) -> bytes:
    """Encode the session's numbers for the inbox."""
    return _encode(state)


def unpack_state(data: bytes) -> SessionNumbers:
    """Decode the session's numbers, also if an older version wrote them. Raises StoreBroken if they
    are damaged."""
    try:
        return _decode_state(data)
    except msgspec.DecodeError as error:
        raise StoreBroken("the state in the inbox cannot be read", error=str(error)) from None


def pack_lane(numbers: IncomingLaneNumbers | OutgoingLaneNumbers) -> bytes:
    """Encode the numbers of a lane for the inbox."""
    return _encode(numbers)


def unpack_lane(data: bytes, *, incoming: bool) -> IncomingLaneNumbers | OutgoingLaneNumbers:
    """Decode the numbers of a lane, also if an older version wrote them. Raises StoreBroken if they
    are damaged."""
    try:
        return _decode_incoming(data) if incoming else _decode_outgoing(data)
    except msgspec.DecodeError as error:
        raise StoreBroken("a lane in the inbox cannot be read", error=str(error)) from None


def pack_flow(flow: FlowState) -> bytes:
    """Encode the progress of a stream for the inbox."""
    return _encode(flow)


def unpack_flow(data: bytes) -> FlowState:
    """Decode the progress of a stream, also if an older version wrote it. Raises StoreBroken if the
    stored data is damaged."""
    try:
        return _decode_flow(data)
    except msgspec.DecodeError as error:
        raise StoreBroken("a stream in the inbox cannot be read", error=str(error)) from None
