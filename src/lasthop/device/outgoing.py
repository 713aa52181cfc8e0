"""A message on its way from a device to the gateway, and its size."""

from __future__ import annotations

import msgspec

from lasthop.clock import MILLISECOND, Micros
from lasthop.message import DEFAULT_PRIORITY, key_time
from lasthop.wire.hop.encoder import Encoder
from lasthop.wire.hop.frames import Headers, MessageFrame, Operation
from lasthop.wire.hop.mapping import Mapping

OVERHEAD = 64
"""Bytes in a frame for the fields before headers and body, and for the lengths of the headers."""

LONG_NUMBER = (1 << 28) - 1
"""A sequence number that takes four bytes on the wire: a device reaches longer numbers only after
years of sending."""


class Outgoing(msgspec.Struct, gc=False, eq=False):
    """One message on its way to the gateway."""

    frame: MessageFrame
    """The message's frame, complete except for the number."""
    size: int
    """An upper bound of the frame's size in bytes."""
    number: int = -1
    lane: int = 0
    """The lane that its number belongs to."""
    stored: bool = False
    light: MessageFrame | None = None
    """The frame without its body, if the body is sent ahead in pieces."""
    held: bool = False
    """Whether the message waits until the gateway has its body; a message that waits gets no
    number, but keeps a number that it has."""
    sent: bool = False
    """Whether the message has left over the channel that is open now."""
    taken: bool = False
    casual: bool = False
    """Whether the message is best effort: it has no number, and is not acknowledged."""
    channel: int = 0
    """The channel that was chosen for the message; 0 if none was."""

    @property
    def key(self) -> int:
        """The key by which this device knows the message."""
        return self.frame.key or 0

    @property
    def travels(self) -> MessageFrame:
        """The frame as it is sent, but without its number."""
        return self.light or self.frame

    @property
    def goes_ahead(self) -> bool:
        """Whether the message's body is sent ahead in pieces."""
        return self.light is not None

    @property
    def deadline(self) -> Micros | None:
        """The time after which the message is not delivered any more; None if it has no
        deadline."""
        within = None if self.frame.headers is None else self.frame.headers.deliver_within
        return None if within is None else key_time(self.key) + within * MILLISECOND

    @property
    def tolerance(self) -> Micros | None:
        """How long the message may wait for a better link or moment; None if the message does not
        say."""
        delay = None if self.frame.headers is None else self.frame.headers.tolerance
        return None if delay is None else delay * MILLISECOND

    @property
    def asks(self) -> bool:
        """Whether the message is a request, whose sender waits for an answer."""
        return self.frame.headers is not None and self.frame.headers.reply_within is not None

    @property
    def queue(self) -> str | None:
        """The queue whose preferences apply to the message; None if it names none."""
        return None if self.frame.headers is None else self.frame.headers.queue


def ordinary(frame: MessageFrame) -> bool:
    """Whether the frame is a message for another receiver, and not for the gateway itself."""
    operation = Operation.DATA if frame.headers is None else frame.headers.operation
    return operation in (Operation.DATA, Operation.REPLY)


def priority_of(frame: MessageFrame) -> int:
    """Return the priority of a message, 0 to 9."""
    return DEFAULT_PRIORITY if frame.headers is None else frame.headers.priority


def light_size(item: Outgoing) -> int:
    """Return the bytes that a message takes on a link without its body, with all fields written
    out."""
    frame, head = item.frame, bytearray()
    number = None if item.casual else LONG_NUMBER
    Encoder(Mapping.UNORDERED).encode_message(head, number, frame.key, frame.topic, frame.headers)
    return len(head)


def frame_size(frame: MessageFrame) -> int:
    """Return an upper bound of the bytes that a message takes on the wire."""
    size = OVERHEAD + len(frame.body)
    if frame.topic is not None:
        size += len(frame.topic.encode())
    if frame.headers is not None:
        size += _headers_size(frame.headers)
    return size


def _headers_size(headers: Headers) -> int:
    texts = [headers.content_type, headers.title, headers.source, headers.to, headers.queue]
    texts += [text for pair in headers.extra for text in pair]
    # Each text has a tag and a length; the other headers together are below a hundred bytes.
    return 100 + sum(4 + len(text.encode()) for text in texts if text is not None)
