"""Values of generated classes as whole documents, and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from lasthop_xml.orl.components import instance
from lasthop_xml.xas.content import ContentDecoder, ContentEncoder, Source
from lasthop_xml.xas.events import DOCUMENT_START_KIND
from lasthop_xml.xas.names import Name
from lasthop_xml.xas.reader import Reader
from lasthop_xml.xas.sequence import EventList, EventSequence
from lasthop_xml.xas.writer import Writer

T = TypeVar("T")


def to_document(
    root: Name, type_: Name, value: object, *, encoder: ContentEncoder, prefixes: Mapping[str, str]
) -> EventList:
    """Return a document whose root element holds `value`; pass the encoder and the prefixes of the
    generated module."""
    events = EventList()
    writer = Writer(events, encoder=encoder)
    with writer.document(), writer.element(root, prefixes=prefixes):
        writer.typed(type_, value)
    return events


def from_document(
    events: EventSequence, root: Name, class_: type[T], *, decoder: ContentDecoder
) -> T:
    """Return the value that is the root of a document or a fragment; raise InvalidValue if it is
    not a `class_`."""
    reader = Reader(events)
    if (first := reader.peek()) is not None and first.kind is DOCUMENT_START_KIND:
        reader.advance()
    return instance(Source(reader, decoder).expect(root), class_)
