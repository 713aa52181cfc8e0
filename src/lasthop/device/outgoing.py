"""A message on its way from a device to the gateway, and what it takes."""

from __future__ import annotations

import msgspec

from lasthop.clock import MILLISECOND, Micros
from lasthop.message import DEFAULT_PRIORITY, key_time
from lasthop.wire.hop.encoder import Encoder
from lasthop.wire.hop.frames import Headers, MessageFrame, Operation
from lasthop.wire.hop.mapping import Mapping

OVERHEAD = 64
"""Room in a frame for what comes before the headers and the body, and the headers' own lengths."""

LONG_NUMBER = (1 << 28) - 1
"""In four bytes, which is what a number takes at most before a device has sent for years."""


class Outgoing(msgspec.Struct, gc=False, eq=False):
    """One message on its way to the gateway."""

    frame: MessageFrame
    """As it is sent, but for the number."""
    size: int
    """Of the frame, no less."""
    number: int = -1
    stored: bool = False
    light: MessageFrame | None = None
    """As it travels if something of it goes ahead."""
    held: bool = False
    """It does not leave before that is there, and has no number unless it had one before."""
    sent: bool = False
    """Over the channel that is open now."""
    taken: bool = False
    casual: bool = False
    """Best effort: it has no number, and nobody acknowledges it."""
    channel: int = 0
    """The one that was chosen for it, where a choice was made."""

    @property
    def key(self) -> int:
        """By which this device knows it."""
        return self.frame.key or 0

    @property
    def travels(self) -> MessageFrame:
        """What of it leaves in its own frame, but for the number."""
        return self.light or self.frame

    @property
    def goes_ahead(self) -> bool:
        """Whether something of it goes ahead."""
        return self.light is not None

    @property
    def deadline(self) -> Micros | None:
        """When nobody shall get it any more."""
        within = None if self.frame.headers is None else self.frame.headers.deliver_within
        return None if within is None else key_time(self.key) + within * MILLISECOND

    @property
    def tolerance(self) -> Micros | None:
        """How long it may wait for a better link or moment, if it says so itself."""
        delay = None if self.frame.headers is None else self.frame.headers.tolerance
        return None if delay is None else delay * MILLISECOND

    @property
    def asks(self) -> bool:
        """Whether somebody waits for an answer to it."""
        return self.frame.headers is not None and self.frame.headers.reply_within is not None

    @property
    def queue(self) -> str | None:
        """Whose terms hold for it."""
        return None if self.frame.headers is None else self.frame.headers.queue


def ordinary(frame: MessageFrame) -> bool:
    """Whether it is a message for others, which has a lane; anything else is for the gateway."""
    operation = Operation.DATA if frame.headers is None else frame.headers.operation
    return operation in (Operation.DATA, Operation.REPLY)


def priority_of(frame: MessageFrame) -> int:
    """How urgent it is."""
    return DEFAULT_PRIORITY if frame.headers is None else frame.headers.priority


def light_size(item: Outgoing) -> int:
    """Bytes that a message takes on a link without its body, where nothing goes without saying."""
    frame, head = item.frame, bytearray()
    number = None if item.casual else LONG_NUMBER
    Encoder(Mapping.UNORDERED).encode_message(head, number, frame.key, frame.topic, frame.headers)
    return len(head)


def frame_size(frame: MessageFrame) -> int:
    """An upper bound of what a message takes on the wire."""
    size = OVERHEAD + len(frame.body)
    if frame.topic is not None:
        size += len(frame.topic.encode())
    if frame.headers is not None:
        size += _headers_size(frame.headers)
    return size


def _headers_size(headers: Headers) -> int:
    texts = [headers.content_type, headers.title, headers.source, headers.to, headers.queue]
    texts += [text for pair in headers.extra for text in pair]
    # A tag, a length and the text; the other headers together are below a hundred bytes.
    return 100 + sum(4 + len(text.encode()) for text in texts if text is not None)
