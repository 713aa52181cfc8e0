"""From the tree of a schema to its simple form (RELAX NG, section 4): definitions at their uses,
few kinds of patterns.

The parser has already dealt with annotations, namespaces, includes and external files. The content
of an element is made after everything around it, so that an element may contain itself; no other
pattern may.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from lasthop_xml.relaxng.datatypes.library import find_type
from lasthop_xml.relaxng.errors import SchemaTooLarge
from lasthop_xml.relaxng.grammar import Definition, GrammarScope
from lasthop_xml.relaxng.lexer import Position, failure
from lasthop_xml.relaxng.limits import SchemaLimits
from lasthop_xml.relaxng.patterns import EMPTY, NOT_ALLOWED, TEXT, ElementPattern, Pattern, Patterns
from lasthop_xml.relaxng.syntax import (
    START,
    AttributeNode,
    ConnectedNode,
    Connector,
    DataNode,
    ElementNode,
    EmptyNode,
    GrammarNode,
    ListNode,
    MixedNode,
    NotAllowedNode,
    PatternNode,
    RefNode,
    Repeat,
    RepeatedNode,
    TextNode,
    ValueNode,
)
from lasthop_xml.xas.errors import InvalidValue, UnknownType


class Simplifier:
    """Builds the simple form of one schema."""

    def __init__(self, patterns: Patterns, limits: SchemaLimits) -> None:
        self.positions: dict[Pattern, Position] = {}
        """The place where each element or attribute was written first."""
        self._patterns = patterns
        self._limits = limits
        self._depth = 0
        self._unused = False  # the definitions left are used by no document
        self._waiting: deque[tuple[ElementPattern, PatternNode, GrammarScope | None]] = deque()
        self._scopes: list[GrammarScope] = []

    def whole(self, tree: PatternNode) -> Pattern:
        """Return the pattern of a document's root."""
        start = self._pattern(tree, None)
        self._fill()
        # Unused definitions have no effect, but must not refer to missing ones.
        self._unused = True
        for scope in self._scopes:
            for definition in scope.definitions.values():
                self._definition(definition)
        self._fill()
        return start

    def _fill(self) -> None:
        while self._waiting:
            element, content, scope = self._waiting.popleft()
            element.content = self._pattern(content, scope)

    def _pattern(self, node: PatternNode, scope: GrammarScope | None) -> Pattern:
        self._depth += 1
        if self._depth > 2 * self._limits.depth:
            raise SchemaTooLarge(
                "definitions are too deeply nested",
                line=node.at.line,
                column=node.at.column,
                most=2 * self._limits.depth,
            )
        found = self._simple(node, scope)
        self._depth -= 1
        return found

    def _simple(self, node: PatternNode, scope: GrammarScope | None) -> Pattern:
        patterns = self._patterns
        match node:
            case ElementNode(at, names, content):
                element = patterns.element(names)
                self.positions[element] = at
                self._waiting.append((element, content, scope))
                return element
            case AttributeNode(at, names, content):
                attribute = patterns.attribute(names, self._pattern(content, scope))
                self.positions.setdefault(attribute, at)
                return attribute
            case ConnectedNode(_, connector, parts):
                return self._connected(connector, [self._pattern(part, scope) for part in parts])
            case RepeatedNode(_, repeat, content):
                return self._repeated(repeat, self._pattern(content, scope))
            case ListNode(_, content):
                return patterns.list_of(self._pattern(content, scope))
            # RELAX NG, section 4.13.
            case MixedNode(_, content):
                return patterns.interleave((self._pattern(content, scope), TEXT))
            case RefNode():
                return self._reference(node, scope)
            case EmptyNode():
                return EMPTY
            case TextNode():
                return TEXT
            case NotAllowedNode():
                return NOT_ALLOWED
            case ValueNode():
                return self._value(node)
            case DataNode():
                return self._data(node, scope)
            case GrammarNode(at, content):
                inner = GrammarScope(content, scope, at)
                self._scopes.append(inner)
                return self._definition(inner.definitions[START])

    def _connected(self, connector: Connector, parts: Iterable[Pattern]) -> Pattern:
        match connector:
            case Connector.CHOICE:
                return self._patterns.choice(parts)
            case Connector.GROUP:
                return self._patterns.group(parts)
            case Connector.INTERLEAVE:
                return self._patterns.interleave(parts)

    def _repeated(self, repeat: Repeat, content: Pattern) -> Pattern:
        # RELAX NG, sections 4.14 and 4.15.
        if repeat is not Repeat.OPTIONAL:
            content = self._patterns.one_or_more(content)
        return content if repeat is Repeat.ONE_OR_MORE else self._patterns.choice((EMPTY, content))

    def _reference(self, node: RefNode, scope: GrammarScope | None) -> Pattern:
        if node.parent and scope is not None:
            scope = scope.parent
        definition = None if scope is None else scope.definitions.get(node.name)
        if definition is None:
            raise failure("no definition has this name", node.at, name=node.name)
        if definition.open and self._unused:
            return NOT_ALLOWED  # section 4.19 removes unused definitions
        # RELAX NG, section 4.19: only inside an element may a definition refer to itself.
        if definition.open:
            raise failure(
                "a definition refers to itself outside of elements", node.at, name=node.name
            )
        return self._definition(definition)

    def _definition(self, definition: Definition) -> Pattern:
        if definition.pattern is None:
            definition.open = True
            parts = [self._pattern(part, definition.scope) for part in definition.parts]
            definition.open = False
            connector = definition.combine or Connector.CHOICE
            definition.pattern = parts[0] if len(parts) == 1 else self._connected(connector, parts)
        return definition.pattern

    def _value(self, node: ValueNode) -> Pattern:
        try:
            type_ = find_type(node.library, node.type)
            return self._patterns.value(type_, node.text, node.namespaces)
        except (InvalidValue, UnknownType) as error:
            raise failure(error.detail, node.at, **error.fields) from None

    def _data(self, node: DataNode, scope: GrammarScope | None) -> Pattern:
        try:
            params = [(param.name, param.value) for param in node.params]
            type_ = find_type(node.library, node.type, params)
        except (InvalidValue, UnknownType) as error:
            raise failure(error.detail, node.at, **error.fields) from None
        exclude = None if node.exclude is None else self._pattern(node.exclude, scope)
        return self._patterns.data(type_, exclude)
