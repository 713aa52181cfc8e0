"""What a generated decoder reads the components of a value with.

Components may come in any order, and those that nobody asked for are passed over: this is what lets
descriptions grow (docs/orl.md). Everything else about them is checked.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeVar

from lasthop_xml.xas.content import Source
from lasthop_xml.xas.errors import InvalidValue, MalformedEvents, XmlTooLarge
from lasthop_xml.xas.names import Name

MOST_DEEP: Final = 64
"""Values inside of values. Decoding one takes some eight Python frames, of which there are 1000."""

T = TypeVar("T")


class Components:
    """The components of one value, by the names of their elements."""

    __slots__ = ("_found",)

    def __init__(self, found: dict[Name, list[Any]]) -> None:
        self._found = found

    def one(self, name: Name, class_: type[T]) -> T:
        """The component that must be there, once."""
        found = self.optional(name, class_)
        if found is None:
            raise MalformedEvents("a component is missing", name=str(name))
        return found

    def optional(self, name: Name, class_: type[T]) -> T | None:
        """The component if it is there, at most once."""
        values = self.repeated(name, class_)
        if len(values) > 1:
            raise MalformedEvents("a component comes twice", name=str(name))
        return values[0] if values else None

    def repeated(self, name: Name, class_: type[T]) -> list[T]:
        """All of them, in their order."""
        return [instance(value, class_) for value in self._found.get(name, ())]


def components(source: Source, types: Mapping[Name, Name]) -> Components:
    """The components in the open element; `types` has the type of each that is wanted."""
    if source.reader.depth > MOST_DEEP:
        raise XmlTooLarge("values are too deeply nested", most=MOST_DEEP)
    found: dict[Name, list[Any]] = {}
    while (component := source.any_of(types)) is not None:
        name, value = component
        found.setdefault(name, []).append(value)
    return Components(found)


def instance(value: object, class_: type[T]) -> T:
    """`value` if it is one of `class_`; a wrong object is caught before half of it is written."""
    if not isinstance(value, class_):
        raise InvalidValue(
            "a value is of another class", expected=class_.__name__, found=type(value).__name__
        )
    return value
