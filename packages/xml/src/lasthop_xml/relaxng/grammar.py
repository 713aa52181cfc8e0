"""The definitions of a grammar, with included files and their overrides resolved."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from lasthop_xml.relaxng.lexer import Position, failure
from lasthop_xml.relaxng.patterns import Pattern
from lasthop_xml.relaxng.syntax import (
    START,
    Component,
    Connector,
    DefineNode,
    DivNode,
    IncludeNode,
    PatternNode,
)


class Definition:
    """All definitions of one name in a grammar, which together make one pattern."""

    __slots__ = ("combine", "open", "parts", "pattern", "scope", "whole")

    def __init__(self, scope: GrammarScope) -> None:
        self.scope = scope
        self.parts: list[PatternNode] = []
        self.combine: Connector | None = None
        self.whole = False
        """Whether a definition without a connector (|= or &=) was added; there may be only one."""
        self.pattern: Pattern | None = None
        self.open = False
        """Whether the pattern is being made; a reference to it that is found meanwhile is inside of
        the definition itself."""

    def add(self, node: DefineNode) -> None:
        """Add one more definition of the name (RELAX NG, section 4.17)."""
        label = node.name or "start"
        if node.combine is None:
            if self.whole:
                raise failure(
                    "a definition is repeated without a connector (|= or &=)", node.at, name=label
                )
            self.whole = True
        elif self.combine not in (None, node.combine):
            raise failure(
                "the definitions of a name must not use both |= and &=", node.at, name=label
            )
        else:
            self.combine = node.combine
        self.parts.append(node.content)


class GrammarScope:
    """The names that are defined in one grammar, and the grammar around it."""

    __slots__ = ("definitions", "parent")

    def __init__(
        self, content: tuple[Component, ...], parent: GrammarScope | None, at: Position
    ) -> None:
        self.parent = parent
        self.definitions: dict[str, Definition] = {}
        for node in _flat(content):
            self.definitions.setdefault(node.name, Definition(self)).add(node)
        if START not in self.definitions:
            raise failure("a grammar has no start", at)


def _flat(content: Iterable[Component]) -> Iterator[DefineNode]:
    """Yield all definitions, those of included files with their overrides (RELAX NG, sections 4.7
    and 4.11)."""
    for component in content:
        match component:
            case DefineNode():
                yield component
            case DivNode(_, inner):
                yield from _flat(inner)
            case IncludeNode(_, included, overrides):
                instead = list(_flat(overrides))
                names = {node.name for node in instead}
                inside = list(_flat(included))
                missing = names - {node.name for node in inside}
                for node in instead:
                    if node.name in missing:
                        label = node.name or "start"
                        raise failure(
                            "an include overrides a name that the included file does not define",
                            node.at,
                            name=label,
                        )
                yield from (node for node in inside if node.name not in names)
                yield from instead
