"""The identity of a device, and its limits."""

from __future__ import annotations

import msgspec

from lasthop.wire.hop.frames import DEFAULT_MAX_FRAME, Credit


class DeviceTerms(msgspec.Struct, frozen=True, kw_only=True):
    """The identity that a device states in every HELLO, and its limits. Each number says why."""

    app: str
    name: str
    token: str | None = None
    accept: tuple[str, ...] = ()
    """Content types that the application understands, its favourite first."""

    window: Credit = Credit(2048, 2 << 20)
    """What the gateway may have on the way to this device: one commit's worth on a fast link. A
    number more than 4096 ahead would be taken for a fault."""

    prefetch: int = 256
    """Messages that a handler may be offered before it is done with the first of them; after a
    crash at most so many come again as redelivered without having been seen."""

    inbox_messages: int = 10_000
    inbox_bytes: int = 64 << 20
    """Limits, in messages and bytes, of the messages that the application is not done with. When
    the next window might not fit, the gateway is asked to pause."""

    outbox_messages: int = 10_000
    outbox_bytes: int = 64 << 20
    """Limits, in messages and bytes, of the messages that the gateway has not acknowledged. Above
    them `send` raises Overloaded."""

    keys: int = 65_536
    """Keys of past messages that are remembered (at least so many, at most twice as many), so that
    a message is recognised when a new epoch gives it another number. A gateway that was restored
    from a copy older than that many messages may repeat some; in memory a key takes 60 bytes."""

    storage: int | None = None
    """Unread messages of one ranked topic that the device keeps; None: as many as the gateway sends
    ahead. The gateway takes the lowest ranked ones back if there are more."""

    preserve: int | None = None
    """Seconds that the gateway shall keep the session of an absent device; None: the gateway's own
    rule."""

    max_frame: int = DEFAULT_MAX_FRAME

    segment: int = 16 << 10
    """Bytes of a body above which it is sent ahead of its message, in pieces."""

    max_body: int = 64 << 20
    """Most bytes of a body that comes in pieces: the body is in memory when the application gets
    it."""

    stream_window: int = 256 << 10
    """Bytes of a stream that the device keeps: those that came and the application has not read, or
    those that it wrote and the gateway has not acknowledged."""
