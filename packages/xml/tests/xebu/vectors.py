"""The vectors of vectors/xebu as values: JSON that another implementation can read.

An event is a list of its kind and its parts: `["start", "urn:a", "a"]`, `["attribute", "", "k",
"v"]`, `["typed", "int", "5"]` (the local name of an XML Schema type and the canonical text). Bytes
are hexadecimal.
"""

import json
from pathlib import Path
from typing import Any

from lasthop_xml.xas.events import Event, Kind, content
from lasthop_xml.xas.names import XSD_NS, Name
from lasthop_xml.xas.sequence import EventList
from lasthop_xml.xas.types.table import PRIMITIVES, lexical
from lasthop_xml.xebu.tokens import KnownStrings
from tests.places import VECTORS

FOLDER = VECTORS / "xebu"

KINDS = {
    "document": Kind.DOCUMENT_START,
    "end-document": Kind.DOCUMENT_END,
    "prefix": Kind.PREFIX_MAPPING,
    "start": Kind.ELEMENT_START,
    "end": Kind.ELEMENT_END,
    "attribute": Kind.ATTRIBUTE,
    "content": Kind.CONTENT,
    "more": Kind.CONTENT,
    "typed": Kind.TYPED_CONTENT,
    "comment": Kind.COMMENT,
    "instruction": Kind.PROCESSING_INSTRUCTION,
    "entity": Kind.ENTITY_REFERENCE,
}
WORDS = {kind: word for word, kind in KINDS.items() if word != "more"}


def load(path: Path) -> dict[str, Any]:
    """One file of vectors."""
    content_: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return content_


def event_from_json(parts: list[str]) -> Event:
    """The event that a vector describes."""
    word, *rest = parts
    kind = KINDS[word]
    match kind:
        case Kind.PREFIX_MAPPING | Kind.ELEMENT_START | Kind.ELEMENT_END:
            return Event(kind, Name(*rest), None)
        case Kind.ATTRIBUTE:
            return Event(kind, Name(*rest[:2]), rest[2])
        case Kind.TYPED_CONTENT:
            type_ = Name(XSD_NS, rest[0])
            return Event(kind, type_, PRIMITIVES[type_].exactly(rest[1]))
        case Kind.CONTENT:
            return content(rest[0], same_text=word == "more")
        case _:
            return Event(kind, None, rest[0] if rest else None)


def event_to_json(event: Event) -> list[str]:
    """How a vector describes an event."""
    kind, name, value = event
    if kind is Kind.TYPED_CONTENT and name is not None:
        return ["typed", name.local, lexical(name, value)]
    if kind is Kind.CONTENT:
        return ["content" if name is None else "more", value]
    return [WORDS[kind], *(name or ()), *([] if value is None else [value])]


def message(described: list[list[str]]) -> EventList:
    """The events of a message."""
    return EventList(event_from_json(parts) for parts in described)


def pre_tokens(described: dict[str, list[Any]]) -> KnownStrings:
    """What both ends know beforehand."""
    return KnownStrings(
        tuple(described.get("namespaces", ())),
        tuple(Name(*name) for name in described.get("names", ())),
        tuple((Name(*value[:2]), value[2]) for value in described.get("values", ())),
        tuple(described.get("texts", ())),
    )
