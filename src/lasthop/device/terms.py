"""Who this device is, and how much it takes on."""

from __future__ import annotations

import msgspec

from lasthop.wire.hop.frames import DEFAULT_MAX_FRAME, Credit


class DeviceTerms(msgspec.Struct, frozen=True, kw_only=True):
    """What a device says of itself in every HELLO, and its limits. Each number says why."""

    app: str
    name: str
    token: str | None = None
    accept: tuple[str, ...] = ()
    """Content types that the application understands, its favourite first."""

    window: Credit = Credit(2048, 2 << 20)
    """What the gateway may have on the way to us: one commit's worth on a fast link. Numbers more
    than 4096 ahead would be taken for nonsense."""

    prefetch: int = 256
    """Messages that a handler may be offered before it is done with the first of them; after a
    crash so many at most come again as redelivered without having been seen."""

    inbox_messages: int = 10_000
    inbox_bytes: int = 64 << 20
    """Of messages that the application has not dealt with. When the next window might not fit, the
    gateway is asked to pause."""

    outbox_messages: int = 10_000
    outbox_bytes: int = 64 << 20
    """Of messages that the gateway has not taken. Beyond it `send` refuses."""

    keys: int = 65_536
    """At least so many keys of past messages, at most twice as many, are remembered, so that a
    message is recognised when a new epoch gives it another number. A gateway that was restored from
    a copy older than that many messages may repeat some; in memory a key takes 60 bytes."""

    storage: int | None = None
    """Unread messages of one ranked topic that the device keeps; None: as many as the gateway sees
    fit to send ahead. The gateway takes the worst back when there are more."""

    preserve: int | None = None
    """Seconds that the gateway shall keep the session of an absent device; None: its own rule."""

    max_frame: int = DEFAULT_MAX_FRAME

    segment: int = 16 << 10
    """Bytes of a body above which it goes ahead of its message in pieces."""

    max_body: int = 64 << 20
    """Bytes of a body that we take in pieces: it is in memory when the application gets it."""

    stream_window: int = 256 << 10
    """Bytes of a stream that are kept here: what came and the application has not read, or what it
    wrote and the gateway has not taken."""
