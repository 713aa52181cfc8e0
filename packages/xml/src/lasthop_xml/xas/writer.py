"""Complete elements into a sink: what application code makes documents with (section 4.3)."""

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
"""What the root of a document with typed elements should declare."""


class Writer:
    """Puts events into `sink`, keeps track of prefixes, and ends what it started.

    `encoder` is asked for the elements of types that are not primitive (section 4.4).
    """

    __slots__ = ("_encoder", "_open", "scope", "sink")

    def __init__(self, sink: Sink, *, encoder: ContentEncoder | None = None) -> None:
        self.sink = sink
        self.scope: Scope = outermost()
        self._encoder = encoder
        self._open: list[tuple[Name, Scope]] = []

    def event(self, event: Event) -> None:
        """One event that changes no scope: an attribute, text, a comment."""
        self.sink.append(event)

    def events(self, events: EventSequence) -> None:
        """A fragment, as it is."""
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
        """The start block of an element; `prefixes` are declared on it."""
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
        """The end of the element that was started last."""
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
        """An element around what is written meanwhile."""
        self.start(name, attributes, prefixes=prefixes)
        yield
        self.end()

    def text_element(self, name: Name, text: str) -> None:
        """An element with nothing but text."""
        with self.element(name):
            if text:
                self.sink.append(content(text))

    def typed_element(self, name: Name, type_: Name, value: Any) -> None:
        """An element that declares its type and holds a value of it."""
        with self.element(name):
            self.typed(type_, value)

    def typed(self, type_: Name, value: Any) -> None:
        """The xsi:type of the element that was just started, and a value as all its content."""
        to = self.scope.prefix_for(type_.ns)
        if to is None:
            raise MalformedEvents("the namespace of a type has no prefix here", ns=type_.ns)
        self.sink.append(attribute(XSI_TYPE, f"{to}:{type_.local}" if to else type_.local))
        if type_ in PRIMITIVES:
            self.sink.append(typed(type_, value))
        elif self._encoder is None or not self._encoder.encode(type_, value, self):
            raise UnknownType("no encoder knows this type", type=str(type_))
