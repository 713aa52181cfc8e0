"""The primitive types for booleans and numbers (XML Schema part 2, section 3)."""

from __future__ import annotations

import math
import re
import struct
from decimal import Decimal

from lasthop_xml.xas.types.primitive import BLANKS, Primitive

MAX_DIGITS = 1000
"""The largest number of digits of an integer or a decimal: conversion takes quadratic time, and no
real number is this long."""

_INTEGER = re.compile(r"[+-]?[0-9]+")
_DECIMAL = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)")
_FLOAT = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[Ee][+-]?[0-9]+)?")
_SPECIAL = {"INF": math.inf, "+INF": math.inf, "-INF": -math.inf, "NaN": math.nan}
_MOST = 10**MAX_DIGITS


class Boolean(Primitive):
    """The type xsd:boolean: `true` or `false`; 1 and 0 are other lexical forms of these values."""

    __slots__ = ()

    def parse(self, text: str) -> bool:
        match text.strip(BLANKS):
            case "true" | "1":
                return True
            case "false" | "0":
                return False
            case _:
                raise self.refuse(text)

    def format(self, value: object) -> str:
        if value is True:
            return "true"
        if value is False:
            return "false"
        raise self.refuse(value)


class Integer(Primitive):
    """An integer type with its range; a bound of None means as many digits as `MAX_DIGITS`
    allows."""

    __slots__ = ("highest", "lowest")

    def __init__(self, local: str, *, lowest: int | None, highest: int | None) -> None:
        super().__init__(local)
        self.lowest = -_MOST + 1 if lowest is None else lowest
        self.highest = _MOST - 1 if highest is None else highest

    def parse(self, text: str) -> int:
        text = text.strip(BLANKS)
        if len(text) > MAX_DIGITS + 1 or _INTEGER.fullmatch(text) is None:
            raise self.refuse(text)
        value = int(text)
        if not self.lowest <= value <= self.highest:
            raise self.refuse(text)
        return value

    def check(self, value: object) -> None:
        # A boolean is an int to Python, but not to a schema.
        if type(value) is not int or not self.lowest <= value <= self.highest:
            raise self.refuse("a number out of range" if isinstance(value, int) else value)

    def format(self, value: object) -> str:
        self.check(value)
        return str(value)

    def exactly(self, text: str) -> int | None:
        # Python's `int` also reads forms such as " 7" and "1_0", but never writes them.
        try:
            value = int(text) if len(text) <= MAX_DIGITS + 1 else None
        except ValueError:
            return None
        if value is None or str(value) != text or not self.lowest <= value <= self.highest:
            return None
        return value


class DecimalNumber(Primitive):
    """The type xsd:decimal. Trailing zeros of the fraction are kept, as Python's `Decimal` keeps
    them."""

    __slots__ = ()

    def parse(self, text: str) -> Decimal:
        text = text.strip(BLANKS)
        if len(text) > MAX_DIGITS + 2 or _DECIMAL.fullmatch(text) is None:
            raise self.refuse(text)
        return Decimal(text)

    def format(self, value: object) -> str:
        if not isinstance(value, Decimal) or not value.is_finite():
            raise self.refuse(value)
        _, digits, exponent = value.as_tuple()
        if not isinstance(exponent, int) or len(digits) + abs(exponent) > MAX_DIGITS:
            raise self.refuse("a number has too many digits")
        # XML Schema has no negative zero in xsd:decimal.
        return f"{value if value else abs(value):f}"


class Double(Primitive):
    """The type xsd:double: 64-bit floating point, written with the fewest digits that give the same
    value back."""

    __slots__ = ()

    def parse(self, text: str) -> float:
        text = text.strip(BLANKS)
        if text in _SPECIAL:
            return _SPECIAL[text]
        if len(text) > MAX_DIGITS or _FLOAT.fullmatch(text) is None:
            raise self.refuse(text)
        return self.rounded(float(text))

    def rounded(self, value: float) -> float:
        """Return the value of this type that is nearest to `value`."""
        return value

    def format(self, value: object) -> str:
        if type(value) is not float:
            raise self.refuse(value)
        if math.isfinite(value):
            return self.shortest(value)
        return "NaN" if math.isnan(value) else "INF" if value > 0 else "-INF"

    def shortest(self, value: float) -> str:
        return repr(value)

    def check(self, value: object) -> None:
        if type(value) is not float:
            raise self.refuse(value)


class Float(Double):
    """The type xsd:float: 32-bit floating point. Its values are Python floats that 32 bits can
    hold."""

    __slots__ = ()

    def rounded(self, value: float) -> float:
        try:
            (nearest,) = struct.unpack(">f", struct.pack(">f", value))
        except OverflowError:
            return math.copysign(math.inf, value)
        return float(nearest)

    def check(self, value: object) -> None:
        self.format(value)

    def shortest(self, value: float) -> str:
        if self.rounded(value) != value:
            raise self.refuse(value)
        for digits in range(6, 9):
            short = float(f"{value:.{digits}g}")
            if self.rounded(short) == value:
                return repr(short)
        return repr(float(f"{value:.9g}"))
