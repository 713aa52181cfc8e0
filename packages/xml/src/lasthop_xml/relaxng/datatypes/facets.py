"""Parameters of datatypes: the facets of XML Schema that RELAX NG can use."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Sequence
from decimal import Decimal
from typing import Any, Final, TypeAlias

from lasthop_xml.relaxng.datatypes.datatype import Datatype, Namespaces, Params
from lasthop_xml.relaxng.datatypes.regex import Expression
from lasthop_xml.relaxng.datatypes.xsd import XsdType
from lasthop_xml.xas.errors import InvalidValue

Facet: TypeAlias = Callable[[str, Any], bool]
"""A test of a text, given with normalized white space, and of its value: whether a parameter of the
datatype allows them."""

_SIZES: Final[dict[str, Callable[[int, int], bool]]] = {
    "length": lambda size, bound: size == bound,
    "minLength": lambda size, bound: size >= bound,
    "maxLength": lambda size, bound: size <= bound,
}
_BOUNDS: Final[dict[str, Callable[[int], bool]]] = {
    "minInclusive": lambda order: order >= 0,
    "maxInclusive": lambda order: order <= 0,
    "minExclusive": lambda order: order > 0,
    "maxExclusive": lambda order: order < 0,
}
_NUMBER: Final = re.compile("[0-9]{1,9}")


class Restricted(Datatype):
    """A datatype of XML Schema that is restricted by parameters."""

    def __init__(self, base: Datatype, params: Params, facets: Sequence[Facet]) -> None:
        super().__init__(base.library, base.name, params)
        self.base = base
        self._facets = facets

    def value(self, text: str, namespaces: Namespaces) -> Hashable:
        found = self.base.value(text, namespaces)
        tidy = self.base.tidy(text) if isinstance(self.base, XsdType) else text
        if not all(facet(tidy, found) for facet in self._facets):
            raise self.refuse(text)
        return found


def facet(type_: Datatype, name: str, text: str) -> Facet:
    """Return the test for one parameter; raise InvalidValue if the type has no such parameter, or
    if the parameter cannot have this value."""
    if isinstance(type_, XsdType):
        if name == "pattern":
            expression = Expression(text)
            return lambda tidy, _: expression.matches(tidy)
        if name in _SIZES and type_.size is not None:
            return _size(type_.size, _SIZES[name], _count(name, text, 0))
        if name in _BOUNDS and type_.compare is not None:
            return _bound(type_.compare, _BOUNDS[name], type_.value(text, {}))
        if name == "totalDigits" and type_.digits:
            return _total_digits(_count(name, text, 1))
        if name == "fractionDigits" and type_.digits:
            return _fraction_digits(_count(name, text, 0))
    raise InvalidValue(
        "the type does not have this parameter", type=type_.name, parameter=name[:80]
    )


def _count(name: str, text: str, least: int) -> int:
    if _NUMBER.fullmatch(text.strip()) is None or int(text) < least:
        raise InvalidValue("the parameter cannot have this value", parameter=name, value=text[:80])
    return int(text)


def _size(measure: Callable[[Any], int], holds: Callable[[int, int], bool], bound: int) -> Facet:
    return lambda _, value: holds(measure(value), bound)


def _bound(
    compare: Callable[[Any, Any], int | None], holds: Callable[[int], bool], bound: Any
) -> Facet:
    def check(_: str, value: Any) -> bool:
        order = compare(value, bound)
        return order is not None and holds(order)

    return check


def _digits(value: Any) -> tuple[int, int]:
    """Return the number of significant digits of a number, and how many of them are after the
    point."""
    _, digits, exponent = Decimal(value).as_tuple()
    shown = "".join(map(str, digits)).lstrip("0")
    places = -int(exponent)
    while places > 0 and shown.endswith("0"):
        shown, places = shown[:-1], places - 1
    fraction = max(places, 0) if shown else 0
    return max(len(shown), fraction), fraction


def _total_digits(most: int) -> Facet:
    return lambda _, value: _digits(value)[0] <= most


def _fraction_digits(most: int) -> Facet:
    return lambda _, value: _digits(value)[1] <= most
