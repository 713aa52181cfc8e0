"""The tree of a schema as it was written, made by `parser` and reduced by `simplify`.

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
    """How often a pattern may occur in a row; the values are the signs written after it."""

    OPTIONAL = "?"
    ZERO_OR_MORE = "*"
    ONE_OR_MORE = "+"


class Connector(Enum):
    """How patterns, or several definitions of one name, are combined; the values are the signs
    between them."""

    GROUP = ","
    CHOICE = "|"
    INTERLEAVE = "&"


@dataclass(frozen=True, slots=True)
class Node:
    """A node of the tree, with its place in the schema."""

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
    """Two or more patterns joined by commas, bars or ampersands."""

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
    """A reference to a definition in this grammar, or with `parent` in the grammar around it."""

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
    """A single value of a datatype; `namespaces` has the meaning of prefixes in it, "" being the
    default."""

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
    """One definition of a name. Only one definition of a name may have no connector."""

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
