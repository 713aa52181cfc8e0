"""Our codecs, as functions from all documents of a connection to all its messages.

Every message is decoded again at once: a codec that loses information is an error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

from bench.data.xml_events.generate import messages
from lasthop_xml.relaxng.schema import read_schema
from lasthop_xml.weft.engines import BEST, Engine
from lasthop_xml.weft.profile import Profile
from lasthop_xml.weft.runs import RunSequence
from lasthop_xml.weft.schema import schema_profile
from lasthop_xml.weft.session import Level, WeftDecoder, WeftEncoder
from lasthop_xml.weft.snapshot import train
from lasthop_xml.weft.split import Splitter
from lasthop_xml.xas.limits import DEFAULT_LIMITS
from lasthop_xml.xas.sequence import EventList
from lasthop_xml.xas.typed import typed_sequence
from lasthop_xml.xas.xmlparse import parse_xml
from lasthop_xml.xebu.decoder import Decoder
from lasthop_xml.xebu.encoder import Encoder
from lasthop_xml.xebu.omission.decoder import SchemaDecoder
from lasthop_xml.xebu.omission.encoder import SchemaEncoder
from lasthop_xml.xebu.omission.knowledge import Knowledge

Messages: TypeAlias = list[bytes]
Sender: TypeAlias = Callable[[Sequence[bytes]], Messages]

SCHEMA = Path(__file__).parents[1] / "data" / "xml_events" / "event.rnc"
TRAINING_SEED = 2
TRAINING_MESSAGES = 698
"""The number of messages that profiles and dictionaries are trained on: other messages than the
sample, from the same generator. As many as the event messages that Xebu was first measured with."""


def typed(document: bytes) -> EventList:
    """Parse a document into typed events, from which a typed codec starts."""
    return EventList(typed_sequence(parse_xml(document)))


def _sent(encoder: Any, decoder: Any, sequences: Iterable[EventList]) -> Messages:
    """Encode all messages of one connection, and check that each is decoded unchanged."""
    sent: Messages = []
    for events in sequences:
        sent.append(encoder.encode(events))
        if decoder.decode(sent[-1]) != events:
            raise AssertionError("a message was not decoded unchanged")
    return sent


def xebu(events: Callable[[bytes], EventList] = typed, **options: Any) -> Sender:
    return lambda documents: _sent(Encoder(**options), Decoder(), map(events, documents))


@cache
def knowledge() -> Knowledge:
    """Return what the schema of the sample tells both ends. Other documents pass, but save
    nothing."""
    return Knowledge(read_schema(SCHEMA.read_bytes()))


def xebu_with_schema(events: Callable[[bytes], EventList] = typed, **options: Any) -> Sender:
    return lambda documents: _sent(
        SchemaEncoder(knowledge(), **options), SchemaDecoder(knowledge()), map(events, documents)
    )


def nothing() -> None:
    """Return None: the session has neither a schema nor a profile."""


@cache
def schema() -> Profile:
    """Return the schema of the sample as a profile of Weft."""
    return schema_profile(read_schema(SCHEMA.read_bytes()))


@cache
def profile() -> Profile:
    """Return what a session has learned from messages that are not measured."""
    return train(map(typed, messages(TRAINING_SEED, TRAINING_MESSAGES)))


def weft(
    level: Level, known: Callable[[], Profile | None] = nothing, *, forgetful: bool = False
) -> Sender:
    return lambda documents: _sent(
        WeftEncoder(level, profile=known(), forgetful=forgetful),
        WeftDecoder(profile=known()),
        map(typed, documents),
    )


def weft_writer(
    level: Level, known: Callable[[], Profile | None] = nothing, engine: Engine = BEST
) -> Callable[[], Callable[[RunSequence], bytes]]:
    """Return a function that starts a session which encodes runs."""
    return lambda: WeftEncoder(level, profile=known(), engine=engine).encode_runs


def weft_reader(
    known: Callable[[], Profile | None] = nothing, engine: Engine = BEST
) -> Callable[[], Callable[[bytes], RunSequence]]:
    """Return a function that starts a session which decodes runs."""
    return lambda: WeftDecoder(profile=known(), engine=engine).decode_runs


def in_runs(documents: Sequence[bytes]) -> list[RunSequence]:
    """Return documents as runs, as a producer that works on runs has them."""
    splitter = Splitter(DEFAULT_LIMITS)
    return [splitter.split(typed(each)) for each in documents]
