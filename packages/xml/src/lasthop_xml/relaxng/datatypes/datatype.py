"""The base class of all datatypes that a schema can use."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping
from typing import Final, TypeAlias

from lasthop_xml.xas.errors import InvalidValue

XSD_LIBRARY: Final = "http://www.w3.org/2001/XMLSchema-datatypes"
"""The URI by which schemas name the datatypes of XML Schema."""

Namespaces: TypeAlias = Mapping[str, str]
"""The namespaces of the prefixes where a text was written; "" is the default namespace."""

Params: TypeAlias = tuple[tuple[str, str], ...]


class Datatype(ABC):
    """A datatype: a set of texts, some of which have the same meaning."""

    def __init__(self, library: str, name: str, params: Params = ()) -> None:
        self.library = library
        self.name = name
        self.params = params

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Datatype) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> Hashable:
        return self.library, self.name, self.params

    @abstractmethod
    def value(self, text: str, namespaces: Namespaces) -> Hashable:
        """Return the meaning of a text, equal for texts that mean the same; raise InvalidValue if
        the text is not a value."""

    def allows(self, text: str, namespaces: Namespaces) -> bool:
        """Return whether a text is a value of this datatype."""
        try:
            self.value(text, namespaces)
        except InvalidValue:
            return False
        return True

    def refuse(self, text: str) -> InvalidValue:
        """Return the error to raise for a text that is not a value of this datatype."""
        return InvalidValue("this is not a value of the type", type=self.name, value=text[:80])
