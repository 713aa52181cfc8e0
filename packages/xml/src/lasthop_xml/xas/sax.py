"""Conversion to and from SAX (thesis, section 4.3): programs that use SAX 2 can produce and consume
event sequences."""

from __future__ import annotations

from typing import Protocol
from xml.sax.handler import ContentHandler
from xml.sax.xmlreader import AttributesNSImpl

from lasthop_xml.xas.errors import MalformedEvents
from lasthop_xml.xas.events import (
    ATTRIBUTE,
    COMMENT,
    CONTENT,
    DOCUMENT_END,
    DOCUMENT_END_KIND,
    DOCUMENT_START,
    DOCUMENT_START_KIND,
    ELEMENT_END,
    ELEMENT_START,
    ENTITY_REFERENCE,
    PREFIX_MAPPING,
    PROCESSING_INSTRUCTION,
    TYPED_CONTENT,
    attribute,
    comment,
    content,
    end,
    entity,
    instruction,
    prefix,
    start,
)
from lasthop_xml.xas.names import Name
from lasthop_xml.xas.sequence import EventList, EventSequence, Sink
from lasthop_xml.xas.types.table import lexical


class CommentHandler(Protocol):
    """The part of a SAX lexical handler that XAS has events for: comments."""

    def comment(self, content: str) -> object: ...


class SaxToXas(ContentHandler):
    """A SAX content handler that writes events into a sink; also usable as a lexical handler.

    The SAX parser must have namespaces on (`feature_namespaces`).
    """

    def __init__(self, sink: Sink | None = None) -> None:
        super().__init__()
        self.events = EventList()
        self._sink: Sink = self.events if sink is None else sink

    def startDocument(self) -> None:  # noqa: N802 - SAX names it
        self._sink.append(DOCUMENT_START)

    def endDocument(self) -> None:  # noqa: N802
        self._sink.append(DOCUMENT_END)

    def startPrefixMapping(self, prefix_: str | None, uri: str) -> None:  # noqa: N802
        self._sink.append(prefix(uri or "", prefix_ or ""))

    def startElementNS(  # noqa: N802
        self, name: tuple[str | None, str], qname: str | None, attrs: AttributesNSImpl
    ) -> None:
        self._sink.append(start(Name(name[0] or "", name[1])))
        for key in attrs.getNames():
            ns, local = key
            self._sink.append(attribute(Name(ns or "", local), attrs.getValue(key)))

    def endElementNS(self, name: tuple[str | None, str], qname: str | None) -> None:  # noqa: N802
        self._sink.append(end(Name(name[0] or "", name[1])))

    def characters(self, content_: str) -> None:
        self._sink.append(content(content_))

    def ignorableWhitespace(self, whitespace: str) -> None:  # noqa: N802
        self._sink.append(content(whitespace))

    def processingInstruction(self, target: str, data: str) -> None:  # noqa: N802
        self._sink.append(instruction(target, data))

    def skippedEntity(self, name: str) -> None:  # noqa: N802
        self._sink.append(entity(name))

    def comment(self, text: str) -> None:
        self._sink.append(comment(text))

    def startCDATA(self) -> None:  # noqa: N802
        """Do nothing: XAS has CDATA sections as ordinary text."""

    def endCDATA(self) -> None:  # noqa: N802
        """Do nothing: XAS has CDATA sections as ordinary text."""

    def startDTD(self, name: str, public_id: str | None, system_id: str | None) -> None:  # noqa: N802
        """Do nothing: XAS has no document types."""

    def endDTD(self) -> None:  # noqa: N802
        """Do nothing: XAS has no document types."""


def to_sax(
    events: EventSequence, handler: ContentHandler, *, lexical_handler: CommentHandler | None = None
) -> None:
    """Call `handler` for each event. The call for an element's start waits for the attributes,
    which SAX passes with it."""
    start_: Name | None = None
    attributes: dict[tuple[str | None, str], str] = {}
    mappings: list[list[str]] = []
    waiting: list[str] = []
    for kind, name, value in events:
        if kind is ATTRIBUTE and name is not None:
            attributes[name.ns or None, name.local] = value
            continue
        if start_ is not None:
            names = dict.fromkeys(attributes, "")
            names = {key: key[1] for key in names}
            handler.startElementNS(
                (start_.ns or None, start_.local), start_.local, AttributesNSImpl(attributes, names)
            )
            start_, attributes = None, {}
        if kind is ELEMENT_START:
            start_ = name
            mappings.append(waiting)
            waiting = []
        elif kind is ELEMENT_END and name is not None:
            if not mappings:
                raise MalformedEvents("an element ends that is not open", name=str(name))
            handler.endElementNS((name.ns or None, name.local), name.local)
            for to in reversed(mappings.pop()):
                handler.endPrefixMapping(to or None)
        elif kind is PREFIX_MAPPING and name is not None:
            handler.startPrefixMapping(name.local or None, name.ns)
            waiting.append(name.local)
        elif kind is CONTENT:
            handler.characters(value)
        elif kind is TYPED_CONTENT:
            handler.characters(lexical(name, value))
        elif kind is PROCESSING_INSTRUCTION:
            target, _, data = value.partition(" ")
            handler.processingInstruction(target, data)
        elif kind is ENTITY_REFERENCE:
            handler.skippedEntity(value)
        elif kind is COMMENT:
            if lexical_handler is not None:
                lexical_handler.comment(value)
        elif kind is DOCUMENT_START_KIND:
            handler.startDocument()
        elif kind is DOCUMENT_END_KIND:
            handler.endDocument()
