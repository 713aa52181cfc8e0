"""Table 7.7 with memory: formats by size, time, throughput and memory.

F forgets everything between messages, S knows the schema, Z is gzip on each message.
"""

from __future__ import annotations

import gzip
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

from lxml import etree

from bench.xml_tables.meter import by_itself, memory_each, seconds
from lasthop_xml.relaxng.schema import read_schema
from lasthop_xml.weft.session import Level, WeftDecoder, WeftEncoder
from lasthop_xml.xas.sequence import EventList
from lasthop_xml.xas.typed import typed_sequence
from lasthop_xml.xas.xmlparse import parse_xml
from lasthop_xml.xas.xmlserialize import serialize_xml
from lasthop_xml.xebu.decoder import Decoder
from lasthop_xml.xebu.encoder import Encoder
from lasthop_xml.xebu.omission.decoder import SchemaDecoder
from lasthop_xml.xebu.omission.encoder import SchemaEncoder
from lasthop_xml.xebu.omission.knowledge import Knowledge

Job = Callable[[Any], Any]
SCHEMA: Final = Path(__file__).parents[1] / "data" / "xml_events" / "event.rnc"


class Contender(NamedTuple):
    """A format: how a connection starts, at both ends."""

    source: Callable[[bytes], Any]
    """Converts a document to what the writer takes."""
    writing: Callable[[], Job]
    reading: Callable[[], Job]


class Row(NamedTuple):
    """The results of one format, averaged over the messages."""

    format: str
    size: float
    share: float
    """Size in per cent of XML."""
    write: float
    """Milliseconds to write a message."""
    write_memory: float | None
    """The most memory in kB to write a message."""
    read: float
    read_memory: float | None


def _typed(document: bytes) -> EventList:
    return EventList(typed_sequence(parse_xml(document)))


@cache
def _knowledge() -> Knowledge:
    return Knowledge(read_schema(SCHEMA.read_bytes()))


def contenders() -> dict[str, Contender]:
    known = _knowledge()
    plain = {
        "lxml": Contender(etree.fromstring, lambda: etree.tostring, lambda: etree.fromstring),
        "XAS": Contender(parse_xml, lambda: serialize_xml, lambda: parse_xml),
        "XebuF": Contender(
            _typed, lambda: Encoder(forgetful=True).encode, lambda: Decoder().decode
        ),
        "Xebu": Contender(_typed, lambda: Encoder().encode, lambda: Decoder().decode),
        "XebuFS": Contender(
            _typed,
            lambda: SchemaEncoder(known, forgetful=True).encode,
            lambda: SchemaDecoder(known).decode,
        ),
        "XebuS": Contender(
            _typed, lambda: SchemaEncoder(known).encode, lambda: SchemaDecoder(known).decode
        ),
        "Weft fast": _weft(Level.FAST),
        "Weft deflate": _weft(Level.DEFLATE),
        "Weft max": _weft(Level.MAX),
    }
    packed = ("lxml", "XAS", "XebuF", "Xebu", "XebuFS", "XebuS")
    return {
        name: contender
        for each in plain
        for name, contender in (
            (each, plain[each]),
            *([(f"{each}Z", _zipped(plain[each]))] if each in packed else []),
        )
    }


def _weft(level: Level) -> Contender:
    def reading() -> Job:
        decoder = WeftDecoder()
        # The decoder yields events lazily: the list makes it decode all of them.
        return lambda data: list(decoder.decode(data))

    return Contender(_typed, lambda: WeftEncoder(level).encode, reading)


def _zipped(contender: Contender) -> Contender:
    def writing() -> Job:
        write = contender.writing()
        return lambda source: gzip.compress(write(source), mtime=0)

    def reading() -> Job:
        read = contender.reading()
        return lambda data: read(gzip.decompress(data))

    return Contender(contender.source, writing, reading)


@by_itself()
def measure(documents: Sequence[bytes], rounds: int) -> list[Row]:
    count = len(documents)
    whole = sum(map(len, documents))
    rows = []
    for name, (source, writing, reading) in contenders().items():
        sources = [source(document) for document in documents]
        write = writing()
        messages = [write(each) for each in sources]
        size = sum(map(len, messages))
        traced = not name.startswith("lxml")
        read = reading()
        if traced and any(list(read(m)) != list(s) for m, s in zip(messages, sources, strict=True)):
            raise AssertionError(f"{name}: a message was not decoded unchanged")
        rows.append(
            Row(
                name,
                size / count,
                100 * size / whole,
                1000 * seconds(writing, sources, rounds) / count,
                memory_each(writing, sources) / 1000 if traced else None,
                1000 * seconds(reading, messages, rounds) / count,
                memory_each(reading, messages) / 1000 if traced else None,
            )
        )
    return rows
