"""Everyone who can send the messages, in one visible table each for sizes and for times.

To add a codec, add a line: a function from all documents to all messages, or the two jobs to time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias
from xml.etree import ElementTree

from lxml import etree

from lasthop.wire.relaxng.schema import read_schema
from lasthop.wire.xas.sequence import EventList
from lasthop.wire.xas.typed import typed_sequence
from lasthop.wire.xas.xmlparse import parse_xml
from lasthop.wire.xas.xmlserialize import serialize_xml
from lasthop.wire.xebu.decoder import Decoder
from lasthop.wire.xebu.encoder import Encoder
from lasthop.wire.xebu.omission.decoder import SchemaDecoder
from lasthop.wire.xebu.omission.encoder import SchemaEncoder
from lasthop.wire.xebu.omission.knowledge import Knowledge
from lasthop.wire.xebu.policies import Split
from lasthop.wire.xebu.tokens import Mode

Messages: TypeAlias = list[bytes]

SCHEMA = Path(__file__).parents[1] / "data" / "xml_events" / "event.rnc"


def typed(document: bytes) -> EventList:
    """What a codec that knows types starts from."""
    return EventList(typed_sequence(parse_xml(document)))


def _xebu(
    encoder: Encoder, sequences: Iterable[EventList], decoder: Decoder | None = None
) -> Messages:
    """All messages of one connection, once they were seen to come back."""
    decoder = decoder or Decoder()
    messages = []
    for events in sequences:
        messages.append(encoder.encode(events))
        if decoder.decode(messages[-1]) != events:
            raise AssertionError("a message did not come back")
    return messages


def _with(**options: Any) -> Callable[[Sequence[bytes]], Messages]:
    return lambda documents: _xebu(Encoder(**options), map(typed, documents))


def _plain(documents: Sequence[bytes]) -> Messages:
    return _xebu(Encoder(), map(parse_xml, documents))


@cache
def knowledge() -> Knowledge:
    """What the schema of the sample tells both ends. Other documents pass, but save nothing."""
    return Knowledge(read_schema(SCHEMA.read_bytes()))


def _with_schema(
    events: Callable[[bytes], EventList] = typed, **options: Any
) -> Callable[[Sequence[bytes]], Messages]:
    return lambda documents: _xebu(
        SchemaEncoder(knowledge(), **options),
        map(events, documents),
        SchemaDecoder(knowledge()),
    )


SIZES: Mapping[str, Callable[[Sequence[bytes]], Messages]] = {
    "XML": list,
    "XML written by us": lambda documents: [serialize_xml(typed(each)) for each in documents],
    "xebu none": _with(mode=Mode.NONE),
    "xebu item": _with(mode=Mode.ITEM),
    "xebu data": _with(),
    "xebu data, split policy": _with(policy=Split),
    "xebu data, forgetful": _with(forgetful=True),
    "xebu data, values as text": _plain,
    "xebu with automata": _with_schema(),
    "xebu with automata, forgetful": _with_schema(forgetful=True),
    "xebu with automata, values as text": _with_schema(parse_xml),
}


class Jobs(NamedTuple):
    """Two jobs and what they work on. A job is begun once a round, then done for each message."""

    written: Callable[[Sequence[bytes]], list[Any]]
    begin_write: Callable[[], Callable[[Any], object]] | None
    begin_read: Callable[[], Callable[[Any], object]] | None
    read: Callable[[Sequence[bytes]], list[Any]] = list


def _types(events: EventList) -> EventList:
    return EventList(typed_sequence(events))


TIMES: Mapping[str, Jobs] = {
    "lxml: tree to XML, XML to tree": Jobs(
        lambda documents: [etree.fromstring(each) for each in documents],
        lambda: etree.tostring,
        lambda: etree.fromstring,
    ),
    "ElementTree": Jobs(
        lambda documents: [ElementTree.fromstring(each) for each in documents],
        lambda: ElementTree.tostring,
        lambda: ElementTree.fromstring,
    ),
    "XAS: events to XML, XML to events": Jobs(
        lambda documents: [parse_xml(each) for each in documents],
        lambda: serialize_xml,
        lambda: parse_xml,
    ),
    "XAS: typed events to XML, events to typed events": Jobs(
        lambda documents: [typed(each) for each in documents],
        lambda: serialize_xml,
        lambda: _types,
        lambda documents: [parse_xml(each) for each in documents],
    ),
    "Xebu: events to message, message to events": Jobs(
        lambda documents: [typed(each) for each in documents],
        lambda: Encoder().encode,
        lambda: Decoder().decode,
        _with(),
    ),
    "Xebu with automata": Jobs(
        lambda documents: [typed(each) for each in documents],
        lambda: SchemaEncoder(knowledge()).encode,
        lambda: SchemaDecoder(knowledge()).decode,
        _with_schema(),
    ),
}
