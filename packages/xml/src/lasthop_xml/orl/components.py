"""Functions with which generated decoders read the components of a value.

Components may come in any order, and unknown ones are skipped: this lets descriptions grow
(docs/orl.md). Everything else about them is checked.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeVar

from lasthop_xml.xas.content import Source
from lasthop_xml.xas.errors import InvalidValue, MalformedEvents, XmlTooLarge
from lasthop_xml.xas.names import Name

MOST_DEEP: Final = 64
"""The largest number of values nested inside one another: decoding one level takes about eight of
the 1000 frames that Python allows."""

T = TypeVar("T")


class Components:
    """The components of one value, by the names of their elements."""

    __slots__ = ("_found",)

    def __init__(self, found: dict[Name, list[Any]]) -> None:
        self._found = found

    def one(self, name: Name, class_: type[T]) -> T:
        """Return the component `name`, which must occur exactly once."""
        found = self.optional(name, class_)
        if found is None:
            raise MalformedEvents("a component is missing", name=str(name))
        return found

    def optional(self, name: Name, class_: type[T]) -> T | None:
        """Return the component `name`, or None if it is absent; it may occur once."""
        values = self.repeated(name, class_)
        if len(values) > 1:
            raise MalformedEvents("a component occurs twice", name=str(name))
        return values[0] if values else None

    def repeated(self, name: Name, class_: type[T]) -> list[T]:
        """Return all components `name`, in their order."""
        return [instance(value, class_) for value in self._found.get(name, ())]


def components(source: Source, types: Mapping[Name, Name]) -> Components:
    """Read the components of the open element; `types` maps the expected names to their types."""
    if source.reader.depth > MOST_DEEP:
        raise XmlTooLarge("values are too deeply nested", most=MOST_DEEP)
    found: dict[Name, list[Any]] = {}
    while (component := source.any_of(types)) is not None:
        name, value = component
        found.setdefault(name, []).append(value)
    return Components(found)


def instance(value: object, class_: type[T]) -> T:
    """Return `value` if it is a `class_`, else raise InvalidValue: a wrong object is found before
    half of it is written."""
    if not isinstance(value, class_):
        raise InvalidValue(
            "a value is not of the expected class",
            expected=class_.__name__,
            found=type(value).__name__,
        )
    return value
