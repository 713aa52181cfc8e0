"""The primitive types for strings, bytes and qualified names (XML Schema part 2, section 3)."""

from __future__ import annotations

import base64
import binascii
import re
from typing import NamedTuple

from lasthop_xml.xas.names import is_ncname
from lasthop_xml.xas.types.primitive import BLANKS, Primitive

_HEX = re.compile(r"(?:[0-9A-Fa-f]{2})*")
_NO_BLANKS = str.maketrans("", "", BLANKS)


class QName(NamedTuple):
    """A qualified name as it is written; `Scope.resolve(str(value))` finds the name that it stands
    for."""

    prefix: str
    local: str

    def __str__(self) -> str:
        return f"{self.prefix}:{self.local}" if self.prefix else self.local


class String(Primitive):
    """The type xsd:string: any text, and the only type for which surrounding white space
    matters."""

    __slots__ = ()

    def parse(self, text: str) -> str:
        return text

    def format(self, value: object) -> str:
        if type(value) is not str:
            raise self.refuse(value)
        return value

    def exactly(self, text: str) -> str:
        return text


class HexBinary(Primitive):
    """The type xsd:hexBinary: bytes as pairs of hexadecimal digits, written in upper case."""

    __slots__ = ()

    def parse(self, text: str) -> bytes:
        text = text.strip(BLANKS)
        if _HEX.fullmatch(text) is None:
            raise self.refuse(text)
        return bytes.fromhex(text)

    def format(self, value: object) -> str:
        if type(value) is not bytes:
            raise self.refuse(value)
        return value.hex().upper()


class Base64Binary(Primitive):
    """The type xsd:base64Binary: bytes in base 64, written without line breaks."""

    __slots__ = ()

    def parse(self, text: str) -> bytes:
        try:
            return base64.b64decode(text.translate(_NO_BLANKS).encode("ascii"), validate=True)
        except (binascii.Error, UnicodeEncodeError):
            raise self.refuse(text) from None

    def format(self, value: object) -> str:
        if type(value) is not bytes:
            raise self.refuse(value)
        return base64.b64encode(value).decode("ascii")


class QualifiedName(Primitive):
    """The type xsd:QName. The prefix is part of the value, so that it can be written without a
    scope."""

    __slots__ = ()

    def parse(self, text: str) -> QName:
        prefix, colon, local = text.strip(BLANKS).rpartition(":")
        value = QName(prefix, local)
        if (colon and not prefix) or not self._holds(value):
            raise self.refuse(text)
        return value

    def format(self, value: object) -> str:
        if not isinstance(value, QName) or not self._holds(value):
            raise self.refuse(value)
        return str(value)

    def _holds(self, value: QName) -> bool:
        return is_ncname(value.local) and (not value.prefix or is_ncname(value.prefix))
