"""Derivatives of patterns: the pattern that the rest of a document must match after an event.

The method is Brzozowski's, for RELAX NG by Clark: no automaton is built in advance, and interleaves
and recursion need no special treatment. Equal patterns are one object, so a derivative is computed
once and looked up afterwards.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from lasthop_xml.relaxng.datatypes.datatype import Namespaces
from lasthop_xml.relaxng.datatypes.whitespace import is_blank, words
from lasthop_xml.relaxng.patterns import (
    EMPTY,
    NOT_ALLOWED,
    TEXT,
    After,
    Attribute,
    Choice,
    Data,
    ElementPattern,
    Group,
    Interleave,
    ListOf,
    OneOrMore,
    Pattern,
    Patterns,
    Value,
)
from lasthop_xml.relaxng.schema import Schema
from lasthop_xml.xas.errors import InvalidValue
from lasthop_xml.xas.names import Name

MOST_REMEMBERED: Final = 20_000
"""The largest number of derivatives by start tags that are cached: without a limit, documents with
ever new names would fill the memory."""


class Derivatives:
    """Computes and caches derivatives of one schema's patterns."""

    def __init__(self, schema: Schema, most: int) -> None:
        self._schema = schema
        self._most = most
        self.forget()

    def forget(self) -> None:
        """Forget all derivatives and keep only the schema's own patterns."""
        self._patterns = Patterns(self._most, base=self._schema.patterns)
        self._opened: dict[tuple[Pattern, Name], Pattern] = {}
        self._closed: dict[Pattern, Pattern] = {}

    @property
    def is_full(self) -> bool:
        """Return whether so many patterns were made that `forget` should be called before the next
        document."""
        return 2 * len(self._patterns) > self._most

    # A start tag up to its name

    def opened(self, pattern: Pattern, name: Name) -> Pattern:
        """Return the pattern after the name of a start tag: an `After` with the element's content
        and what follows it."""
        key = pattern, name
        found = self._opened.get(key)
        if found is None:
            if len(self._opened) >= MOST_REMEMBERED:
                self._opened.clear()
            found = self._opened[key] = self._open(pattern, name)
        return found

    def _open(self, pattern: Pattern, name: Name) -> Pattern:
        make = self._patterns
        match pattern:
            case ElementPattern():
                inside = pattern.names.contains(name)
                return make.after(pattern.content, EMPTY) if inside else NOT_ALLOWED
            case Choice():
                return make.choice([self.opened(part, name) for part in pattern.parts])
            case Group():
                found = []
                for place, part in enumerate(pattern.parts):
                    rest = pattern.parts[place + 1 :]
                    found.append(
                        self._then(
                            self.opened(part, name),
                            lambda then, rest=rest: make.group((then, *rest)),  # type: ignore[misc]
                        )
                    )
                    if not part.nullable:
                        break
                return make.choice(found)
            case Interleave():
                parts = pattern.parts
                return make.choice(
                    [
                        self._then(
                            self.opened(part, name),
                            lambda then, place=place: make.interleave(  # type: ignore[misc]
                                (*parts[:place], then, *parts[place + 1 :])
                            ),
                        )
                        for place, part in enumerate(parts)
                    ]
                )
            case OneOrMore():
                again = make.choice((EMPTY, pattern))
                return self._then(
                    self.opened(pattern.content, name), lambda then: make.group((then, again))
                )
            case After():
                return self._then(
                    self.opened(pattern.inside, name), lambda then: make.after(then, pattern.then)
                )
            case _:
                return NOT_ALLOWED

    def _then(self, pattern: Pattern, change: Callable[[Pattern], Pattern]) -> Pattern:
        """Return a pattern with `change` applied to what follows the element."""
        make = self._patterns
        if isinstance(pattern, After):
            return make.after(pattern.inside, change(pattern.then))
        if isinstance(pattern, Choice):
            return make.choice([self._then(part, change) for part in pattern.parts])
        return NOT_ALLOWED

    # Attributes

    def attribute(self, pattern: Pattern, name: Name, text: str, scope: Namespaces) -> Pattern:
        """Return the pattern that is left after an attribute."""
        make = self._patterns
        match pattern:
            case Attribute():
                fits = pattern.names.contains(name) and self._fits(pattern.content, text, scope)
                return EMPTY if fits else NOT_ALLOWED
            case After():
                inside = self.attribute(pattern.inside, name, text, scope)
                return make.after(inside, pattern.then)
            case Choice():
                parts = pattern.parts
                return make.choice([self.attribute(part, name, text, scope) for part in parts])
            case Group() | Interleave():
                connect = make.group if isinstance(pattern, Group) else make.interleave
                parts = pattern.parts
                found = []
                for place, part in enumerate(parts):
                    left = self.attribute(part, name, text, scope)
                    if left is not NOT_ALLOWED:
                        found.append(connect((*parts[:place], left, *parts[place + 1 :])))
                return make.choice(found)
            case OneOrMore():
                left = self.attribute(pattern.content, name, text, scope)
                return make.group((left, make.choice((EMPTY, pattern))))
            case _:
                return NOT_ALLOWED

    def _fits(self, pattern: Pattern, text: str, scope: Namespaces) -> bool:
        blank = pattern.nullable and is_blank(text)
        return blank or self.text(pattern, text, scope).nullable

    def closed(self, pattern: Pattern) -> Pattern:
        """Return the pattern that is left after the last attribute; attributes that are missing
        make it NOT_ALLOWED."""
        found = self._closed.get(pattern)
        if found is None:
            found = self._closed[pattern] = self._close(pattern)
        return found

    def _close(self, pattern: Pattern) -> Pattern:
        make = self._patterns
        match pattern:
            case Attribute():
                return NOT_ALLOWED
            case After():
                return make.after(self.closed(pattern.inside), pattern.then)
            case Choice():
                return make.choice([self.closed(part) for part in pattern.parts])
            case Group():
                return make.group([self.closed(part) for part in pattern.parts])
            case Interleave():
                return make.interleave([self.closed(part) for part in pattern.parts])
            case OneOrMore():
                return make.one_or_more(self.closed(pattern.content))
            case _:
                return pattern

    # Texts

    def text(self, pattern: Pattern, text: str, scope: Namespaces) -> Pattern:
        """Return the pattern that is left after a text."""
        make = self._patterns
        match pattern:
            case After():
                return make.after(self.text(pattern.inside, text, scope), pattern.then)
            case Choice():
                return make.choice([self.text(part, text, scope) for part in pattern.parts])
            case Group():
                found = []
                for place, part in enumerate(pattern.parts):
                    left = self.text(part, text, scope)
                    found.append(make.group((left, *pattern.parts[place + 1 :])))
                    if not part.nullable:
                        break
                return make.choice(found)
            case Interleave():
                parts = pattern.parts
                return make.choice(
                    [
                        make.interleave(
                            (*parts[:place], self.text(part, text, scope), *parts[place + 1 :])
                        )
                        for place, part in enumerate(parts)
                    ]
                )
            case OneOrMore():
                left = self.text(pattern.content, text, scope)
                return make.group((left, make.choice((EMPTY, pattern))))
            case Value():
                return EMPTY if _means(pattern, text, scope) else NOT_ALLOWED
            case Data():
                if not pattern.type.allows(text, scope):
                    return NOT_ALLOWED
                but = pattern.exclude
                return NOT_ALLOWED if but and self.text(but, text, scope).nullable else EMPTY
            case ListOf():
                left = pattern.content
                for word in words(text):
                    left = self.text(left, word, scope)
                return EMPTY if left.nullable else NOT_ALLOWED
            case _:
                return TEXT if pattern is TEXT else NOT_ALLOWED

    def only_text(self, pattern: Pattern, text: str, scope: Namespaces) -> Pattern:
        """Return the pattern that is left after the text of an element without child elements; a
        text of white space may also be treated as no text."""
        left = self.text(pattern, text, scope)
        return self._patterns.choice((pattern, left)) if is_blank(text) else left

    def ended(self, pattern: Pattern) -> Pattern:
        """Return the pattern that is left after an end tag."""
        if isinstance(pattern, Choice):
            return self._patterns.choice([self.ended(part) for part in pattern.parts])
        if isinstance(pattern, After) and pattern.inside.nullable:
            return pattern.then
        return NOT_ALLOWED


def _means(pattern: Value, text: str, scope: Namespaces) -> bool:
    try:
        return pattern.type.value(text, scope) == pattern.value
    except InvalidValue:
        return False
