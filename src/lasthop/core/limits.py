"""What one gateway takes on."""

from __future__ import annotations

from dataclasses import dataclass

from lasthop.clock import DAY, SECOND, Micros


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one gateway takes on. Each number says who it protects."""

    body: int = 1 << 20
    """Bytes of a message, for an app whose behaviour does not say otherwise."""
    largest_body: int = 16 << 20
    """What an app's behaviour may allow: a body is in memory as a whole when it is accepted and
    when the application gets it. What is larger is a stream."""
    segment: int = 16 << 10
    """Bytes of a body above which it goes ahead of its message in pieces, so that what is more
    urgent can overtake it."""
    uploads: int = 16
    uploads_per_device: int = 4
    """Bodies that come in from devices at a time; they are in memory while they grow. Others wait
    for their turn."""
    stream_window: int = 256 << 10
    """Bytes of one stream that the gateway holds; the sender waits until the receiver has taken
    some. More than a quarter of a second at a megabyte a second gains nothing."""
    streams: int = 1024
    """Open at a time: with the window 256 MiB of memory at most."""
    streams_per_device: int = 16
    stream_patience: Micros = 7 * DAY
    """How long a stream may stand still before it is given up."""
    open_per_device: int = 100_000
    """A device that never comes back must not fill the store."""
    resident: int = 256 << 20
    """Bytes of bodies kept in memory; beyond it the oldest stay in the store only, until their
    turn comes."""
    context: int = 16 << 10
    """Bytes of a device's context report: it is kept in memory with the device."""
    subscriptions_per_device: int = 1000
    memberships_per_device: int = 1000
    """Groups and queues."""
    bound_members: int = 1000
    """Of an atomic or claimable message: they are decided about in one commit."""
    claim_patience: Micros = 7 * DAY
    """How long a message can be claimed that has no deliver_before."""
    queue_length: int = 100_000
    """Messages that wait in one queue: consumers that never come must not fill the store."""
    retained: int = 10_000
    """Messages of one ranked topic that wait for one device; beyond it the worst go, whatever a
    subscription asks for."""
    fanout_batch: int = 500
    """Deliveries of one message in one commit: a large topic must not hold up everyone else's
    commit."""
    large_commit: int = 100
    """Events with which a commit is handed to the writer while another one is being written.
    Smaller ones are worth waiting for more."""
    window_messages: int = 1024
    window_bytes: int = 4 << 20
    """Credit given to a device: what it may send before the gateway has made it durable."""
    flight_messages: int = 4096
    flight_bytes: int = 4 << 20
    """Under way to one device at most, however large a window it names. Every round trip costs a
    commit, so the number bounds what one device can take in a second; the bytes bound what a slow
    link keeps waiting in buffers, where it can no longer expire."""
    carried_per_device: int = 128
    """With carriers at a time. Each round costs a commit; what is with a carrier can no longer be
    taken back."""
    carried_attempts: int = 3
    """For what left over the air and was never confirmed: the client may show every one of
    them."""
    carried_patience: Micros = DAY
    """How long a device is looked for that cannot be reached over the air, where the publisher
    sets no limit."""
    max_frame: int = (1 << 20) + 1024
    preserve: Micros = 7 * DAY
    heartbeat: Micros = 270 * SECOND
    """Below the five minutes after which many networks forget an idle connection; for a device that
    does not know better."""
    longest_heartbeat: Micros = 3600 * SECOND
    """What a device may ask for. One that is gone counts as there for two and a half times that."""
