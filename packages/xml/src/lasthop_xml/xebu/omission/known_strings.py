"""The strings that both ends know because they have the same schema (thesis, section 5.4 and table
7.7)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, TypeVar

from lasthop_xml.relaxng.nameclass import names_of
from lasthop_xml.relaxng.patterns import Attribute, Data, Value, reached
from lasthop_xml.relaxng.schema import Schema
from lasthop_xml.xas.names import XML_NS, XSD_NS, XSI_NS, XSI_TYPE, Name
from lasthop_xml.xas.types.table import PRIMITIVES
from lasthop_xml.xebu.layout import LONGEST_KEPT, TOKENS
from lasthop_xml.xebu.tokens import KnownStrings

Item = TypeVar("Item")

MOST_KNOWN: Final = TOKENS * 3 // 4
"""The largest number of known strings in each table; the other tokens are for the strings of a
session."""


def known_strings(schema: Schema) -> KnownStrings:
    """Return names, prefixes, fixed values and texts of a schema, in the order in which it leads to
    them."""
    names: dict[Name, None] = {}
    values: dict[tuple[Name, str], None] = {}
    texts: dict[str, None] = {}
    typed = False
    for element in schema.elements:
        names |= dict.fromkeys(names_of(element.names))
        for pattern in reached(element.content):
            if isinstance(pattern, Attribute):
                own = list(names_of(pattern.names))
                names |= dict.fromkeys(own)
                fixed = [each.text for each in reached(pattern.content) if isinstance(each, Value)]
                values |= dict.fromkeys((name, text) for name in own for text in fixed)
            elif isinstance(pattern, Value):
                texts[pattern.text] = None
            elif isinstance(pattern, Data) and Name(XSD_NS, pattern.type.name) in PRIMITIVES:
                typed = True
                names[XSI_TYPE] = None
                values[XSI_TYPE, f"xsd:{pattern.type.name}"] = None
    prefixes = {prefix: ns for prefix, ns in schema.prefixes.items() if ns != XML_NS}
    if typed:
        prefixes = {"xsi": XSI_NS, "xsd": XSD_NS, **prefixes}
    names |= dict.fromkeys(Name(ns, prefix) for prefix, ns in prefixes.items())
    kept = tuple(_some(names, lambda name: name.local))
    return KnownStrings(
        tuple(_some(dict.fromkeys(name.ns for name in kept), str)),
        kept,
        tuple(_some(values, lambda value: value[1])),
        tuple(_some(texts, str)),
    )


def _some(items: Iterable[Item], text: Callable[[Item], str]) -> list[Item]:
    """Return the items that are worth a token: not too long, and as many as MOST_KNOWN."""
    short = (item for item in items if len(text(item).encode()) <= LONGEST_KEPT)
    return list(short)[:MOST_KNOWN]
