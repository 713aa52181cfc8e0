"""A description as the parser returns it: every name resolved, every rule checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from lasthop_xml.xas.names import Name


class Occurrence(StrEnum):
    """How often a component may occur in a value; the values are the signs written after its
    type."""

    ONE = ""
    OPTIONAL = "?"
    REPEATED = "*"


@dataclass(frozen=True)
class Component:
    """One component of a structured value: an element with a type."""

    name: Name
    type: Name
    occurrence: Occurrence
    line: int
    column: int


@dataclass(frozen=True)
class Structure:
    """A type that a description defines with the keyword `type`: its name and the components of its
    values."""

    name: Name
    components: tuple[Component, ...]
    line: int
    column: int


@dataclass(frozen=True)
class Description:
    """A whole description file: its headers, its namespaces and its types."""

    package: str | None
    """The existing module that defines the classes; None if the classes are to be generated."""
    codec_package: str | None
    """The package that the generated module belongs to, or None."""
    codec_name: str | None
    """The name of the encoder and the decoder, without "Encoder" and "Decoder"; None if it is to be
    made from the name of the file."""
    namespaces: Mapping[str, str]
    """The declared namespaces by their prefixes."""
    structures: tuple[Structure, ...]
