"""Conversion to and from minidom, Python's own DOM, which keeps prefix mappings."""

from __future__ import annotations

from collections.abc import Iterator
from xml.dom import minidom

from lasthop_xml.xas.errors import MalformedEvents
from lasthop_xml.xas.events import (
    ATTRIBUTE,
    COMMENT,
    CONTENT,
    DOCUMENT_END,
    DOCUMENT_START,
    ELEMENT_END,
    ELEMENT_START,
    ENTITY_REFERENCE,
    PREFIX_MAPPING,
    PROCESSING_INSTRUCTION,
    TYPED_CONTENT,
    Event,
    attribute,
    comment,
    content,
    end,
    instruction,
    prefix,
    start,
)
from lasthop_xml.xas.names import XMLNS_NS, Name
from lasthop_xml.xas.scope import Scope, outermost
from lasthop_xml.xas.sequence import EventList, EventSequence
from lasthop_xml.xas.types.table import lexical


def to_dom(events: EventSequence) -> minidom.Document:
    """Return a sequence, which must have one root element, as a minidom document."""
    document = minidom.Document()
    parent: minidom.Document | minidom.Element = document
    scope: Scope = outermost()
    scopes: list[Scope] = []
    mappings: list[Name] = []
    for kind, name, value in events:
        if kind is ELEMENT_START and name is not None:
            scopes.append(scope)
            scope = scope.declare(mappings) if mappings else scope
            element = document.createElementNS(name.ns or None, _qualified(name, scope))
            for ns, to in mappings:
                element.setAttributeNS(XMLNS_NS, f"xmlns:{to}" if to else "xmlns", ns)
            mappings = []
            _append(parent, element)
            parent = element
        elif kind is ELEMENT_END:
            if not scopes or not isinstance(parent.parentNode, minidom.Document | minidom.Element):
                raise MalformedEvents("an element ends that is not open", name=str(name))
            parent, scope = parent.parentNode, scopes.pop()
        elif kind is ATTRIBUTE and name is not None and isinstance(parent, minidom.Element):
            key = _qualified(name, scope, attribute_=True)
            parent.setAttributeNS(name.ns or None, key, value)
        elif kind is PREFIX_MAPPING and name is not None:
            mappings.append(name)
        elif kind is CONTENT:
            _append(parent, document.createTextNode(value))
        elif kind is TYPED_CONTENT:
            _append(parent, document.createTextNode(lexical(name, value)))
        elif kind is COMMENT:
            _append(parent, document.createComment(value))
        elif kind is PROCESSING_INSTRUCTION:
            target, _, data = value.partition(" ")
            _append(parent, document.createProcessingInstruction(target, data))
        elif kind is ENTITY_REFERENCE:
            raise MalformedEvents("minidom has no entity references", entity=value)
    if scopes:
        raise MalformedEvents("the events end inside an element")
    return document


def _append(
    parent: minidom.Document | minidom.Element,
    child: minidom.Element | minidom.Text | minidom.Comment | minidom.ProcessingInstruction,
) -> None:
    if isinstance(parent, minidom.Element):
        parent.appendChild(child)
    elif isinstance(child, minidom.Text):
        raise MalformedEvents("content stands outside of all elements")
    elif isinstance(child, minidom.Element) and parent.documentElement is not None:
        raise MalformedEvents("a document must have exactly one root element")
    else:
        parent.appendChild(child)


def _qualified(name: Name, scope: Scope, *, attribute_: bool = False) -> str:
    if attribute_ and not name.ns:
        return name.local
    to = scope.prefix_for(name.ns, default=not attribute_)
    if to is None:
        # minidom would write a name without a declared prefix as an unbound one.
        raise MalformedEvents("a namespace has no prefix here", ns=name.ns)
    return f"{to}:{name.local}" if to else name.local


def from_dom(document: minidom.Document) -> EventList:
    """Return the events of a minidom document; CDATA sections become ordinary text."""
    events = EventList([DOCUMENT_START])
    for node in document.childNodes:
        events += _node(node)
    events.append(DOCUMENT_END)
    return events


def _node(node: minidom.Node) -> Iterator[Event]:
    # A loop, since recursion would end at Python's limit on deep trees.
    path: list[tuple[Event, Iterator[minidom.Node]]] = []
    current: minidom.Node | None = node
    while current is not None:
        if isinstance(current, minidom.Element):
            name = Name(current.namespaceURI or "", current.localName or current.tagName)
            yield from _start_block(current, name)
            path.append((end(name), iter(current.childNodes)))
        elif isinstance(current, minidom.Text):
            yield content(current.data)
        elif isinstance(current, minidom.Comment):
            yield comment(current.data)
        elif isinstance(current, minidom.ProcessingInstruction):
            yield instruction(current.target, current.data)
        current = None
        while path and current is None:
            closing, children = path[-1]
            current = next(children, None)
            if current is None:
                yield closing
                path.pop()


def _start_block(element: minidom.Element, name: Name) -> Iterator[Event]:
    attributes = []
    for attr in element.attributes.values():
        ns, local = attr.namespaceURI or "", attr.localName or attr.name
        if ns == XMLNS_NS:
            yield prefix(attr.value, "" if attr.name == "xmlns" else local)
        else:
            attributes.append(attribute(Name(ns, local), attr.value))
    yield start(name)
    yield from attributes
