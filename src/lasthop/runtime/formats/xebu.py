"""The Xebu format: converts the XML messages of a session to their compact form and back."""

from __future__ import annotations

from lasthop.errors import InvalidRequest
from lasthop.runtime.formats.format import Decoded, Encoded, TextFormat, WantedForm
from lasthop.wire.xml_errors import xml_refusals
from lasthop_xml.xas.sequence import EventSequence
from lasthop_xml.xas.typed import typed_sequence
from lasthop_xml.xas.xmlparse import parse_xml
from lasthop_xml.xas.xmlserialize import serialize_xml
from lasthop_xml.xebu.decoder import Decoder
from lasthop_xml.xebu.encoder import Encoder
from lasthop_xml.xebu.layout import OMISSION
from lasthop_xml.xebu.omission.decoder import SchemaDecoder
from lasthop_xml.xebu.omission.encoder import SchemaEncoder
from lasthop_xml.xebu.omission.knowledge import Knowledge
from lasthop_xml.xebu.omission.typing import typed_by_schema
from lasthop_xml.xebu.snapshot import restore_decoder, restore_encoder, save_decoder, save_encoder
from lasthop_xml.xebu.tokens import Mode

TYPES = {mode.name.lower(): mode for mode in (Mode.DATA, Mode.ITEM, Mode.NONE)}
VERSION = "1"


def _knowledge(wanted: WantedForm) -> Knowledge | None:
    return None if wanted.schema is None else Knowledge(wanted.schema)


def _encoder(wanted: WantedForm, knowledge: Knowledge | None) -> Encoder:
    mode = None if wanted.type is None else TYPES[wanted.type]
    if wanted.state is not None:
        encoder = restore_encoder(wanted.state, knowledge=knowledge)
    elif knowledge is not None:
        encoder = SchemaEncoder(knowledge, mode or Mode.DATA)
    else:
        encoder = Encoder(mode or Mode.DATA)
    if mode is not None and encoder.mode is not mode:
        raise InvalidRequest(
            "the type differs from the type of the session", type=encoder.mode.name.lower()
        )
    return encoder


@xml_refusals()
def _encode(text: bytes, wanted: WantedForm) -> Encoded:
    knowledge = _knowledge(wanted)
    encoder = _encoder(wanted, knowledge)
    events: EventSequence = typed_sequence(parse_xml(text))
    if knowledge is not None:
        events = typed_by_schema(events, knowledge.automaton)
    octets = encoder.encode(events)
    return Encoded(octets, encoder.mode.name.lower(), save_encoder(encoder))


def _decoder(wanted: WantedForm) -> Decoder:
    knowledge = _knowledge(wanted)
    if wanted.state is not None:
        return restore_decoder(wanted.state, knowledge=knowledge)
    return Decoder() if knowledge is None else SchemaDecoder(knowledge)


@xml_refusals()
def _decode(octets: bytes, wanted: WantedForm) -> Decoded:
    if wanted.schema is None and octets and octets[0] & OMISSION:
        raise InvalidRequest("the message leaves out what a schema foresees; give the schema")
    decoder = _decoder(wanted)
    events = decoder.decode(octets)
    text = serialize_xml(events)
    facts = {"events": len(events), "message": decoder.messages, "text": text.decode()}
    # The decoder has checked the first octet already; it says which strings get tokens.
    mode = Mode(octets[0] & 0xF0 & ~OMISSION).name.lower()
    return Decoded(text + b"\n", mode, facts, save_decoder(decoder))


FORMAT = TextFormat(
    about="XML messages of a session, with tokens for what repeats",
    types=tuple(TYPES),
    versions=(VERSION,),
    encode=_encode,
    decode=_decode,
    stateful=True,
    uses_schema=True,
)
