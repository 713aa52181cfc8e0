"""What every datatype can do."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping
from typing import Final, TypeAlias

from lasthop_xml.xas.errors import InvalidValue

XSD_LIBRARY: Final = "http://www.w3.org/2001/XMLSchema-datatypes"
"""What schemas call the types of XML Schema."""

Namespaces: TypeAlias = Mapping[str, str]
"""What prefixes stand for where a text was written; "" is the default namespace."""

Params: TypeAlias = tuple[tuple[str, str], ...]


class Datatype(ABC):
    """A set of texts; some of them mean the same."""

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
        """What a text means: equal for texts that mean the same. InvalidValue if it is none."""

    def allows(self, text: str, namespaces: Namespaces) -> bool:
        """Whether a text is a value."""
        try:
            self.value(text, namespaces)
        except InvalidValue:
            return False
        return True

    def refuse(self, text: str) -> InvalidValue:
        """The error to raise for a text that is no value."""
        return InvalidValue("no such value", type=self.name, value=text[:80])
