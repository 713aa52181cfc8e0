"""Parsers and serializers by MIME type (thesis, section 4.3): the table that two ends choose a
common format from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple, Protocol

from lasthop_xml.weft.session import (
    MAX_MESSAGE,
    Level,
    WeftDecoder,
    WeftEncoder,
    level_of,
)
from lasthop_xml.xas.errors import UnknownType
from lasthop_xml.xas.limits import Limits
from lasthop_xml.xas.sequence import EventList, EventSequence
from lasthop_xml.xas.xmlparse import parse_xml
from lasthop_xml.xas.xmlserialize import serialize_xml
from lasthop_xml.xebu.decoder import Decoder
from lasthop_xml.xebu.encoder import Encoder
from lasthop_xml.xebu.tokens import Mode

DENSE_SIZE: Final = 256 << 10
DENSE_EVENTS: Final = 30_000
"""The largest numbers of characters (DENSE_SIZE) and of events to which a message of Weft's level
`max` may expand if it belongs to no session. Decoding takes up to 1.5 microseconds a character and
10 an event at this level, about twenty times as long as in any other form."""


class MessageEncoder(Protocol):
    """The sending side of a session: turns documents into messages, which may refer to earlier
    messages."""

    def encode(self, events: EventSequence, /) -> bytes: ...


class MessageDecoder(Protocol):
    """The receiving side of a session: turns the messages of a `MessageEncoder` into documents."""

    def decode(self, data: bytes, /) -> EventList: ...


class XmlMessages:
    """Encoder and decoder of plain XML, which remembers nothing between messages."""

    __slots__ = ()

    def encode(self, events: EventSequence) -> bytes:
        return serialize_xml(events)

    def decode(self, data: bytes) -> EventList:
        return parse_xml(data)


class Format(NamedTuple):
    """A form that event sequences can be written in. Calling `encoder` or `decoder` begins a
    session."""

    name: str
    encoder: Callable[[], MessageEncoder]
    decoder: Callable[[], MessageDecoder]
    stateful: bool
    """Whether the messages of a session have to arrive exactly once and in order."""


_XML = Format("xml", XmlMessages, XmlMessages, stateful=False)

FORMATS: Final[Mapping[str, Format]] = {
    "text/xml": _XML,
    "application/xml": _XML,
    "application/soap+xml": _XML,
    "application/x-ebu+none": Format("xebu", lambda: Encoder(Mode.NONE), Decoder, stateful=False),
    "application/x-ebu+item": Format("xebu", lambda: Encoder(Mode.ITEM), Decoder, stateful=True),
    "application/x-ebu+data": Format("xebu", Encoder, Decoder, stateful=True),
    "application/x-weft": Format("weft", WeftEncoder, WeftDecoder, stateful=True),
    "application/x-weft+deflate": Format(
        "weft", lambda: WeftEncoder(Level.DEFLATE), WeftDecoder, stateful=True
    ),
    "application/x-weft+max": Format(
        "weft", lambda: WeftEncoder(Level.MAX), WeftDecoder, stateful=True
    ),
}


def format_for(mime_type: str) -> Format:
    """Return the format of a MIME type, whose parameters (such as a charset) are ignored; raise
    UnknownType if no format has it."""
    essence = mime_type.partition(";")[0].strip().lower()
    found = FORMATS.get(essence)
    if found is None:
        raise UnknownType("no format has this MIME type", mime_type=mime_type[:80])
    return found


def decode_alone(mime_type: str, data: bytes, limits: Limits) -> EventList:
    """Return the events of a message that belongs to no session. `limits` also apply to the size
    that the message expands to while it is decoded."""
    form = format_for(mime_type)
    if form is _XML:
        return parse_xml(data, limits=limits)
    most = min(limits.size, MAX_MESSAGE)
    if form.name == "xebu":
        return Decoder(limits=limits, max_message=most).decode(data)
    if level_of(data) is Level.MAX:
        size, events = min(limits.size, DENSE_SIZE), min(limits.events, DENSE_EVENTS)
        limits = limits._replace(size=size, events=events)
    return WeftDecoder(limits=limits, max_message=most).decode(data)
