"""Schemas: read from text in the compact syntax, and kept as patterns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lasthop_xml.relaxng.errors import SchemaError
from lasthop_xml.relaxng.files import File, Files, Loader, no_files
from lasthop_xml.relaxng.limits import DEFAULT_LIMITS, SchemaLimits
from lasthop_xml.relaxng.parser import PatternReader
from lasthop_xml.relaxng.patterns import ElementPattern, Pattern, Patterns
from lasthop_xml.relaxng.restrictions import Restrictions
from lasthop_xml.relaxng.simplify import Simplifier


@dataclass(frozen=True, slots=True)
class Schema:
    """A schema in the simple form of RELAX NG, against which documents are checked."""

    start: Pattern
    """The pattern of the root: an element, or a choice of elements."""
    elements: tuple[ElementPattern, ...]
    """All elements that a document can have, in the order in which the schema leads to them. An
    element's index identifies it at every peer that has the same schema."""
    patterns: Patterns
    """The factory that made the schema's patterns, for deriving others from them."""
    prefixes: Mapping[str, str]
    """The prefixes that the schema declares, which documents tend to use as well; "" has the
    default namespace."""


def read_schema(
    text: str | bytes,
    *,
    source: str = "",
    loader: Loader = no_files,
    limits: SchemaLimits = DEFAULT_LIMITS,
) -> Schema:
    """Return the schema that a text in compact syntax describes; raise SchemaError for an error.

    >>> schema = read_schema("element note { attribute to { text }, text }")
    >>> len(schema.elements)
    1
    """
    file = File(source, decoded(text) if isinstance(text, bytes) else text)
    files = Files(loader, limits)
    with files.opened(file):
        reader = PatternReader(file, files, "")
        tree = reader.whole()
    patterns = Patterns(limits.patterns)
    simplifier = Simplifier(patterns, limits)
    start = simplifier.whole(tree)
    elements = Restrictions(simplifier.positions).check(start, tree.at)
    prefixes = {**reader.prefixes, **({"": reader.default} if reader.default else {})}
    return Schema(start, tuple(elements), patterns, prefixes)


def decoded(data: bytes) -> str:
    """Return the text of a schema file: UTF-16 if it starts with a byte order mark that says so,
    else UTF-8 (compact syntax, section 3)."""
    encoding = "utf-16" if data[:2] in {b"\xff\xfe", b"\xfe\xff"} else "utf-8"
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        raise SchemaError("a schema is not in UTF-8 or UTF-16", offset=error.start) from None
