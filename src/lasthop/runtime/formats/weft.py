"""The Weft format: converts the XML messages of a session to octets that contain only what the
other end cannot predict."""

from __future__ import annotations

from lasthop.errors import InvalidRequest
from lasthop.runtime.formats.format import Decoded, Encoded, TextFormat, WantedForm
from lasthop.wire.xml_errors import xml_refusals
from lasthop_xml.weft.profile import Profile
from lasthop_xml.weft.schema import schema_profile
from lasthop_xml.weft.session import Level, WeftDecoder, WeftEncoder
from lasthop_xml.weft.snapshot import (
    restore_decoder,
    restore_encoder,
    save_decoder,
    save_encoder,
    train,
)
from lasthop_xml.xas.typed import typed_sequence
from lasthop_xml.xas.xmlparse import parse_xml
from lasthop_xml.xas.xmlserialize import serialize_xml

LEVELS = {level.name.lower(): level for level in Level}
MESSAGE = "message"
VERSION = "1"


def _profile(wanted: WantedForm) -> Profile | None:
    if wanted.schema is not None and wanted.profile is not None:
        raise InvalidRequest("a session cannot start from both a schema and a profile")
    if wanted.schema is not None:
        return schema_profile(wanted.schema)
    return None if wanted.profile is None else Profile(wanted.profile)


@xml_refusals()
def _encode(text: bytes, wanted: WantedForm) -> Encoded:
    profile = _profile(wanted)
    if wanted.state is None:
        encoder = WeftEncoder(profile=profile)
    else:
        encoder = restore_encoder(wanted.state, profile=profile)
    if wanted.level is not None:
        encoder.level = LEVELS[wanted.level]
    octets = encoder.encode(typed_sequence(parse_xml(text)))
    return Encoded(octets, MESSAGE, save_encoder(encoder))


@xml_refusals()
def _decode(octets: bytes, wanted: WantedForm) -> Decoded:
    profile = _profile(wanted)
    if wanted.state is None:
        decoder = WeftDecoder(profile=profile)
    else:
        decoder = restore_decoder(wanted.state, profile=profile)
    events = decoder.decode(octets)
    text = serialize_xml(events)
    # The decoder has checked the first octet already.
    level = Level(octets[0] & 3).name.lower()
    facts = {
        "level": level,
        "epoch": decoder.epoch,
        "events": len(events),
        "message": decoder.messages,
        "text": text.decode(),
    }
    return Decoded(text + b"\n", MESSAGE, facts, save_decoder(decoder))


@xml_refusals()
def _train(texts: list[bytes]) -> bytes:
    return train(typed_sequence(parse_xml(text)) for text in texts).data


FORMAT = TextFormat(
    about="XML messages of a session, without what the receiver can predict",
    types=(MESSAGE,),
    versions=(VERSION,),
    levels=tuple(LEVELS),
    encode=_encode,
    decode=_decode,
    train=_train,
    stateful=True,
    uses_schema=True,
)
