"""The limits of one gateway: how much it accepts, holds in memory and keeps under way."""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec

from lasthop.clock import DAY, HOUR, SECOND, Micros

OF_DEVICES = "device:"
"""How the source of a message from a device begins."""


class HistoryBounds(msgspec.Struct, frozen=True, kw_only=True):
    """How much a topic remembers. A zero anywhere means nothing."""

    age: Micros = 12 * HOUR
    messages: int = 1000
    bytes: int = 16 << 20

    @property
    def off(self) -> bool:
        """Whether a topic with these bounds remembers nothing."""
        return not (self.age and self.messages and self.bytes)


USUAL_HISTORY = HistoryBounds()


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The limits of one gateway. The description of each limit says what it protects."""

    body: int = 1 << 20
    """The largest body of a message in bytes, for an app whose behaviour sets no other limit."""
    largest_body: int = 16 << 20
    """The largest body in bytes that an app's behaviour can allow: a body is in memory as a whole
    when it is accepted and when the application gets it. Larger data has to be a stream."""
    segment: int = 16 << 10
    """The size of a body in bytes above which the body goes ahead of its message in pieces, so that
    more urgent messages can overtake it."""
    uploads: int = 16
    uploads_per_device: int = 4
    """The largest number of bodies that devices send in pieces at the same time, in all and per
    device; the bodies are in memory while they grow. Further uploads wait for their turn."""
    stream_window: int = 256 << 10
    """The largest number of bytes of one stream that the gateway holds; the sender waits until the
    receiver has taken some. A window of more than a quarter of a second at a megabyte a second
    gains nothing."""
    streams: int = 1024
    """The largest number of streams that are open at a time: with `stream_window` they take at most
    256 MiB of memory."""
    streams_per_device: int = 16
    stream_patience: Micros = 7 * DAY
    """Microseconds that a stream may stand still before the gateway gives it up."""
    open_per_device: int = 100_000
    """The largest number of open deliveries of one device: a device that never comes back must not
    fill the store."""
    publishers_percent: int = 10
    """Percent of a mailbox or a queue that devices may not fill with what they send: otherwise one
    device could keep publishers from reaching others."""
    kept: int = field(init=False)
    """Open deliveries of one device for which messages of devices have no room."""
    resident: int = 256 << 20
    """The largest number of bytes of bodies kept in memory; beyond this the oldest bodies stay in
    the store only, until they are to be sent."""
    context: int = 16 << 10
    """The largest context report of a device in bytes: it is kept in memory with the device."""
    subscriptions_per_device: int = 1000
    memberships_per_device: int = 1000
    """The largest number of groups and queues that one device belongs to: they are stored in its
    record."""
    bound_members: int = 1000
    """The largest number of members of an atomic or claimable message: one commit decides for all
    of them."""
    claim_patience: Micros = 7 * DAY
    """Microseconds for which a message without `deliver_before` can be claimed."""
    queue_length: int = 100_000
    """The largest number of messages that wait in one queue: if no consumer comes, they must not
    fill the store."""
    retained: int = 10_000
    """The largest number of messages of one ranked topic that wait for one device; beyond this
    those with the lowest rank are dropped, whatever the subscription asks for."""
    history: HistoryBounds = USUAL_HISTORY
    """How much each topic remembers, unless it or its app has bounds of its own."""
    remembered: int = 500_000
    """The largest number of messages that all topics together remember. Each takes some 250 bytes
    of memory; the bodies are in the store."""
    fanout_batch: int = 500
    """The largest number of deliveries of one message that begin in one commit: a large topic must
    not hold up the commit of everyone else."""
    large_commit: int = 100
    """The number of events from which on a commit is handed to the writer while another one is
    being written. A smaller commit gains more by waiting for further changes."""
    window_messages: int = 1024
    window_bytes: int = 4 << 20
    """The credit of a device: messages and bytes that it may send before the gateway has made them
    durable."""
    flight_messages: int = 4096
    flight_bytes: int = 4 << 20
    """Messages and bytes under way to one device, however large a window the device names. Every
    round trip costs a commit, so the number of messages bounds what one device can take in a
    second; the bytes bound what a slow link keeps waiting in buffers, where it can no longer
    expire."""
    carried_per_device: int = 128
    """The largest number of deliveries of one device that are with carriers at a time. Each round
    costs a commit, and what a carrier has can no longer be taken back."""
    carried_attempts: int = 3
    """The largest number of attempts to send an unconfirmed message over the air: the client may
    show each of them."""
    carried_patience: Micros = DAY
    """Microseconds for which the gateway keeps trying to reach a device over the air, if the
    publisher sets no `deliver_before`."""
    max_frame: int = (1 << 20) + 1024
    preserve: Micros = 7 * DAY
    heartbeat: Micros = 270 * SECOND
    """Microseconds between heartbeats for a device that asks for no other interval: less than the
    five minutes after which many networks forget an idle connection."""
    longest_heartbeat: Micros = 3600 * SECOND
    """Microseconds between heartbeats that a device may ask for at most. A device that is gone
    counts as in contact for two and a half times its interval."""

    def __post_init__(self) -> None:
        kept = self.open_per_device * self.publishers_percent // 100
        object.__setattr__(self, "kept", kept)

    def room(self, waiting: int, source: str) -> int:
        """Return how many more messages of a source a mailbox takes in which so many wait."""
        room = self.open_per_device - waiting
        return room - self.kept if source.startswith(OF_DEVICES) else room

    def queue_room(self, source: str) -> int:
        """Return how many messages may wait in a queue when it takes one more of this source."""
        kept = self.queue_length * self.publishers_percent // 100
        return self.queue_length - kept if source.startswith(OF_DEVICES) else self.queue_length
