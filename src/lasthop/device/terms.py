"""The identity of a device, and its limits."""

from __future__ import annotations

import msgspec

from lasthop.wire.hop.frames import DEFAULT_MAX_FRAME, Credit

LANES = False
"""Whether devices offer several lanes unless their terms say otherwise."""


class DeviceTerms(msgspec.Struct, frozen=True, kw_only=True):
    """The identity that a device states in every HELLO, and its limits, each with its reason."""

    app: str
    name: str
    token: str | None = None
    accept: tuple[str, ...] = ()
    """Content types that the application understands, its favourite first."""

    window: Credit = Credit(2048, 2 << 20)
    """The largest number of messages and bytes that the gateway may have on the way to this device:
    on a fast link about as much as one commit stores. It must be at most 4096 messages, since a
    number that is farther ahead is taken for a fault."""

    prefetch: int = 256
    """Messages that a handler may be offered before it is done with the first of them; after a
    crash, at most this number of messages come again marked as redelivered although the application
    has not seen them."""

    inbox_messages: int = 10_000
    inbox_bytes: int = 64 << 20
    """Limits, in messages and bytes, of the messages that the application is not done with. When
    the next window might not fit, the gateway is asked to pause."""

    outbox_messages: int = 10_000
    outbox_bytes: int = 64 << 20
    """Limits, in messages and bytes, of the messages that the gateway has not acknowledged. Above
    them `send` raises Overloaded."""

    keys: int = 65_536
    """The number of keys of past messages that are remembered (at most twice as many), so that a
    message is recognised when a new epoch gives it another number. If a gateway was restored from a
    backup and has sent more messages than this since the backup, it may repeat some; in memory a
    key takes 60 bytes."""

    storage: int | None = None
    """The number of unread messages of one ranked topic that the device keeps; None for as many as
    the gateway sends ahead. If there are more, the gateway takes back those with the lowest
    rank."""

    preserve: int | None = None
    """Seconds that the gateway is asked to keep the session of this device while it is absent; None
    leaves that to the gateway."""

    max_frame: int = DEFAULT_MAX_FRAME

    lanes: bool = LANES
    """Whether to offer the gateway several lanes, so that messages of one queue and priority do not
    wait for those of another."""

    segment: int = 16 << 10
    """The size in bytes above which a body is sent ahead of its message, in pieces."""

    max_body: int = 64 << 20
    """The largest body, in bytes, that may come in pieces: the whole body is in memory when the
    application gets it."""

    stream_window: int = 256 << 10
    """The number of bytes of a stream that the device keeps: of an incoming stream the bytes that
    the application has not read, of an outgoing one the bytes that the gateway has not
    acknowledged."""
