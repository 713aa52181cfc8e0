"""The table of all primitive types, and the function that writes any of their values as text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from lasthop_xml.xas.errors import UnknownType
from lasthop_xml.xas.names import Name
from lasthop_xml.xas.types.numbers import Boolean, DecimalNumber, Double, Float, Integer
from lasthop_xml.xas.types.primitive import Primitive
from lasthop_xml.xas.types.texts import Base64Binary, HexBinary, QualifiedName, String
from lasthop_xml.xas.types.times import Date, DateTime, DurationType, Time

ALL: Final[tuple[Primitive, ...]] = (
    String("string"),
    Boolean("boolean"),
    Integer("byte", lowest=-(2**7), highest=2**7 - 1),
    Integer("short", lowest=-(2**15), highest=2**15 - 1),
    Integer("int", lowest=-(2**31), highest=2**31 - 1),
    Integer("long", lowest=-(2**63), highest=2**63 - 1),
    Integer("integer", lowest=None, highest=None),
    Integer("nonNegativeInteger", lowest=0, highest=None),
    Integer("positiveInteger", lowest=1, highest=None),
    Integer("nonPositiveInteger", lowest=None, highest=0),
    Integer("negativeInteger", lowest=None, highest=-1),
    Integer("unsignedByte", lowest=0, highest=2**8 - 1),
    Integer("unsignedShort", lowest=0, highest=2**16 - 1),
    Integer("unsignedInt", lowest=0, highest=2**32 - 1),
    Integer("unsignedLong", lowest=0, highest=2**64 - 1),
    DecimalNumber("decimal"),
    Float("float"),
    Double("double"),
    Date("date"),
    Time("time"),
    DateTime("dateTime"),
    DurationType("duration"),
    HexBinary("hexBinary"),
    Base64Binary("base64Binary"),
    QualifiedName("QName"),
)

PRIMITIVES: Final[Mapping[Name, Primitive]] = {primitive.name: primitive for primitive in ALL}


def lexical(type_: Name | None, value: Any) -> str:
    """Return the text that a value of a primitive type has in XML; raise UnknownType for other
    types."""
    primitive = PRIMITIVES.get(type_) if type_ is not None else None
    if primitive is None:
        raise UnknownType("no primitive type has this name", type=str(type_))
    return primitive.format(value)
