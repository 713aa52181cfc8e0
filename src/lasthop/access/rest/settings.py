"""The limits of the REST door, each with an explanation of what it protects."""

from __future__ import annotations

from dataclasses import dataclass, field

from lasthop.core.quota import Rate


@dataclass(frozen=True, slots=True, kw_only=True)
class RestSettings:
    """The limits of the REST door; all of them can be set."""

    open_house: bool = False
    """Whether processes on this machine are served without a credential, with every right, in any
    app. For trying things out; other machines still need a credential."""
    max_body: int = 16 << 20
    """The largest request, in bytes: a batch of 500 messages of 32 kB, or 15 of the largest."""
    max_held: int = 256 << 20
    """The largest number of bytes, in all requests together, that are being read or are not yet
    durable: this limits the memory that publishers can use, however many there are."""
    max_messages: int = 500
    """The largest number of messages in a request. They are accepted together, and nobody else is
    served meanwhile: a plain message takes 10 microseconds, one with all headers 40. A larger batch
    gains nothing."""
    max_message: int = 1 << 20
    """The largest message, in bytes, with its title, content type and headers. The same as the
    core's limit for bodies, so that it fits into one frame on the last hop."""
    max_wait: int = 300
    """The longest time that a request may wait for a delivery or answer, in seconds. Proxies cut
    longer requests off."""
    max_waiting: int = 1000
    """The largest number of requests that wait at a time: each of them holds a connection and, at
    every change of its message, costs a read of the store."""
    max_listed: int = 1000
    """The largest number of deliveries or devices in one answer; clients ask for the rest page by
    page."""
    messages: Rate = field(default_factory=lambda: Rate(50_000, 250_000))
    """The rate of messages per credential: about what one gateway makes durable in a second, and
    five seconds of it at once. A publisher that sends too much delays the others by no more than
    that."""
    bytes: Rate = field(default_factory=lambda: Rate(64 << 20, 256 << 20))
    """The rate of bytes of requests per credential, chosen like the rate of messages."""
    pap: str = "/pap"
    """The path of the PAP door, named in errors to clients that send PAP elsewhere; empty if PAP is
    off."""
    traced: bool = False
    """Whether a message becomes part of the trace that its request names."""
