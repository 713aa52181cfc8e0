"""The base class of all primitive types."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from lasthop_xml.xas.errors import InvalidValue
from lasthop_xml.xas.names import XSD_NS, Name

BLANKS = " \t\n\r"
"""The white space that is ignored around a value of every type but strings."""


class Primitive(ABC):
    """A type whose values are the text of one element.

    A type writes each value in one lexical form, called canonical here. A text in another form is
    valid and can be parsed, but stays plain content in a typed sequence, so that every document is
    written again exactly as it was read.
    """

    __slots__ = ("name",)

    def __init__(self, local: str) -> None:
        self.name = Name(XSD_NS, local)

    @abstractmethod
    def parse(self, text: str) -> Any:
        """Return the value of a text in any lexical form of the type; raise InvalidValue if the
        text is not one."""

    @abstractmethod
    def format(self, value: Any) -> str:
        """Return the canonical lexical form of a value; raise InvalidValue if it is not of this
        type."""

    def check(self, value: Any) -> None:
        """Raise InvalidValue if the value is not of this type."""
        self.format(value)

    def exactly(self, text: str) -> Any:
        """Return the value of `text` if `text` is its canonical form; otherwise None."""
        try:
            value = self.parse(text)
            return value if self.format(value) == text else None
        except InvalidValue:
            return None

    def refuse(self, value: object) -> InvalidValue:
        """Return the error to raise for a text or a value that does not belong to this type."""
        return InvalidValue(
            "this is not a value of the type", type=self.name.local, value=str(value)[:80]
        )
