"""The hop protocol over BEEP: a channel of the hop protocol is a BEEP channel, a unit is a message.

Each side sends its units as MSG without MIME headers, and answers each MSG of the peer with an
empty RPY. BEEP keeps order and boundaries, so the mapping is that of datagrams
(docs/hop-protocol.md, "BEEP").
"""

from __future__ import annotations

from lasthop.wire.beep.channel import BeepMessage
from lasthop.wire.beep.frames import BeepKind
from lasthop.wire.beep.session import BeepSession, entity

PROFILE = "http://iana.org/beep/TRANSIENT/lasthop/hop"

NO_HEADERS = b"\r\n"

OVERHEAD = 1024 + 4
"""Octets by which a message may be longer than the unit in it."""


def send(session: BeepSession, channel: int, unit: bytes) -> None:
    """Send a unit as a message on a channel."""
    session.message(channel, NO_HEADERS + unit)


def hear(session: BeepSession, message: BeepMessage) -> bytes | None:
    """Return the unit in a message and answer the message at once; None when the message is a
    reply."""
    if message.kind is not BeepKind.MSG:
        return None
    session.reply(message.channel, message.number, NO_HEADERS)
    return entity(message.payload)[1]
