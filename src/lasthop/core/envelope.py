"""A delivery as it travels to its device: the frame and its headers."""

from __future__ import annotations

from collections.abc import Mapping

from lasthop.clock import MILLISECOND, Micros
from lasthop.core.delivery import Delivery
from lasthop.core.feature import Decider, Word
from lasthop.core.publishing.copying import at_default, maker
from lasthop.errors import TooLarge
from lasthop.message import DEFAULT_CONTENT_TYPE, Message, key_time
from lasthop.wire.hop.encoder import Encoder
from lasthop.wire.hop.frames import Headers, MessageFrame
from lasthop.wire.hop.mapping import Mapping as WireMapping

PLAIN_HEADERS = Headers(content_type=DEFAULT_CONTENT_TYPE)
"""The headers of a message that sets none itself, for deciders that have to add some."""

OTHERWISE = frozenset({"source", "binding", "pull", "immediate"})
"""Fields of a message that are not simply copied into a header: a device learns only the names of
other devices as sources, features add what concerns one group or channel, and whoever gets an
immediate message was there."""

TIMES = {"deliver_before": "deliver_within", "reply_before": "reply_within"}
COPIED = {"headers": "extra"} | {
    name: name
    for name in Message.__struct_fields__
    if name in Headers.__struct_fields__ and name not in OTHERWISE
}
"""By field of a message, the header in which the field travels to a device: those in `TIMES` as an
offset from the time of the key, those in `COPIED` unchanged."""

_is_plain = at_default(Message, COPIED | TIMES)
_headers_of = maker(
    Headers,
    {header: field for field, header in COPIED.items()},
    (*TIMES.values(), "source", "redelivered"),
)


def frame_of(delivery: Delivery, words: Mapping[str, Word]) -> MessageFrame:
    """Return the frame of a delivery as it travels to the device. Messages of the gateway's own
    content types are encoded by their features."""
    message = delivery.item.message
    headers: Headers | None = None
    # Most messages are plain and have no headers: they must not pay for building them.
    if not _is_plain(message) or delivery.redelivered or message.source.startswith("device:"):
        word = words.get(message.content_type)
        if word is not None:
            return word.frame(delivery)
        headers = _headers(message, redelivered=delivery.redelivered)
    seq = delivery.seq if delivery.seq >= 0 else None
    frame = MessageFrame(seq, message.key, message.target.topic, headers, message.body)
    decider = delivery.decider
    return frame if type(decider) is Decider else decider.frame(delivery, frame)


ENVELOPE = 4096
"""Bytes that a frame has besides the body, as long as title and headers are not unusual."""


def too_large(frame: MessageFrame, max_frame: int) -> bool:
    """Return whether a frame exceeds the `max_frame` bytes that a device accepts."""
    try:
        Encoder(WireMapping.UNORDERED, max_frame=max_frame).encode(frame, bytearray())
    except TooLarge:
        return True
    return False


def _headers(message: Message, *, redelivered: bool) -> Headers:
    start = key_time(message.key)
    return _headers_of(
        message,
        deliver_within=_offset(message.deliver_before, start),
        reply_within=_offset(message.reply_before, start),
        source=_sender(message),
        redelivered=redelivered,
    )


def _sender(message: Message) -> str | None:
    """Return the source of a message if it is a device; None if it is a publisher."""
    return message.source if message.source.startswith("device:") else None


def _offset(time: Micros | None, start: Micros) -> int | None:
    return None if time is None else max(0, (time - start) // MILLISECOND)
