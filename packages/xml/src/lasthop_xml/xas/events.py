"""The events of XAS (table 4.1 of the thesis), of which every sequence consists.

An event is a tuple of its kind, a name and a value, so that a loop over a sequence can unpack it in
one step. A name or a value that a kind does not use is None:

    kind                     name                    value
    DOCUMENT_START, _END
    PREFIX_MAPPING           (namespace, prefix)
    ELEMENT_START, _END      (namespace, local)
    ATTRIBUTE                (namespace, local)      text
    CONTENT                  None or SAME_TEXT       text
    TYPED_CONTENT            the type                any value of that type
    COMMENT                                          text
    PROCESSING_INSTRUCTION                           target, a space, data
    ENTITY_REFERENCE                                 the entity's name

Two CONTENT events in a row mean the same as one with both texts. After omission (thesis, section
5.4.2) two texts of different elements may become neighbours; a CONTENT marked with SAME_TEXT
belongs to the text before it.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any, Final, NamedTuple

from lasthop_xml.xas.names import Name


class Kind(IntEnum):
    """The kind of an event, which decides the meaning of its name and value."""

    DOCUMENT_START = 0
    DOCUMENT_END = 1
    PREFIX_MAPPING = 2
    ELEMENT_START = 3
    ELEMENT_END = 4
    ATTRIBUTE = 5
    CONTENT = 6
    TYPED_CONTENT = 7
    COMMENT = 8
    PROCESSING_INSTRUCTION = 9
    ENTITY_REFERENCE = 10

    # Events are dictionary keys in hot loops, and the hash of an enum is Python code.
    __hash__ = int.__hash__


class Event(NamedTuple):
    """One event of a sequence, made by the functions of this module."""

    kind: Kind
    name: Name | None
    value: Any

    def __repr__(self) -> str:
        parts = [str(part) for part in (self.name, self.value) if part is not None]
        return f"{self.kind.name}({', '.join(parts)})"


DOCUMENT_START_KIND: Final = Kind.DOCUMENT_START
DOCUMENT_END_KIND: Final = Kind.DOCUMENT_END
PREFIX_MAPPING: Final = Kind.PREFIX_MAPPING
ELEMENT_START: Final = Kind.ELEMENT_START
ELEMENT_END: Final = Kind.ELEMENT_END
ATTRIBUTE: Final = Kind.ATTRIBUTE
CONTENT: Final = Kind.CONTENT
TYPED_CONTENT: Final = Kind.TYPED_CONTENT
COMMENT: Final = Kind.COMMENT
PROCESSING_INSTRUCTION: Final = Kind.PROCESSING_INSTRUCTION
ENTITY_REFERENCE: Final = Kind.ENTITY_REFERENCE

DOCUMENT_START: Final = Event(Kind.DOCUMENT_START, None, None)
DOCUMENT_END: Final = Event(Kind.DOCUMENT_END, None, None)

SAME_TEXT: Final = Name("", "same-text")
"""The name of a CONTENT event that continues the text before it (thesis, section 5.4.2)."""

# The constructor of a named tuple is a Python function that calls this one.
_new = tuple.__new__


def prefix(ns: str, to: str) -> Event:
    """Return a prefix mapping: until the end of the next element, the prefix `to` stands for
    `ns`."""
    return _new(Event, (PREFIX_MAPPING, Name(ns, to), None))


def start(name: Name) -> Event:
    return _new(Event, (ELEMENT_START, name, None))


def end(name: Name) -> Event:
    return _new(Event, (ELEMENT_END, name, None))


def attribute(name: Name, value: str) -> Event:
    return _new(Event, (ATTRIBUTE, name, value))


def content(text: str, *, same_text: bool = False) -> Event:
    return _new(Event, (CONTENT, SAME_TEXT if same_text else None, text))


def typed(type_: Name, value: object) -> Event:
    return _new(Event, (TYPED_CONTENT, type_, value))


def comment(text: str) -> Event:
    return _new(Event, (COMMENT, None, text))


def instruction(target: str, data: str = "") -> Event:
    return _new(Event, (PROCESSING_INSTRUCTION, None, f"{target} {data}" if data else target))


def entity(name: str) -> Event:
    return _new(Event, (ENTITY_REFERENCE, None, name))
