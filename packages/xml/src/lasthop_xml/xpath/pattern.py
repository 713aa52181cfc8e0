"""Subscriptions in normal form: a path of elements, and a formula about the last one.

Only whether a path selects anything matters, so `a[p]/b/c` is the same as `a[p and b/c]`. In normal
form each step has a guard, which is decided at its start tag (attributes and position), and only
the end of a path has a formula about content: texts, and further patterns below that element.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from lasthop_xml.xas.names import Name

if TYPE_CHECKING:
    from lasthop_xml.xpath.automaton import Anchor


class NameTest(NamedTuple):
    """Which names fit; None fits all."""

    ns: str | None
    local: str | None

    def fits(self, name: Name) -> bool:
        return self.ns in {None, name.ns} and self.local in {None, name.local}


class Comparison(NamedTuple):
    """With a constant: = != < <= > >= contains starts-with."""

    operator: str
    constant: str | float


@dataclass(frozen=True)
class And:
    parts: tuple[Formula, ...]


@dataclass(frozen=True)
class Or:
    parts: tuple[Formula, ...]


@dataclass(frozen=True)
class Not:
    part: Formula


@dataclass(frozen=True)
class Attribute:
    """The element has such an attribute, whose value compares so."""

    test: NameTest
    comparison: Comparison | None


@dataclass(frozen=True)
class Position:
    """Where the element stands among its siblings that pass `test` and `guard`, from 1."""

    test: NameTest
    guard: Formula
    comparison: Comparison


@dataclass(frozen=True)
class String:
    """All text inside of the element compares so."""

    comparison: Comparison


@dataclass(frozen=True)
class Text:
    """A text node directly in the element compares so, or is there."""

    comparison: Comparison | None


@dataclass(frozen=True)
class Exists:
    """Something below the element fits the pattern."""

    pattern: Pattern


class Condition:
    """Something that becomes true of an element while its content is read.

    The automaton puts conditions into formulas in place of what they stand for.
    """

    __slots__ = ("home", "subscribers", "triggers")

    def __init__(self, home: Anchor) -> None:
        self.home = home
        """Where the formulas are that it stands in."""
        self.triggers: list[tuple[Formula, Condition]] = []
        """Formulas to look at when it becomes true, and what holds if they do."""
        self.subscribers: set[Hashable] = set()
        """Who wanted to know."""


Formula: TypeAlias = And | Or | Not | Attribute | Position | String | Text | Exists | Condition

TRUE: Final = And(())


class Step(NamedTuple):
    """To a child, or to any descendant, that passes the test and the guard."""

    descend: bool
    test: NameTest
    guard: Formula


@dataclass(frozen=True)
class Pattern:
    steps: tuple[Step, ...]
    formula: Formula


def both(first: Formula, second: Formula) -> Formula:
    """`and`, without needless nesting."""
    parts = [
        part
        for formula in (first, second)
        for part in (formula.parts if isinstance(formula, And) else (formula,))
    ]
    return parts[0] if len(parts) == 1 else And(tuple(parts))


def decided_at_start(formula: Formula) -> bool:
    """Whether the start tag has all that the formula asks for."""
    match formula:
        case And(parts) | Or(parts):
            return all(decided_at_start(part) for part in parts)
        case Not(part):
            return decided_at_start(part)
        case _:
            return isinstance(formula, Attribute | Position)


def mentions_position(formula: Formula) -> bool:
    match formula:
        case And(parts) | Or(parts):
            return any(mentions_position(part) for part in parts)
        case Not(part):
            return mentions_position(part)
        case _:
            return isinstance(formula, Position)
