"""A language of WBXML: its names, its tokens and its document type definition.

A language is written down once, from octets to names. The tables that the encoder needs, from names
to octets and the longest prefix first, are derived here when the language is made.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

Page = Mapping[int, str]
Pages = Mapping[int, Page]
"""The names of a language by octet, by code page."""


@dataclass(frozen=True)
class Model:
    """One element of a document type definition."""

    children: str | None = None
    """A regular expression over the child tags, each followed by a space. None stands for #PCDATA,
    an empty expression for EMPTY."""

    required: frozenset[str] = frozenset()
    optional: frozenset[str] = frozenset()
    choices: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """The allowed values of enumerated attributes."""


@dataclass(frozen=True, eq=False)
class Language:
    """A document type that has a binary form."""

    key: str
    """The language's name on a command line."""
    name: str
    number: int
    """The public identifier as a number (WBXML 7.2)."""
    public_id: str
    system_id: str
    text_type: str
    binary_type: str
    """The media types of the text form and of the binary form."""
    tags: Pages
    attribute_starts: Pages
    """Attribute names, or names with the beginning of a value: `href=http://`."""
    attribute_values: Pages
    dates: frozenset[str] = frozenset()
    """Attributes that hold a date, which is packed into OPAQUE."""
    write_values: bool = True
    """Whether attribute value tokens are written. They are always read."""
    models: Mapping[str, Model] = field(default_factory=dict)

    @cached_property
    def root(self) -> str:
        """The root element: the first tag of page 0 in all of WAP's push languages."""
        return next(iter(self.tags[0].values()))

    @cached_property
    def tag_octets(self) -> dict[str, tuple[int, int]]:
        """The code page and octet of each tag."""
        return {
            name: (page, octet)
            for page, names in self.tags.items()
            for octet, name in names.items()
        }

    @cached_property
    def starts(self) -> dict[str, list[tuple[str, int, int]]]:
        """The beginnings of values that have a token, by attribute, with code page and octet,
        longest first."""
        found: dict[str, list[tuple[str, int, int]]] = {}
        for page, names in self.attribute_starts.items():
            for octet, start in names.items():
                name, _, prefix = start.partition("=")
                found.setdefault(name, []).append((prefix, page, octet))
        for prefixes in found.values():
            prefixes.sort(key=lambda each: -len(each[0]))
        return found

    @cached_property
    def one_page(self) -> bool:
        """Whether the language has one code page, so that everything with a token is written alike
        wherever it stands."""
        return all(pages.keys() <= {0} for pages in self._tables)

    @property
    def _tables(self) -> tuple[Pages, ...]:
        return self.tags, self.attribute_starts, self.attribute_values

    @cached_property
    def exact_starts(self) -> dict[tuple[str, str], tuple[int, int]]:
        """Code page and octet of attributes whose whole value is in their start."""
        return {
            (name, prefix): (page, octet)
            for name, prefixes in self.starts.items()
            for prefix, page, octet in prefixes
            if prefix
        }

    @cached_property
    def value_octets(self) -> dict[str, tuple[int, int]]:
        """The code page and octet of each piece of a value that has a token."""
        return {
            piece: (page, octet)
            for page, pieces in self.attribute_values.items()
            for octet, piece in pieces.items()
        }

    @cached_property
    def value_pieces(self) -> re.Pattern[str] | None:
        """Finds pieces of values that have a token, the longest first; None if they are not
        written."""
        if not self.write_values or not self.value_octets:
            return None
        pieces = sorted(self.value_octets, key=len, reverse=True)
        return re.compile(f"({'|'.join(map(re.escape, pieces))})")

    @cached_property
    def without_text(self) -> frozenset[str]:
        """Elements in which white space between tags means nothing."""
        return frozenset(tag for tag, model in self.models.items() if model.children is not None)
