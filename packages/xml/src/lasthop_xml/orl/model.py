"""A description as the parser understands it: every name resolved, every rule checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from lasthop_xml.xas.names import Name


class Occurrence(StrEnum):
    """How often a component stands in a value; what is written behind its type."""

    ONE = ""
    OPTIONAL = "?"
    REPEATED = "*"


@dataclass(frozen=True)
class Component:
    """One part of a structured value: an element with a type."""

    name: Name
    type: Name
    occurrence: Occurrence
    line: int
    column: int


@dataclass(frozen=True)
class Structure:
    """A `type` of the description."""

    name: Name
    components: tuple[Component, ...]
    line: int
    column: int


@dataclass(frozen=True)
class Description:
    """A whole file."""

    package: str | None
    """The module that has the classes already; None if they are to be generated."""
    codec_package: str | None
    """Where the generated module belongs."""
    codec_name: str | None
    """What the encoder and the decoder are called, without these words."""
    namespaces: Mapping[str, str]
    """By their prefixes."""
    structures: tuple[Structure, ...]
