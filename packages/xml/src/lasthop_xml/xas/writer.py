"""A writer of complete elements into a sink, with which application code makes documents (thesis,
section 4.3)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from lasthop_xml.xas.errors import MalformedEvents, UnknownType
from lasthop_xml.xas.events import (
    DOCUMENT_END,
    DOCUMENT_START,
    Event,
    attribute,
    content,
    end,
    prefix,
    start,
    typed,
)
from lasthop_xml.xas.names import XSD_NS, XSI_NS, XSI_TYPE, Name
from lasthop_xml.xas.scope import Scope, outermost
from lasthop_xml.xas.sequence import EventSequence, Sink
from lasthop_xml.xas.types.table import PRIMITIVES

if TYPE_CHECKING:
    from lasthop_xml.xas.content import ContentEncoder

_NO_ATTRIBUTES: Mapping[Name, str] = {}
_NO_PREFIXES: Mapping[str, str] = {}

TYPED_PREFIXES: Mapping[str, str] = {"xsd": XSD_NS, "xsi": XSI_NS}
"""The prefix declarations that the root of a document with typed elements should have."""


class Writer:
    """Writes events to `sink`, keeps track of prefixes, and ends the elements that it started.

    `encoder` writes the content of elements whose types are not primitive (thesis, section 4.4).
    """

    __slots__ = ("_encoder", "_open", "scope", "sink")

    def __init__(self, sink: Sink, *, encoder: ContentEncoder | None = None) -> None:
        self.sink = sink
        self.scope: Scope = outermost()
        self._encoder = encoder
        self._open: list[tuple[Name, Scope]] = []

    def event(self, event: Event) -> None:
        """Write one event that changes no scope: an attribute, a text, a comment."""
        self.sink.append(event)

    def events(self, events: EventSequence) -> None:
        """Write the events of a fragment as they are."""
        for event in events:
            self.sink.append(event)

    @contextmanager
    def document(self) -> Iterator[None]:
        self.sink.append(DOCUMENT_START)
        yield
        self.sink.append(DOCUMENT_END)

    def start(
        self,
        name: Name,
        attributes: Mapping[Name, str] = _NO_ATTRIBUTES,
        *,
        prefixes: Mapping[str, str] = _NO_PREFIXES,
    ) -> None:
        """Write the start block of an element, which declares `prefixes`."""
        mappings = [Name(ns, to) for to, ns in prefixes.items()]
        for ns, to in mappings:
            self.sink.append(prefix(ns, to))
        self._open.append((name, self.scope))
        if mappings:
            self.scope = self.scope.declare(mappings)
        self.sink.append(start(name))
        for key, value in attributes.items():
            self.sink.append(attribute(key, value))

    def end(self) -> None:
        """Write the end of the element that was started last."""
        if not self._open:
            raise MalformedEvents("no element is open")
        name, self.scope = self._open.pop()
        self.sink.append(end(name))

    @contextmanager
    def element(
        self,
        name: Name,
        attributes: Mapping[Name, str] = _NO_ATTRIBUTES,
        *,
        prefixes: Mapping[str, str] = _NO_PREFIXES,
    ) -> Iterator[None]:
        """Write an element around what the body of the `with` statement writes."""
        self.start(name, attributes, prefixes=prefixes)
        yield
        self.end()

    def text_element(self, name: Name, text: str) -> None:
        """Write an element that contains only text."""
        with self.element(name):
            if text:
                self.sink.append(content(text))

    def typed_element(self, name: Name, type_: Name, value: Any) -> None:
        """Write an element that declares its type and contains a value of this type."""
        with self.element(name):
            self.typed(type_, value)

    def typed(self, type_: Name, value: Any) -> None:
        """Write the xsi:type of the element that was just started, and the value as its whole
        content."""
        to = self.scope.prefix_for(type_.ns)
        if to is None:
            raise MalformedEvents("the namespace of a type has no prefix here", ns=type_.ns)
        self.sink.append(attribute(XSI_TYPE, f"{to}:{type_.local}" if to else type_.local))
        if type_ in PRIMITIVES:
            self.sink.append(typed(type_, value))
        elif self._encoder is None or not self._encoder.encode(type_, value, self):
            raise UnknownType("no encoder knows this type", type=str(type_))
