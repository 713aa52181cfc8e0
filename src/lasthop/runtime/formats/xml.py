"""The XML format: reads a document, with all limits of the gateway, and writes it unchanged or in
canonical form."""

from __future__ import annotations

from lasthop.runtime.formats.format import Decoded, Encoded, TextFormat, WantedForm
from lasthop.wire.xml_errors import xml_refusals
from lasthop_xml.xas.canonical import canonical
from lasthop_xml.xas.sequence import EventList
from lasthop_xml.xas.xmlparse import parse_xml
from lasthop_xml.xas.xmlserialize import serialize_xml

PLAIN, CANONICAL = "plain", "canonical"
VERSION = "1.0"


def _written(events: EventList, kind: str) -> bytes:
    return canonical(events) if kind == CANONICAL else serialize_xml(events)


@xml_refusals()
def _encode(text: bytes, wanted: WantedForm) -> Encoded:
    kind = wanted.type or PLAIN
    return Encoded(_written(parse_xml(text), kind), kind)


@xml_refusals()
def _decode(octets: bytes, wanted: WantedForm) -> Decoded:
    kind = wanted.type or PLAIN
    events = parse_xml(octets)
    text = _written(events, kind)
    return Decoded(text + b"\n", kind, {"events": len(events), "text": text.decode()})


FORMAT = TextFormat(
    about="any XML document, read and written again",
    types=(PLAIN, CANONICAL),
    versions=(VERSION,),
    encode=_encode,
    decode=_decode,
)
