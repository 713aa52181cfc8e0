"""A delivery as it travels to its device: the frame and its headers."""

from __future__ import annotations

from collections.abc import Mapping

from lasthop.clock import MILLISECOND, Micros
from lasthop.core.delivery import Delivery
from lasthop.core.feature import Decider, Word
from lasthop.errors import TooLarge
from lasthop.message import (
    DEFAULT_CONTENT_TYPE,
    DEFAULT_PRIORITY,
    Handling,
    Message,
    Reliability,
    key_time,
)
from lasthop.wire.hop.encoder import Encoder
from lasthop.wire.hop.frames import Headers, MessageFrame
from lasthop.wire.hop.mapping import Mapping as WireMapping

PLAIN_HEADERS = Headers(content_type=DEFAULT_CONTENT_TYPE)
"""What a plain message says of itself, for those that say more."""

FOREGROUND, EXACTLY_ONCE = Handling.FOREGROUND, Reliability.EXACTLY_ONCE


def frame_of(delivery: Delivery, words: Mapping[str, Word]) -> MessageFrame:
    """The message as it travels to the device. What the gateway itself has to say travels as its
    content type wants it."""
    message = delivery.item.message
    headers = headers_of(delivery)
    if headers is not None:
        word = words.get(message.content_type)
        if word is not None:
            return word.frame(delivery)
    seq = delivery.seq if delivery.seq >= 0 else None
    frame = MessageFrame(seq, message.key, message.target.topic, headers, message.body)
    decider = delivery.decider
    return frame if type(decider) is Decider else decider.frame(delivery, frame)


ENVELOPE = 4096
"""Bytes that a frame has besides the body, as long as title and headers are not unusual."""


def too_large(frame: MessageFrame, max_frame: int) -> bool:
    """Whether a device that takes frames of `max_frame` bytes cannot take this. Nobody need ask if
    there is room for an `ENVELOPE` besides the body."""
    try:
        Encoder(WireMapping.UNORDERED, max_frame=max_frame).encode(frame, bytearray())
    except TooLarge:
        return True
    return False


def headers_of(delivery: Delivery) -> Headers | None:
    """What differs from the defaults; `None` for a plain message."""
    m = delivery.item.message
    if (
        m.content_type == DEFAULT_CONTENT_TYPE
        and m.priority == DEFAULT_PRIORITY
        and m.deliver_before is None
        and m.in_reply_to is None
        and m.reply_before is None
        and m.handling is FOREGROUND
        and m.reliability is EXACTLY_ONCE
        and m.title is None
        and not m.rank
        and not m.headers
        and m.queue is None
        and not m.stream
        and not delivery.redelivered
        and not m.source.startswith("device:")
    ):
        return None
    start = key_time(m.key)
    return Headers(
        content_type=m.content_type,
        priority=m.priority,
        deliver_within=_offset(m.deliver_before, start),
        in_reply_to=m.in_reply_to,
        reply_within=_offset(m.reply_before, start),
        handling=m.handling,
        reliability=m.reliability,
        title=m.title,
        rank=m.rank,
        source=_sender(m),
        correlation=m.correlation,
        redelivered=delivery.redelivered,
        extra=m.headers,
        queue=m.queue,
        answer=m.answer,
        stream=m.stream,
    )


def _sender(message: Message) -> str | None:
    """The device that a message comes from."""
    return message.source if message.source.startswith("device:") else None


def _offset(time: Micros | None, start: Micros) -> int | None:
    return None if time is None else max(0, (time - start) // MILLISECOND)
