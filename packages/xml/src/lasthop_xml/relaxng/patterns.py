"""The simple form of a schema: the patterns that are left after section 4 of RELAX NG.

Patterns are made only by a `Patterns`, which makes equal ones once: `is` compares them, and a loop
that meets the same pattern again can look up its earlier result. Choices, groups and interleaves
have any number of parts. `After` is never part of a schema; only the validator uses it.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping

from lasthop_xml.relaxng.datatypes.datatype import Datatype
from lasthop_xml.relaxng.errors import SchemaTooLarge
from lasthop_xml.relaxng.limits import DEFAULT_LIMITS
from lasthop_xml.relaxng.nameclass import NameClass


class Pattern:
    """A pattern: a set of sequences of attributes, elements and texts."""

    __slots__ = ("nullable",)

    nullable: bool
    """Whether the set contains the empty sequence."""


class Empty(Pattern):
    """The pattern of the empty sequence alone."""

    __slots__ = ()


class NotAllowed(Pattern):
    """The pattern that no sequence matches, not even the empty one."""

    __slots__ = ()


class Text(Pattern):
    """The pattern of any text, including none."""

    __slots__ = ()


class Data(Pattern):
    """The pattern of a text that is a value of a datatype, but not one of the exceptions."""

    __slots__ = ("exclude", "type")

    def __init__(self, type_: Datatype, exclude: Pattern | None) -> None:
        self.nullable = False
        self.type = type_
        self.exclude = exclude


class Value(Pattern):
    """The pattern of a text that has the same meaning as `text` in its datatype.

    `text` is as written in the schema; `namespaces` are those of the prefixes in it.
    """

    __slots__ = ("namespaces", "text", "type", "value")

    def __init__(self, type_: Datatype, text: str, namespaces: Mapping[str, str]) -> None:
        self.nullable = False
        self.type = type_
        self.text = text
        self.namespaces = namespaces
        self.value: Hashable = type_.value(text, namespaces)


class ListOf(Pattern):
    """The pattern of a text whose words, one by one, match the content."""

    __slots__ = ("content",)

    def __init__(self, content: Pattern) -> None:
        self.nullable = False
        self.content = content


class Attribute(Pattern):
    """The pattern of one attribute whose value matches the content."""

    __slots__ = ("content", "names")

    def __init__(self, names: NameClass, content: Pattern) -> None:
        self.nullable = False
        self.names = names
        self.content = content


class ElementPattern(Pattern):
    """The pattern of one element. Every element of a schema is a separate object; it may contain
    itself."""

    __slots__ = ("content", "names")

    def __init__(self, names: NameClass, content: Pattern) -> None:
        self.nullable = False
        self.names = names
        self.content = content


class OneOrMore(Pattern):
    """The pattern of one or more sequences of the content in a row."""

    __slots__ = ("content",)

    def __init__(self, content: Pattern) -> None:
        self.nullable = content.nullable
        self.content = content


class Choice(Pattern):
    """The pattern of all sequences that match at least one part. If `Empty` is a part, it is the
    first."""

    __slots__ = ("parts",)

    def __init__(self, parts: tuple[Pattern, ...]) -> None:
        self.nullable = any(part.nullable for part in parts)
        self.parts = parts


class Group(Pattern):
    """The pattern of a sequence that matches the first part, followed by one that matches the
    second part, and so on; the order of attributes does not matter."""

    __slots__ = ("parts",)

    def __init__(self, parts: tuple[Pattern, ...]) -> None:
        self.nullable = all(part.nullable for part in parts)
        self.parts = parts


class Interleave(Pattern):
    """The pattern of a mixture of sequences, one for each part; the order within each sequence is
    kept."""

    __slots__ = ("parts",)

    def __init__(self, parts: tuple[Pattern, ...]) -> None:
        self.nullable = all(part.nullable for part in parts)
        self.parts = parts


class After(Pattern):
    """The pattern of the rest of an open element, followed by what may come after its end."""

    __slots__ = ("inside", "then")

    def __init__(self, inside: Pattern, then: Pattern) -> None:
        self.nullable = False
        self.inside = inside
        self.then = then


def _constant(pattern: Pattern, *, nullable: bool) -> Pattern:
    pattern.nullable = nullable
    return pattern


EMPTY = _constant(Empty(), nullable=True)
NOT_ALLOWED = _constant(NotAllowed(), nullable=False)
TEXT = _constant(Text(), nullable=True)


def reached(pattern: Pattern) -> Iterator[Pattern]:
    """Yield a pattern and all of its parts that belong to the same element, each once."""
    waiting = [pattern]
    seen = set(waiting)
    while waiting:
        pattern = waiting.pop()
        yield pattern
        parts: tuple[Pattern, ...] = ()
        if isinstance(pattern, Choice | Group | Interleave):
            parts = pattern.parts
        elif isinstance(pattern, OneOrMore):
            parts = (pattern.content,)
        new = [part for part in dict.fromkeys(parts) if part not in seen]
        seen.update(new)
        waiting += reversed(new)


class Patterns:
    """Makes patterns, each once and as simple as sections 4.20 and 4.21 of RELAX NG ask for."""

    def __init__(
        self, most: int = DEFAULT_LIMITS.patterns, *, base: Patterns | None = None
    ) -> None:
        self._most = most
        self._base: Mapping[Hashable, Pattern] = {} if base is None else base._made
        self._made: dict[Hashable, Pattern] = {}

    def __len__(self) -> int:
        return len(self._made)

    def _once(self, key: Hashable, pattern: Pattern) -> Pattern:
        found = self._base.get(key) or self._made.get(key)
        if found is not None:
            return found
        if len(self._made) >= self._most:
            raise SchemaTooLarge("a schema has too many patterns", most=self._most)
        self._made[key] = pattern
        return pattern

    def data(self, type_: Datatype, exclude: Pattern | None = None) -> Pattern:
        if exclude is NOT_ALLOWED:
            exclude = None
        return self._once((Data, type_, exclude), Data(type_, exclude))

    def value(self, type_: Datatype, text: str, namespaces: Mapping[str, str]) -> Pattern:
        made = Value(type_, text, namespaces)
        return self._once((Value, type_, text, made.value), made)

    def list_of(self, content: Pattern) -> Pattern:
        return self._with_content(ListOf, content)

    def one_or_more(self, content: Pattern) -> Pattern:
        if content is EMPTY or isinstance(content, OneOrMore):
            return content
        return self._with_content(OneOrMore, content)

    def _with_content(self, kind: type[ListOf | OneOrMore], content: Pattern) -> Pattern:
        if content is NOT_ALLOWED:
            return NOT_ALLOWED
        return self._once((kind, content), kind(content))

    def attribute(self, names: NameClass, content: Pattern) -> Pattern:
        if content is NOT_ALLOWED:
            return NOT_ALLOWED
        return self._once((Attribute, names, content), Attribute(names, content))

    def element(self, names: NameClass) -> ElementPattern:
        """Return a new element whose content is filled in later."""
        made = ElementPattern(names, NOT_ALLOWED)
        self._once((ElementPattern, id(made)), made)
        return made

    def choice(self, parts: Iterable[Pattern]) -> Pattern:
        different = dict.fromkeys(self._flat(Choice, parts))
        different.pop(NOT_ALLOWED, None)
        if EMPTY in different:
            del different[EMPTY]
            different = {EMPTY: None, **different}
        return self._several(Choice, tuple(different), NOT_ALLOWED)

    def group(self, parts: Iterable[Pattern]) -> Pattern:
        return self._all_of(Group, parts)

    def interleave(self, parts: Iterable[Pattern]) -> Pattern:
        return self._all_of(Interleave, parts)

    def _all_of(self, kind: type[Group | Interleave], parts: Iterable[Pattern]) -> Pattern:
        kept = [part for part in self._flat(kind, parts) if part is not EMPTY]
        if NOT_ALLOWED in kept:
            return NOT_ALLOWED
        return self._several(kind, tuple(kept), EMPTY)

    def _several(
        self, kind: type[Choice | Group | Interleave], parts: tuple[Pattern, ...], none: Pattern
    ) -> Pattern:
        if len(parts) < 2:
            return parts[0] if parts else none
        return self._once((kind, parts), kind(parts))

    def after(self, inside: Pattern, then: Pattern) -> Pattern:
        if inside is NOT_ALLOWED or then is NOT_ALLOWED:
            return NOT_ALLOWED
        return self._once((After, inside, then), After(inside, then))

    def _flat(
        self, kind: type[Choice | Group | Interleave], parts: Iterable[Pattern]
    ) -> list[Pattern]:
        flat: list[Pattern] = []
        for part in parts:
            if isinstance(part, kind):
                flat += part.parts
            else:
                flat.append(part)
        # Definitions that use one another twice are short, but their size doubles at each step.
        if len(flat) > self._most:
            raise SchemaTooLarge("a schema has too many patterns", most=self._most)
        return flat
