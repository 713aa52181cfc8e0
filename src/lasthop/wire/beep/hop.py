"""The hop protocol over BEEP: a pipe is a channel, a unit is a message.

Either side sends its units as MSG, without MIME headers, and answers each of the peer's with an
empty RPY. Order and boundaries are BEEP's, so the mapping is that of datagrams.
"""

from __future__ import annotations

from lasthop.wire.beep.channel import BeepMessage
from lasthop.wire.beep.frames import BeepKind
from lasthop.wire.beep.session import BeepSession, entity

PROFILE = "http://iana.org/beep/TRANSIENT/lasthop/hop"

NO_HEADERS = b"\r\n"

OVERHEAD = 1024 + 4
"""Octets that a message may be longer than its unit."""


def send(session: BeepSession, channel: int, unit: bytes) -> None:
    """Say something."""
    session.message(channel, NO_HEADERS + unit)


def hear(session: BeepSession, message: BeepMessage) -> bytes | None:
    """The unit in a message, which is answered at once; `None` when it is itself an answer."""
    if message.kind is not BeepKind.MSG:
        return None
    session.reply(message.channel, message.number, NO_HEADERS)
    return entity(message.payload)[1]
