"""What the REST door allows. Each number says whom it protects."""

from __future__ import annotations

from dataclasses import dataclass, field

from lasthop.access.quota import Rate


@dataclass(frozen=True, slots=True, kw_only=True)
class RestSettings:
    """The door's limits; all of them can be set."""

    open_house: bool = False
    """Serve this machine's processes without a credential, with every right, in any app. For
    trying things out; other machines need a credential all the same."""
    max_body: int = 16 << 20
    """Bytes of a request: a batch of 500 messages of 32 kB, or 15 of the largest."""
    max_held: int = 256 << 20
    """Bytes of all requests that are being read or not yet durable: what publishers can make the
    gateway's memory hold, whatever their number."""
    max_messages: int = 500
    """Messages of a request. They are accepted together, and nobody else is served meanwhile: a
    plain one takes 10 microseconds, one with all headers 40. A larger batch gains nothing."""
    max_message: int = 1 << 20
    """Bytes of a message with its title, content type and headers. The same as the core's limit
    for bodies, so that it fits into one frame on the last hop."""
    max_wait: int = 300
    """Seconds that a request may wait for something to happen. Proxies cut longer ones off."""
    max_waiting: int = 1000
    """Requests that wait at once: each holds a connection and, at every change of its message,
    costs a read."""
    max_listed: int = 1000
    """Deliveries or devices in one answer; the rest is asked for page by page."""
    messages: Rate = field(default_factory=lambda: Rate(50_000, 250_000))
    """Per credential. About what one gateway makes durable in a second, and five seconds of it at
    once: a publisher that runs wild delays the others by no more than that."""
    bytes: Rate = field(default_factory=lambda: Rate(64 << 20, 256 << 20))
    """Per credential; the same thought, in bytes of requests."""
    pap: str = "/pap"
    """Where PAP is spoken, for whoever speaks it elsewhere; empty: nowhere."""
    traced: bool = False
    """Whether a message belongs to the trace that its request names."""
