"""Xebu: XML messages of a session to their compact form and back."""

from __future__ import annotations

from lasthop.errors import InvalidRequest
from lasthop.runtime.formats.format import Decoded, Encoded, Format, Wanted
from lasthop.wire.xas.typed import typed_sequence
from lasthop.wire.xas.xmlparse import parse_xml
from lasthop.wire.xas.xmlserialize import serialize_xml
from lasthop.wire.xebu.decoder import Decoder
from lasthop.wire.xebu.encoder import Encoder
from lasthop.wire.xebu.snapshot import restore_decoder, restore_encoder, save_decoder, save_encoder
from lasthop.wire.xebu.tokens import Mode

TYPES = {mode.name.lower(): mode for mode in (Mode.DATA, Mode.ITEM, Mode.NONE)}
VERSION = "1"


def _encode(text: bytes, wanted: Wanted) -> Encoded:
    mode = None if wanted.type is None else TYPES[wanted.type]
    if wanted.state is None:
        encoder = Encoder(mode or Mode.DATA)
    else:
        encoder = restore_encoder(wanted.state)
    if mode is not None and encoder.mode is not mode:
        raise InvalidRequest("the session has another type", type=encoder.mode.name.lower())
    octets = encoder.encode(typed_sequence(parse_xml(text)))
    return Encoded(octets, encoder.mode.name.lower(), save_encoder(encoder))


def _decode(octets: bytes, wanted: Wanted) -> Decoded:
    decoder = Decoder() if wanted.state is None else restore_decoder(wanted.state)
    events = decoder.decode(octets)
    text = serialize_xml(events)
    facts = {"events": len(events), "message": decoder.messages, "text": text.decode()}
    # The first octet has said which strings get tokens, or there would be no events.
    mode = Mode(octets[0] & 0xF0).name.lower()
    return Decoded(text + b"\n", mode, facts, save_decoder(decoder))


FORMAT = Format(
    about="XML messages of a session, with tokens for what repeats",
    types=tuple(TYPES),
    versions=(VERSION,),
    encode=_encode,
    decode=_decode,
    stateful=True,
)
