"""Conversion to and from ElementTree.

ElementTree has no place for prefix mappings: `to_etree` leaves them out, and values that rely on
prefixes need them passed to `from_etree`. It also has no place for entity references, or for
anything outside of the root element.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from xml.etree import ElementTree

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
from lasthop_xml.xas.names import Name
from lasthop_xml.xas.sequence import EventList, EventSequence
from lasthop_xml.xas.types.table import lexical

_NO_PREFIXES: Mapping[str, str] = {}


def to_etree(events: EventSequence) -> ElementTree.Element:
    """Return the root element of a document or a fragment."""
    builder = ElementTree.TreeBuilder(insert_comments=True, insert_pis=True)
    waiting: Name | None = None
    attributes: dict[str, str] = {}
    depth = 0
    for kind, name, value in events:
        if kind is ATTRIBUTE:
            attributes[str(name)] = value
            continue
        if waiting is not None:
            builder.start(str(waiting), attributes)
            waiting, attributes = None, {}
        if kind is ELEMENT_START:
            waiting = name
            depth += 1
        elif kind is ELEMENT_END:
            builder.end(str(name))
            depth -= 1
        elif kind is CONTENT:
            builder.data(value)
        elif kind is TYPED_CONTENT:
            builder.data(lexical(name, value))
        elif kind is COMMENT and depth:
            builder.comment(value)
        elif kind is PROCESSING_INSTRUCTION and depth:
            target, _, data = value.partition(" ")
            builder.pi(target, data or None)
        elif kind is ENTITY_REFERENCE:
            raise MalformedEvents("ElementTree has no entity references", entity=value)
    if depth:
        raise MalformedEvents("the events end inside an element")
    return builder.close()


def from_etree(
    root: ElementTree.Element, *, prefixes: Mapping[str, str] = _NO_PREFIXES
) -> EventList:
    """Return an ElementTree as a document whose root declares `prefixes`."""
    events = EventList([DOCUMENT_START])
    events += [prefix(ns, to) for to, ns in prefixes.items()]
    events += _element(root)
    events.append(DOCUMENT_END)
    return events


def _element(element: ElementTree.Element) -> Iterator[Event]:
    # An explicit stack, since a tree may be deeper than Python's recursion limit.
    stack: list[tuple[Name, Iterator[ElementTree.Element], str | None]] = []
    current: ElementTree.Element | None = element
    while current is not None or stack:
        tag: object = None if current is None else current.tag
        if current is not None and isinstance(tag, str):
            name = _name(tag)
            yield start(name)
            for key, value in current.attrib.items():
                yield attribute(_name(key), value)
            if current.text:
                yield content(current.text)
            stack.append((name, iter(current), current.tail))
        elif current is not None:
            yield _special(current)
            if current.tail:
                yield content(current.tail)
        name, children, tail = stack[-1]
        current = next(children, None)
        if current is None:
            yield end(name)
            stack.pop()
            if tail and stack:
                yield content(tail)


def _name(tag: str) -> Name:
    if tag.startswith("{"):
        ns, _, local = tag[1:].rpartition("}")
        return Name(ns, local)
    return Name("", tag)


def _special(element: ElementTree.Element) -> Event:
    text = element.text or ""
    tag: object = element.tag  # a function for comments and instructions, whatever the stubs say
    if tag is ElementTree.Comment:
        return comment(text)
    if tag is ElementTree.ProcessingInstruction:
        return instruction(*text.split(" ", 1))
    raise MalformedEvents("an element of this kind has no event", tag=str(element.tag))
