"""Values as dictionary keys that are equal only if XML writes them alike.

To Python 0.0 and -0.0 are equal, and so are an instant in two time zones, and the decimals 1.5 and
1.50. A guess that is right by such an equality would change a document. Values that can be equal to
a different one are therefore replaced by their lexical form; nearly all values need not be.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, time
from math import copysign, isfinite
from typing import Any, Final

from lasthop_xml.xas.errors import UnknownType
from lasthop_xml.xas.names import Name, check_text
from lasthop_xml.xas.types.table import PRIMITIVES

LARGEST: Final = 2**59
"""Integers from this size on are written as text, so that codes of differences fit into 63 bits."""


class Lexical(str):
    """The lexical form of a value, in place of the value."""

    __slots__ = ()


def exact(type_: Name, value: Any) -> Any:
    """Return a value of a primitive type, or its `Lexical` if it can be equal to a different one;
    raise InvalidValue if it is not of that type."""
    primitive = PRIMITIVES.get(type_)
    if primitive is None:
        raise UnknownType("no primitive type has this name", type=str(type_))
    stands_for_itself = _THEMSELVES.get(type_.local)
    if stands_for_itself is None:
        primitive.check(value)
        return value
    if stands_for_itself(value):
        return value
    return Lexical(primitive.format(value))


def natural(type_: Name | None, value: Any) -> Any:
    """Return the value that `exact` was given."""
    if type(value) is Lexical and type_ is not None:
        return PRIMITIVES[type_].parse(value)
    return value


def _string(value: object) -> bool:
    # Subclasses of str are refused by the type.
    return type(value) is str and check_text(value) is value


def _double(value: object) -> bool:
    return type(value) is float and isfinite(value) and (value != 0 or copysign(1, value) > 0)


def _datetime(value: object) -> bool:
    return type(value) is datetime and value.tzinfo is UTC


def _time(value: object) -> bool:
    return type(value) is time and value.tzinfo is None


def _small(value: object) -> bool:
    return type(value) is int and -LARGEST < value < LARGEST


def _never(_: object) -> bool:
    return False


_THEMSELVES: Final[Mapping[str, Callable[[Any], bool]]] = {
    "string": _string,
    "long": _small,
    "double": _double,
    "dateTime": _datetime,
    "time": _time,
    "float": _never,
    "decimal": _never,
}
"""For types of which only some values can be keys themselves, the test for those; all values of
other types can."""
