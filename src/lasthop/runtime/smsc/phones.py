"""The phones of the local SMSC: they put parts together, and show what has come.

The SMSC knows no phone by name: every number has one.
"""

from __future__ import annotations

import msgspec

from lasthop.clock import Micros
from lasthop.errors import LasthopError
from lasthop.wire.smpp.commands import Tag
from lasthop.wire.smpp.smpp_pdus import DataMessage, ShortMessage
from lasthop.wire.smpp.tlvs import tlv_number
from lasthop.wire.sms.alphabets import Alphabet, decode_text
from lasthop.wire.sms.header import Part, Ports, UserHeader
from lasthop.wire.sms.segments import Reassembly, read_segment
from lasthop.wire.wbxml.decoder import decode as decode_wbxml
from lasthop.wire.wbxml.xml_writer import write_xml
from lasthop.wire.wsp.headers import Header
from lasthop.wire.wsp.pdus import Push, decode_unit

_ALPHABETS = {0: Alphabet.GSM, 1: Alphabet.GSM, 3: Alphabet.LATIN, 8: Alphabet.UCS2}
"""The alphabet of each data coding of texts (SMPP 3.4, 5.2.19); others are octets."""


class Shown(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a phone has got: a text for its user, or a push for an application."""

    to: str
    source: str = msgspec.field(name="from", default="")
    text: str = ""
    port: int = 0
    """The port that a push was sent to; 0 for a text."""
    content_type: str = ""
    application: str = ""
    content: str = ""
    """The content of a push as text, with WBXML read; in hexadecimal digits if it is no text."""
    octets: str = ""
    """Octets that are neither a text nor a push, in hexadecimal digits."""


class Phones:
    """All phones that an SMSC can reach."""

    def __init__(self) -> None:
        self._parts = Reassembly()

    def take(self, message: ShortMessage | DataMessage, now: Micros) -> Shown | None:
        """Give a short message to its phone; return what the phone shows, None if parts are
        missing or the message cannot be read."""
        alphabet = _ALPHABETS.get(message.coding, Alphabet.OCTETS)
        try:
            segment = read_segment(message.content, alphabet, headed=message.headed)
        except LasthopError:
            return None
        header = segment.header if message.headed else _from_parameters(message)
        sender = message.source.text, message.destination.text, alphabet
        whole = self._parts.add(sender, header, segment.content, now)
        return None if whole is None else _shown(message, alphabet, header, whole)


def _from_parameters(message: ShortMessage | DataMessage) -> UserHeader:
    """Return the header that a phone gets if the gateway wrote optional parameters instead."""
    tlvs = message.tlvs
    destination = tlv_number(tlvs, Tag.DESTINATION_PORT)
    ports = None
    if destination is not None:
        ports = Ports(destination, tlv_number(tlvs, Tag.SOURCE_PORT) or 0)
    total, number = tlv_number(tlvs, Tag.SAR_TOTAL), tlv_number(tlvs, Tag.SAR_NUMBER)
    if total is None or number is None or not 1 <= number <= total:
        return UserHeader(ports=ports)
    reference = tlv_number(tlvs, Tag.SAR_REFERENCE) or 0
    return UserHeader(Part(reference & 0xFFFF, total, number, wide=True), ports)


def _shown(
    message: ShortMessage | DataMessage, alphabet: Alphabet, header: UserHeader, whole: bytes
) -> Shown:
    to, source = message.destination.text, message.source.text
    try:
        if header.ports is None:
            return Shown(to=to, source=source, text=decode_text(whole, alphabet))
        push = decode_unit(whole)[1]
        if isinstance(push, Push):
            return _pushed(to, source, header.ports.destination, push)
    except LasthopError:
        pass
    port = header.ports.destination if header.ports else 0
    return Shown(to=to, source=source, port=port, octets=whole.hex())


def _pushed(to: str, source: str, port: int, push: Push) -> Shown:
    named = (
        field.value
        for field in push.headers
        if isinstance(field, Header) and field.name.lower() == "x-wap-application-id"
    )
    return Shown(
        to=to,
        source=source,
        port=port,
        content_type=push.content_type,
        application=str(next(named, "")),
        content=_readable(push.data),
    )


def _readable(body: bytes) -> str:
    try:
        return write_xml(decode_wbxml(body))
    except LasthopError:
        pass
    try:
        text = body.decode()
    except UnicodeDecodeError:
        return body.hex()
    return text if text.isprintable() or text.isspace() or "\n" in text else body.hex()
