"""The validator, which checks whether a document matches its schema."""

from __future__ import annotations

from lasthop_xml.relaxng.datatypes.whitespace import is_blank
from lasthop_xml.relaxng.derivatives import Derivatives
from lasthop_xml.relaxng.errors import NotValid
from lasthop_xml.relaxng.limits import DEFAULT_LIMITS, SchemaLimits
from lasthop_xml.relaxng.patterns import NOT_ALLOWED, Pattern
from lasthop_xml.relaxng.schema import Schema
from lasthop_xml.xas.events import (
    ATTRIBUTE,
    CONTENT,
    ELEMENT_END,
    ELEMENT_START,
    ENTITY_REFERENCE,
    PREFIX_MAPPING,
    TYPED_CONTENT,
)
from lasthop_xml.xas.names import Name
from lasthop_xml.xas.scope import Scope, outermost
from lasthop_xml.xas.sequence import EventSequence
from lasthop_xml.xas.types.table import lexical


class Validator:
    """Checks documents against a schema, one after the other; derivatives are kept for the next
    document."""

    def __init__(self, schema: Schema, *, limits: SchemaLimits = DEFAULT_LIMITS) -> None:
        self._schema = schema
        self._derivatives = Derivatives(schema, limits.derived)

    def check(self, events: EventSequence) -> None:
        """Raise NotValid at the first event that the schema does not allow."""
        if self._derivatives.is_full:
            self._derivatives.forget()
        _Document(self._schema.start, self._derivatives).check(events)

    def allows(self, events: EventSequence) -> bool:
        """Return whether the schema allows a document."""
        try:
            self.check(events)
        except NotValid:
            return False
        return True


class _Document:
    """The validation of one document, with the pattern that is left."""

    def __init__(self, start: Pattern, derivatives: Derivatives) -> None:
        self._left = start
        self._derivatives = derivatives
        self._text: list[str] = []
        self._in_tag = False
        self._only_text = False  # nothing but text since the last start tag
        self._scopes: list[Scope] = [outermost()]
        self._mappings: list[Name] = []
        self._index = 0

    def check(self, events: EventSequence) -> None:
        for self._index, (kind, name, value) in enumerate(events):
            if kind is ATTRIBUTE and name is not None:
                self._attribute(name, value)
                continue
            if self._in_tag:
                self._close_tag()
            if kind is CONTENT:
                self._text.append(value)
            elif kind is TYPED_CONTENT:
                self._text.append(lexical(name, value))
            elif kind is ELEMENT_START and name is not None:
                self._start(name)
            elif kind is ELEMENT_END:
                self._end(name)
            elif kind is PREFIX_MAPPING and name is not None:
                self._mappings.append(name)
            elif kind is ENTITY_REFERENCE:
                raise NotValid("the text of an entity reference is unknown", index=self._index)
        if not self._left.nullable:
            raise NotValid("a document has no root", index=self._index)

    def _move(self, left: Pattern, detail: str, name: Name | None = None) -> None:
        if left is NOT_ALLOWED:
            fields = {} if name is None else {"name": str(name)}
            raise NotValid(detail, index=self._index, **fields)
        self._left = left

    def _start(self, name: Name) -> None:
        text = self._taken()
        if not is_blank(text):
            self._move(self._after_text(text), "this text is not allowed here")
        scope = self._scopes[-1]
        self._scopes.append(scope.declare(self._mappings) if self._mappings else scope)
        self._mappings = []
        left = self._derivatives.opened(self._left, name)
        self._move(left, "this element is not allowed here", name)
        self._in_tag = self._only_text = True

    def _attribute(self, name: Name, value: str) -> None:
        scope = self._scopes[-1].prefixes
        left = self._derivatives.attribute(self._left, name, value, scope)
        self._move(left, "this attribute is not allowed here, or not with this value", name)

    def _close_tag(self) -> None:
        self._in_tag = False
        self._move(self._derivatives.closed(self._left), "an attribute is missing")

    def _end(self, name: Name | None) -> None:
        text = self._taken()
        if self._only_text:
            scope = self._scopes[-1].prefixes
            left = self._derivatives.only_text(self._left, text, scope)
            self._move(left, "this text is not allowed here", name)
        elif not is_blank(text):
            self._move(self._after_text(text), "this text is not allowed here", name)
        self._only_text = False
        self._scopes.pop()
        self._move(self._derivatives.ended(self._left), "an element is not complete", name)

    def _taken(self) -> str:
        text = "".join(self._text)
        self._text.clear()
        return text

    def _after_text(self, text: str) -> Pattern:
        return self._derivatives.text(self._left, text, self._scopes[-1].prefixes)
