"""What every primitive type can do."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from lasthop_xml.xas.errors import InvalidValue
from lasthop_xml.xas.names import XSD_NS, Name

BLANKS = " \t\n\r"
"""The white space that all types but strings ignore around a value."""


class Primitive(ABC):
    """A type whose values are the text of one element.

    A type has one lexical form per value that it writes, the canonical one here. A text in another
    form is valid and can be parsed, but stays plain content in a typed sequence, so that every
    document comes out of it as it went in.
    """

    __slots__ = ("name",)

    def __init__(self, local: str) -> None:
        self.name = Name(XSD_NS, local)

    @abstractmethod
    def parse(self, text: str) -> Any:
        """The value of any lexical form; InvalidValue if it is none."""

    @abstractmethod
    def format(self, value: Any) -> str:
        """The canonical lexical form; InvalidValue if the value is not of this type."""

    def check(self, value: Any) -> None:
        """InvalidValue if the value is not of this type."""
        self.format(value)

    def exactly(self, text: str) -> Any:
        """The value if `text` is exactly what `format` makes of it; otherwise None."""
        try:
            value = self.parse(text)
            return value if self.format(value) == text else None
        except InvalidValue:
            return None

    def refuse(self, value: object) -> InvalidValue:
        """The error to raise for a text or a value that this type does not have."""
        return InvalidValue("no such value", type=self.name.local, value=str(value)[:80])
