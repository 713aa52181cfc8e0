"""The tree of a schema as it was written: what `parser` makes and `simplify` takes apart.

Prefixes are resolved already, other files are in place of the references to them, and annotations
are left out, since nothing depends on them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from lasthop_xml.relaxng.lexer import Position
from lasthop_xml.relaxng.nameclass import NameClass


class Repeat(Enum):
    """How often a pattern may stand in a row."""

    OPTIONAL = "?"
    ZERO_OR_MORE = "*"
    ONE_OR_MORE = "+"


class Connector(Enum):
    """How patterns are put together, and how definitions of one name are."""

    GROUP = ","
    CHOICE = "|"
    INTERLEAVE = "&"


@dataclass(frozen=True, slots=True)
class Node:
    """Anything that stands somewhere."""

    at: Position


@dataclass(frozen=True, slots=True)
class ElementNode(Node):
    names: NameClass
    content: PatternNode


@dataclass(frozen=True, slots=True)
class AttributeNode(Node):
    names: NameClass
    content: PatternNode


@dataclass(frozen=True, slots=True)
class ConnectedNode(Node):
    """Two or more patterns with commas, bars or ampersands between them."""

    connector: Connector
    parts: tuple[PatternNode, ...]


@dataclass(frozen=True, slots=True)
class RepeatedNode(Node):
    repeat: Repeat
    content: PatternNode


@dataclass(frozen=True, slots=True)
class ListNode(Node):
    content: PatternNode


@dataclass(frozen=True, slots=True)
class MixedNode(Node):
    content: PatternNode


@dataclass(frozen=True, slots=True)
class RefNode(Node):
    """The name of a definition in this grammar, or with `parent` in the one around it."""

    name: str
    parent: bool


@dataclass(frozen=True, slots=True)
class EmptyNode(Node):
    pass


@dataclass(frozen=True, slots=True)
class TextNode(Node):
    pass


@dataclass(frozen=True, slots=True)
class NotAllowedNode(Node):
    pass


@dataclass(frozen=True, slots=True)
class ValueNode(Node):
    """One value; `namespaces` says what prefixes in it stand for, "" being the default."""

    library: str
    type: str
    text: str
    namespaces: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Param(Node):
    name: str
    value: str


@dataclass(frozen=True, slots=True)
class DataNode(Node):
    library: str
    type: str
    params: tuple[Param, ...]
    exclude: PatternNode | None
    namespaces: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class GrammarNode(Node):
    content: tuple[Component, ...]


PatternNode: TypeAlias = (
    ElementNode
    | AttributeNode
    | ConnectedNode
    | RepeatedNode
    | ListNode
    | MixedNode
    | RefNode
    | EmptyNode
    | TextNode
    | NotAllowedNode
    | ValueNode
    | DataNode
    | GrammarNode
)

START = ""
"""The name under which `start` is defined; no other definition can have it."""


@dataclass(frozen=True, slots=True)
class DefineNode(Node):
    """One definition of a name. Without a connector it is the only one that is."""

    name: str
    combine: Connector | None
    content: PatternNode


@dataclass(frozen=True, slots=True)
class DivNode(Node):
    content: tuple[Component, ...]


@dataclass(frozen=True, slots=True)
class IncludeNode(Node):
    """The definitions of another file, except those that `overrides` defines again."""

    included: tuple[Component, ...]
    overrides: tuple[Component, ...]


Component: TypeAlias = DefineNode | DivNode | IncludeNode
