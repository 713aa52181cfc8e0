"""A delivery as it travels to its device: the frame and its headers."""

from __future__ import annotations

import msgspec

from lasthop.clock import MILLISECOND, Micros
from lasthop.core.delivery import Delivery
from lasthop.errors import TooLarge
from lasthop.message import (
    DEFAULT_CONTENT_TYPE,
    DEFAULT_PRIORITY,
    Binding,
    Handling,
    Message,
    Reliability,
    TargetKind,
    key_time,
)
from lasthop.wire.hop.encoder import Encoder
from lasthop.wire.hop.frames import DECISION_TYPE, FEED_TYPE, Headers, MessageFrame, Operation
from lasthop.wire.hop.mapping import Mapping

_PLAIN = Headers(content_type=DEFAULT_CONTENT_TYPE)
TOPIC, GROUP = TargetKind.TOPIC, TargetKind.GROUP
FOREGROUND, EXACTLY_ONCE = Handling.FOREGROUND, Reliability.EXACTLY_ONCE


def frame_of(delivery: Delivery) -> MessageFrame:
    """The message as it travels to the device."""
    message = delivery.item.message
    kind = message.target.kind
    topic = message.target.name if kind is TOPIC else None
    seq = delivery.seq if delivery.seq >= 0 else None
    headers = headers_of(delivery)
    if headers is not None and message.content_type == FEED_TYPE:
        instructs = Headers(operation=Operation.FEED, in_reply_to=message.in_reply_to)
        return MessageFrame(seq, message.key, topic or message.queue, instructs, message.body)
    if headers is not None and message.content_type == DECISION_TYPE:
        decides = Headers(operation=Operation.DECISION, in_reply_to=message.in_reply_to)
        return MessageFrame(seq, message.key, None, decides, message.body)
    if kind is GROUP:
        headers = _in_group(delivery, headers or _PLAIN)
    if delivery.keep:
        headers = msgspec.structs.replace(headers or _PLAIN, keep=True)
    return MessageFrame(seq, message.key, topic, headers, message.body)


def _in_group(delivery: Delivery, headers: Headers) -> Headers:
    """What is said of a message for a group. Once it is released, an atomic one is like others."""
    message = delivery.item.message
    bond = delivery.item.bond
    binding = message.binding
    if binding is Binding.ATOMIC and (bond is None or not bond.holds):
        binding = Binding.NONE
    return msgspec.structs.replace(headers, group=message.target.name, binding=binding)


ENVELOPE = 4096
"""Bytes that a frame has besides the body, as long as title and headers are not unusual."""


def too_large(delivery: Delivery, max_frame: int) -> bool:
    """Whether a device that takes frames of `max_frame` bytes cannot take this."""
    if delivery.item.size + ENVELOPE <= max_frame:
        return False
    out = bytearray()
    try:
        Encoder(Mapping.UNORDERED, max_frame=max_frame).encode(frame_of(delivery), out)
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
    """The device that it comes from; what a surrogate answered for a device is the device's."""
    kind, _, name = message.source.partition(":")
    if kind == "device":
        return message.source
    return f"device:{name}" if kind == "surrogate" and message.answer else None


def _offset(time: Micros | None, start: Micros) -> int | None:
    return None if time is None else max(0, (time - start) // MILLISECOND)
