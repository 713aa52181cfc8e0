"""XML to events, with the expat parser.

The parser keeps what XAS has events for: CDATA sections become text, comments and processing
instructions stay, a document type declaration is read and left out (thesis, section 4.2). Entity
declarations are refused, since a few lines of them expand to gigabytes, and nothing outside of the
document is ever read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from xml.parsers import expat

from lasthop_xml.xas.errors import MalformedXml, XmlTooLarge
from lasthop_xml.xas.events import (
    ATTRIBUTE,
    CONTENT,
    DOCUMENT_END,
    DOCUMENT_START,
    ELEMENT_END,
    ELEMENT_START,
    Event,
    comment,
    entity,
    instruction,
    prefix,
)
from lasthop_xml.xas.limits import DEFAULT_LIMITS, Limits
from lasthop_xml.xas.names import XSI_TYPE, Name
from lasthop_xml.xas.sequence import EventList, EventStream

# What expat puts between namespace and name: a character that no XML document can contain.
_SEPARATOR = "\x01"
_REFERENCE = re.compile(rb"&(?!#|amp;|lt;|gt;|quot;|apos;)")
_START_TAG = re.compile(rb"<(?:[^>\"']|\"[^\"]*\"|'[^']*')*>?")
_SLICE = 2**15
"""Bytes that expat gets at first, and always if tags must be inspected as they were written: expat
then copies all the input that it has after each tag, which is slow for a long document."""
_new = tuple.__new__


class XmlParser:
    """A parser of one document, fed in pieces of any size; it returns events as soon as they are
    complete."""

    def __init__(self, limits: Limits = DEFAULT_LIMITS) -> None:
        self._limits = limits
        self._size = 0
        self._count = 0
        self._expanded = 0
        self._closed = False
        self._with_doctype = False
        self._external_subset = False
        self._mappings = 0
        self._text: list[str] = []
        self._out: list[Event] = [DOCUMENT_START]
        # A message repeats few names; the document's size bounds their number.
        self._names: dict[str, Name] = {_SEPARATOR.join(XSI_TYPE): XSI_TYPE}
        self._parser = self._new_parser()

    def _new_parser(self) -> expat.XMLParserType:
        parser = expat.ParserCreate(namespace_separator=_SEPARATOR)
        parser.buffer_text = True
        parser.ordered_attributes = True
        parser.StartElementHandler, parser.EndElementHandler = self._element_handlers()
        parser.CharacterDataHandler = self._text.append
        parser.StartNamespaceDeclHandler = self._mapping
        parser.CommentHandler = self._comment
        parser.ProcessingInstructionHandler = self._instruction
        parser.StartDoctypeDeclHandler = self._doctype
        parser.EntityDeclHandler = self._entity_declaration
        parser.SkippedEntityHandler = self._skipped
        return parser

    def _element_handlers(self) -> tuple[Callable[[str, list[str]], None], Callable[[str], None]]:
        """Return the handlers of start and end tags. Most time is spent in them, so they work on
        local variables."""
        out, text, names, flush = self._out, self._text, self._names, self._flush
        add = out.append
        events: dict[str, tuple[Event, Event]] = {}
        most_events, most_deep = self._limits.events, self._limits.depth
        most_items = 2 * self._limits.attributes
        depth = 0

        def start(tag: str, attributes: list[str]) -> None:
            nonlocal depth
            if text:
                flush()
            depth += 1
            pair = events.get(tag)
            if pair is None:
                name = self._name(tag)
                pair = events[tag] = (
                    _new(Event, (ELEMENT_START, name, None)),
                    _new(Event, (ELEMENT_END, name, None)),
                )
            add(pair[0])
            if len(attributes) == 2:
                key, value = attributes
                add(_new(Event, (ATTRIBUTE, names.get(key) or self._name(key), value)))
            elif attributes:
                # The same iterator given twice yields pairs of a name and a value.
                flat = iter(attributes)
                for key, value in zip(flat, flat, strict=True):
                    add(_new(Event, (ATTRIBUTE, names.get(key) or self._name(key), value)))
            if depth > most_deep:
                raise XmlTooLarge("elements are too deeply nested", most=most_deep)
            if len(attributes) > most_items or self._mappings or self._with_doctype:
                self._check_attributes(attributes)
            if len(out) > most_events:
                raise XmlTooLarge("a document has too many events", most=most_events)

        def end(tag: str) -> None:
            nonlocal depth
            if text:
                add(_new(Event, (CONTENT, None, text[0] if len(text) == 1 else "".join(text))))
                text.clear()
            depth -= 1
            add(events[tag][1])

        return start, end

    def feed(self, data: bytes) -> list[Event]:
        """Parse the next piece of the document and return the events that are complete with it."""
        self._size += len(data)
        if self._size > self._limits.size:
            raise XmlTooLarge("a document is too large", most=self._limits.size)
        self._parse(data, final=False)
        return self._taken()

    def close(self) -> list[Event]:
        """End the document, which must be complete, and return its last events."""
        self._parse(b"", final=True)
        self._out.append(DOCUMENT_END)
        return self._taken()

    def _parse(self, data: bytes, *, final: bool) -> None:
        if self._closed:
            raise MalformedXml("the parser is closed, or an earlier piece failed")
        self._closed = True  # stays so after an error
        try:
            self._parse_slices(data)
            if final:
                self._parser.Parse(b"", True)
        except expat.ExpatError as error:
            raise MalformedXml(
                expat.ErrorString(error.code), line=error.lineno, column=error.offset + 1
            ) from None
        except (
            LookupError,
            ValueError,
        ) as error:  # an unknown encoding, or bytes that are not text in it
            raise MalformedXml("the encoding is not supported", reason=str(error)) from None
        self._closed = final

    def _parse_slices(self, data: bytes) -> None:
        # Slices grow if they may: expat reads an incomplete token again with each slice.
        at, size = 0, _SLICE
        while at < len(data):
            self._parser.Parse(data[at : at + size], False)
            at += size
            if not self._external_subset:
                size *= 2

    def _taken(self) -> list[Event]:
        events = self._out[:]
        self._out.clear()
        self._count += len(events)
        if self._count > self._limits.events:
            raise XmlTooLarge("a document has too many events", most=self._limits.events)
        return events

    def _flush(self) -> None:
        text = self._text
        self._out.append(_new(Event, (CONTENT, None, text[0] if len(text) == 1 else "".join(text))))
        text.clear()

    def _name(self, tag: str) -> Name:
        name = self._names.get(tag)
        if name is None:
            if len(tag) > self._limits.name:
                raise XmlTooLarge("a name is too long", most=self._limits.name)
            ns, _, local = tag.rpartition(_SEPARATOR)
            name = self._names[tag] = Name(ns, local)
        return name

    def _check_attributes(self, attributes: list[str]) -> None:
        limits = self._limits
        if len(attributes) // 2 + self._mappings > limits.attributes:
            raise XmlTooLarge("an element has too many attributes", most=limits.attributes)
        self._mappings = 0
        if not self._with_doctype:
            return
        # Default values of a document type are repeated in every element. A reference to an entity
        # of an external subset, which is not read, would vanish from the value without a trace.
        self._expanded += sum(map(len, attributes))
        if self._expanded > limits.size:
            raise XmlTooLarge(
                "the values of all attributes together are too long", most=limits.size
            )
        if self._external_subset:
            tag = _START_TAG.match((self._parser.GetInputContext() or b"").replace(b"\0", b""))
            if tag is not None and _REFERENCE.search(tag.group()):
                raise MalformedXml("an attribute refers to an unknown entity")

    def _mapping(self, to: str | None, ns: str | None) -> None:
        if self._text:
            self._flush()
        self._mappings += 1
        if len(to or "") + len(ns or "") > self._limits.name:
            raise XmlTooLarge("a prefix mapping is too long", most=self._limits.name)
        self._out.append(prefix(ns or "", to or ""))

    def _comment(self, text: str) -> None:
        if self._text:
            self._flush()
        self._out.append(comment(text))

    def _instruction(self, target: str, data: str) -> None:
        if self._text:
            self._flush()
        self._out.append(instruction(target, data))

    def _doctype(self, _name: str, system: str | None, _public: str | None, _inside: int) -> None:
        self._with_doctype = True
        self._external_subset = system is not None

    def _entity_declaration(self, name: str, *_rest: object) -> None:
        # Stricter than XML 1.0, section 4.2, which allows them.
        raise MalformedXml("entity declarations are refused", entity=name)

    def _skipped(self, name: str, parameter: bool) -> None:
        if parameter:
            raise MalformedXml("parameter entities are refused", entity=name)
        if self._text:
            self._flush()
        self._out.append(entity(name))


def parse_xml(data: bytes, *, limits: Limits = DEFAULT_LIMITS) -> EventList:
    """Parse a whole document and return its events."""
    parser = XmlParser(limits)
    events = EventList(parser.feed(data))
    events += parser.close()
    return events


def stream_xml(pieces: Iterable[bytes], *, limits: Limits = DEFAULT_LIMITS) -> EventStream:
    """Return the events of a document as a stream, which parses only as far as it is read."""
    return EventStream(_stream(pieces, limits))


def _stream(pieces: Iterable[bytes], limits: Limits) -> Iterator[Event]:
    parser = XmlParser(limits)
    for piece in pieces:
        yield from parser.feed(piece)
    yield from parser.close()
