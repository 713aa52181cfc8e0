"""All codecs that can send the messages, in one table for sizes and one for times.

To add a codec, add a line: a function from all documents to all messages, or the two jobs to time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple
from xml.etree import ElementTree

from lxml import etree

from bench.xml.ours import (
    Sender,
    in_runs,
    knowledge,
    nothing,
    profile,
    schema,
    typed,
    weft,
    weft_reader,
    weft_writer,
    xebu,
    xebu_with_schema,
)
from bench.xml.rivals import with_dictionary
from lasthop_xml.weft.engines import COMPILED, PURE, Engine
from lasthop_xml.weft.session import Level, WeftDecoder, WeftEncoder
from lasthop_xml.xas.sequence import EventList
from lasthop_xml.xas.typed import typed_sequence
from lasthop_xml.xas.xmlparse import parse_xml
from lasthop_xml.xas.xmlserialize import serialize_xml
from lasthop_xml.xebu.decoder import Decoder
from lasthop_xml.xebu.encoder import Encoder
from lasthop_xml.xebu.omission.decoder import SchemaDecoder
from lasthop_xml.xebu.omission.encoder import SchemaEncoder
from lasthop_xml.xebu.policies import Split
from lasthop_xml.xebu.tokens import Mode

SIZES: Mapping[str, Sender] = {
    "XML": list,
    "XML written by us": lambda documents: [serialize_xml(typed(each)) for each in documents],
    "XML, zstd-19 dictionary (trained)": with_dictionary,
    "xebu none": xebu(mode=Mode.NONE),
    "xebu item": xebu(mode=Mode.ITEM),
    "xebu data": xebu(),
    "xebu data, split policy": xebu(policy=Split),
    "xebu data, forgetful": xebu(forgetful=True),
    "xebu data, values as text": xebu(parse_xml),
    "xebu with automata": xebu_with_schema(),
    "xebu with automata, forgetful": xebu_with_schema(forgetful=True),
    "xebu with automata, values as text": xebu_with_schema(parse_xml),
    "weft fast": weft(Level.FAST),
    "weft deflate": weft(Level.DEFLATE),
    "weft max": weft(Level.MAX),
    "weft fast, schema": weft(Level.FAST, schema),
    "weft deflate, schema": weft(Level.DEFLATE, schema),
    "weft max, schema": weft(Level.MAX, schema),
    "weft fast, forgetful": weft(Level.FAST, forgetful=True),
    "weft fast, schema, forgetful": weft(Level.FAST, schema, forgetful=True),
    "weft max, schema, forgetful": weft(Level.MAX, schema, forgetful=True),
    "weft fast, profile (trained)": weft(Level.FAST, profile),
    "weft deflate, profile (trained)": weft(Level.DEFLATE, profile),
    "weft max, profile (trained)": weft(Level.MAX, profile),
    "weft fast, profile (trained), forgetful": weft(Level.FAST, profile, forgetful=True),
    "weft max, profile (trained), forgetful": weft(Level.MAX, profile, forgetful=True),
}
"""The codecs by label. Rows of the same data in JSON and CBOR are added where there is such data.
What the SDK sends through a gateway is forgetful: there each message must be readable by itself."""


class Jobs(NamedTuple):
    """The writing and the reading job of a codec, and their inputs. A job is started once a round,
    then run for each message."""

    written: Callable[[Sequence[bytes]], list[Any]]
    begin_write: Callable[[], Callable[[Any], object]]
    begin_read: Callable[[], Callable[[Any], object]]
    read: Callable[[Sequence[bytes]], list[Any]] = list


def _types(events: EventList) -> EventList:
    return EventList(typed_sequence(events))


def _all_typed(documents: Sequence[bytes]) -> list[EventList]:
    return [typed(each) for each in documents]


def _all_parsed(documents: Sequence[bytes]) -> list[EventList]:
    return [parse_xml(each) for each in documents]


def _runs(level: Level, known: Any, engine: Engine) -> Jobs:
    return Jobs(
        in_runs, weft_writer(level, known, engine), weft_reader(known, engine), weft(level, known)
    )


COLD = "weft fast, runs in and out"
IN_STRIDE = "weft fast, runs in and out, profile"

TIMES: dict[str, Jobs] = {
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
        _all_parsed, lambda: serialize_xml, lambda: parse_xml
    ),
    "XAS: typed events to XML, events to typed events": Jobs(
        _all_typed, lambda: serialize_xml, lambda: _types, _all_parsed
    ),
    "xebu: events to message, message to events": Jobs(
        _all_typed, lambda: Encoder().encode, lambda: Decoder().decode, xebu()
    ),
    "xebu with automata": Jobs(
        _all_typed,
        lambda: SchemaEncoder(knowledge()).encode,
        lambda: SchemaDecoder(knowledge()).decode,
        xebu_with_schema(),
    ),
    f"{COLD} (pure)": _runs(Level.FAST, nothing, PURE),
    f"{IN_STRIDE} (pure)": _runs(Level.FAST, profile, PURE),
    "weft deflate, runs in and out (pure)": _runs(Level.DEFLATE, nothing, PURE),
    "weft max, runs in and out (pure)": _runs(Level.MAX, nothing, PURE),
    "weft fast, events in and out (pure)": Jobs(
        _all_typed,
        lambda: WeftEncoder(engine=PURE).encode,
        lambda: WeftDecoder(engine=PURE).decode,
        weft(Level.FAST),
    ),
}
if COMPILED is not None:
    TIMES |= {
        f"{COLD} (compiled)": _runs(Level.FAST, nothing, COMPILED),
        f"{IN_STRIDE} (compiled)": _runs(Level.FAST, profile, COMPILED),
        "weft deflate, runs in and out (compiled)": _runs(Level.DEFLATE, nothing, COMPILED),
    }
