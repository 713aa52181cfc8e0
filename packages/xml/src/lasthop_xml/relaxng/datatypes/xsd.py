"""The datatypes of XML Schema (part 2), as sets of texts."""

from __future__ import annotations

import base64
import binascii
import re
import struct
from collections.abc import Callable, Hashable, Mapping
from decimal import Decimal
from typing import Any, Final

from lasthop_xml.relaxng.datatypes.calendar import (
    FORMS,
    Instant,
    Length,
    compare_instants,
    compare_lengths,
    instant,
    length,
)
from lasthop_xml.relaxng.datatypes.datatype import XSD_LIBRARY, Datatype, Namespaces
from lasthop_xml.relaxng.datatypes.whitespace import collapsed
from lasthop_xml.xas.names import NAME_CHAR, NAME_START, NCNAME, Name

_NMTOKEN: Final = re.compile(f"[{NAME_CHAR}:]+")
_NAME: Final = re.compile(f"[{NAME_START}:][{NAME_CHAR}:]*")
_NCNAME: Final = re.compile(NCNAME)
_LANGUAGE: Final = re.compile(r"[a-zA-Z]{1,8}(?:-[a-zA-Z0-9]{1,8})*")
_DECIMAL: Final = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)")
_INTEGER: Final = re.compile(r"[+-]?[0-9]+")
_FLOAT: Final = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[Ee][+-]?[0-9]+)?")
_BASE64: Final = re.compile(r"(?:[A-Za-z0-9+/] ?){0,}(?:= ?){0,2}")
_SPECIAL: Final = {"INF": float("inf"), "-INF": float("-inf"), "NaN": float("nan")}
_LONGEST_NUMBER: Final = 4096
"""The largest number of characters of a number: a text is at most as long as a message, but reading
digits takes quadratic time."""


class XsdType(Datatype):
    """A datatype of XML Schema, given by functions for its values, lengths and order."""

    def __init__(
        self,
        name: str,
        meaning: Callable[[str], Hashable | None],
        *,
        blanks: str = "collapse",
        size: Callable[[Any], int] | None = None,
        compare: Callable[[Any, Any], int | None] | None = None,
        digits: bool = False,
    ) -> None:
        super().__init__(XSD_LIBRARY, name)
        self._meaning = meaning
        self._blanks = blanks
        self.size = size
        """The function that length facets count with; None if the type has no length."""
        self.compare = compare
        """The function that orders two values; None if the type has no order."""
        self.digits = digits
        """Whether the type has the facets that count digits."""

    def tidy(self, text: str) -> str:
        """Return a text with its white space normalized as the type asks."""
        if self._blanks == "collapse":
            return collapsed(text)
        return re.sub("[\t\n\r]", " ", text) if self._blanks == "replace" else text

    def value(self, text: str, namespaces: Namespaces) -> Hashable:
        found = self._meaning(self.tidy(text))
        if found is None:
            raise self.refuse(text)
        return found


class QNameType(XsdType):
    """The datatype xsd:QName, whose value depends on the namespaces of prefixes."""

    def value(self, text: str, namespaces: Namespaces) -> Hashable:
        tidy = self.tidy(text)
        prefix, colon, local = tidy.rpartition(":")
        ns = namespaces.get(prefix)
        fine = _NCNAME.fullmatch(local) and (not colon or _NCNAME.fullmatch(prefix))
        if not fine or (ns is None and colon):
            raise self.refuse(text)
        return Name(ns or "", local)


def _matching(pattern: re.Pattern[str]) -> Callable[[str], str | None]:
    return lambda text: text if pattern.fullmatch(text) else None


def _many(pattern: re.Pattern[str]) -> Callable[[str], tuple[str, ...] | None]:
    def read(text: str) -> tuple[str, ...] | None:
        found = tuple(text.split(" ")) if text else ()
        return found if found and all(map(pattern.fullmatch, found)) else None

    return read


def _nothing(text: str) -> None:
    """Refuse every entity and notation: no document type is read, so none is declared."""


def _boolean(text: str) -> bool | None:
    return {"true": True, "1": True, "false": False, "0": False}.get(text)


def _decimal(text: str) -> Decimal | None:
    fine = len(text) <= _LONGEST_NUMBER and _DECIMAL.fullmatch(text)
    return Decimal(text) if fine else None


def _integer(lowest: int | None, highest: int | None) -> Callable[[str], int | None]:
    def read(text: str) -> int | None:
        if len(text) > _LONGEST_NUMBER or _INTEGER.fullmatch(text) is None:
            return None
        value = int(text)
        low = lowest is None or value >= lowest
        return value if low and (highest is None or value <= highest) else None

    return read


def _double(text: str) -> float | str | None:
    value = _SPECIAL.get(text)
    if value is None:
        if len(text) > _LONGEST_NUMBER or _FLOAT.fullmatch(text) is None:
            return None
        value = float(text)
    return "NaN" if value != value else value  # noqa: PLR0124 - a NaN equals no other, but means it


def _float(text: str) -> float | str | None:
    value = _double(text)
    if isinstance(value, float):
        try:
            (value,) = struct.unpack("f", struct.pack("f", value))
        except OverflowError:
            return float("inf") if value > 0 else float("-inf")
    return value


def _hex(text: str) -> bytes | None:
    try:
        return binascii.unhexlify(text)
    except (binascii.Error, ValueError):
        return None


def _base64(text: str) -> bytes | None:
    if _BASE64.fullmatch(text) is None:
        return None
    try:
        return base64.b64decode(text.replace(" ", ""), validate=True)
    except (binascii.Error, ValueError):
        return None


def _uri(text: str) -> str | None:
    """Return a text if it can be a URI. XML Schema part 2, section 3.2.17, asks for hardly
    anything: a per cent sign has to introduce two digits."""
    scheme = re.match(r"[^:/?#]*:", text)
    if scheme is not None and not re.fullmatch(r"[A-Za-z][A-Za-z0-9+\-.]*:.+", text, re.DOTALL):
        return None
    fine = not re.search(r"%(?![0-9A-Fa-f]{2})", text) and text.count("#") <= 1
    return text if fine else None


def _order(one: Any, other: Any) -> int | None:
    if isinstance(one, str) or isinstance(other, str):  # NaN
        return 0 if one == other else None
    return int(one > other) - int(one < other)


def _instant(form: str) -> XsdType:
    def read(text: str) -> Instant | None:
        return instant(form, text)

    return XsdType(form, read, compare=compare_instants)


def _duration(text: str) -> Length | None:
    return length(text)


_INTEGERS: Final[Mapping[str, tuple[int | None, int | None]]] = {
    "integer": (None, None),
    "nonPositiveInteger": (None, 0),
    "negativeInteger": (None, -1),
    "nonNegativeInteger": (0, None),
    "positiveInteger": (1, None),
    "long": (-(2**63), 2**63 - 1),
    "int": (-(2**31), 2**31 - 1),
    "short": (-(2**15), 2**15 - 1),
    "byte": (-(2**7), 2**7 - 1),
    "unsignedLong": (0, 2**64 - 1),
    "unsignedInt": (0, 2**32 - 1),
    "unsignedShort": (0, 2**16 - 1),
    "unsignedByte": (0, 2**8 - 1),
}

_ALL: Final = (
    XsdType("string", str, blanks="preserve", size=len),
    XsdType("normalizedString", str, blanks="replace", size=len),
    XsdType("token", str, size=len),
    XsdType("language", _matching(_LANGUAGE), size=len),
    XsdType("Name", _matching(_NAME), size=len),
    XsdType("NMTOKEN", _matching(_NMTOKEN), size=len),
    XsdType("NMTOKENS", _many(_NMTOKEN), size=len),
    *(XsdType(name, _matching(_NCNAME), size=len) for name in ("NCName", "ID", "IDREF")),
    XsdType("IDREFS", _many(_NCNAME), size=len),
    *(XsdType(name, _nothing, size=len) for name in ("ENTITY", "ENTITIES", "NOTATION")),
    XsdType("anyURI", _uri, size=len),
    QNameType("QName", str, size=len),
    XsdType("boolean", _boolean),
    XsdType("decimal", _decimal, compare=_order, digits=True),
    *(
        XsdType(name, _integer(*bounds), compare=_order, digits=True)
        for name, bounds in _INTEGERS.items()
    ),
    XsdType("float", _float, compare=_order),
    XsdType("double", _double, compare=_order),
    XsdType("hexBinary", _hex, size=len),
    XsdType("base64Binary", _base64, size=len),
    XsdType("duration", _duration, compare=compare_lengths),
    *map(_instant, FORMS),
)

XSD_TYPES: Final[Mapping[str, XsdType]] = {type_.name: type_ for type_ in _ALL}
