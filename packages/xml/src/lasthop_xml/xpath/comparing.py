"""Comparisons of values with constants: one by one, and with thousands of constants at once."""

from __future__ import annotations

import math
import re
from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator
from typing import Generic, TypeVar

from lasthop_xml.xpath.pattern import Comparison

# XPath 1.0, section 3.7 and number() in section 4.4: no exponent, and no sign but minus.
_NUMBER = re.compile(r"[ \t\r\n]*-?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)[ \t\r\n]*")

T = TypeVar("T")


def number(text: str) -> float:
    """Return what XPath's number() makes of a text (XPath 1.0, section 4.4)."""
    return float(text) if _NUMBER.fullmatch(text) is not None else math.nan


def holds(comparison: Comparison, text: str) -> bool:
    """Return whether a text passes a comparison (XPath 1.0, section 3.4)."""
    operator, constant = comparison
    match operator:
        case "contains":
            return str(constant) in text
        case "starts-with":
            return text.startswith(str(constant))
        case "=" | "!=" if isinstance(constant, str):
            return (text == constant) == (operator == "=")
        case _:
            return compares(comparison, number(text))


def compares(comparison: Comparison, value: float) -> bool:
    """Return whether a number passes a numeric comparison."""
    bound = _bound(comparison)
    match comparison.operator:
        case "=":
            return value == bound
        case "!=":
            return value != bound
        case "<":
            return value < bound
        case "<=":
            return value <= bound
        case ">":
            return value > bound
        case _:
            return value >= bound


def _bound(comparison: Comparison) -> float:
    constant = comparison.constant
    return number(constant) if isinstance(constant, str) else constant


class ComparisonIndex(Generic[T]):
    """An index that finds all comparisons that a value passes. The time depends only on how many
    these are for = < <= > >=, which routers mostly have; != contains and starts-with are tried one
    by one.
    """

    __slots__ = ("_any", "_bounds", "_numbers", "_others", "_texts", "longest")

    def __init__(self) -> None:
        self.longest: int | None = 0
        """The length of the longest text that could pass a comparison; None if there is no such
        bound."""
        self._any: list[T] = []
        self._texts: dict[str, list[T]] = {}
        self._numbers: dict[float, list[T]] = {}
        # For each of < <= > >=: the constants in order, and the items of each constant.
        self._bounds: dict[str, tuple[list[float], dict[float, list[T]]]] = {}
        self._others: list[tuple[Comparison, T]] = []

    def add(self, comparison: Comparison | None, item: T) -> None:
        """Make `found` yield `item` for texts that pass the comparison, or for all if it is
        None."""
        if comparison is None:
            self.longest = None
            self._any.append(item)
            return
        operator, constant = comparison
        if operator == "=" and isinstance(constant, str):
            self._texts.setdefault(constant, []).append(item)
            if self.longest is not None:
                self.longest = max(self.longest, len(constant))
            return
        self.longest = None
        if operator == "=":
            self._numbers.setdefault(float(constant), []).append(item)
        elif operator in {"<", "<=", ">", ">="}:
            if math.isnan(bound := _bound(comparison)):
                return  # every comparison with NaN is false
            order, items = self._bounds.setdefault(operator, ([], {}))
            if bound not in items:
                insort(order, bound)
            items.setdefault(bound, []).append(item)
        else:
            self._others.append((comparison, item))

    def found(self, text: str) -> Iterator[T]:
        """Yield the items of all comparisons that the text passes."""
        yield from self._any
        if self._texts:
            yield from self._texts.get(text, ())
        if self._numbers or self._bounds:
            yield from self._numeric(number(text))
        for comparison, item in self._others:
            if holds(comparison, text):
                yield item

    def _numeric(self, value: float) -> Iterator[T]:
        yield from self._numbers.get(value, ())
        if math.isnan(value):
            return
        for operator, (order, items) in self._bounds.items():
            match operator:
                case "<":
                    passed = order[bisect_right(order, value) :]
                case "<=":
                    passed = order[bisect_left(order, value) :]
                case ">":
                    passed = order[: bisect_left(order, value)]
                case _:
                    passed = order[: bisect_right(order, value)]
            for bound in passed:
                yield from items[bound]
