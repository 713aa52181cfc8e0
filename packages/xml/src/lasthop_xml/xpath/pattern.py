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
    """A test for names of elements or attributes; None fits every namespace or every local name."""

    ns: str | None
    local: str | None

    def fits(self, name: Name) -> bool:
        return self.ns in {None, name.ns} and self.local in {None, name.local}


class Comparison(NamedTuple):
    """A comparison with a constant; the operator is = != < <= > >= contains or starts-with."""

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
class AttributeTest:
    """Formula: the element has an attribute that passes `test`, and its value passes the
    comparison."""

    test: NameTest
    comparison: Comparison | None


@dataclass(frozen=True)
class PositionTest:
    """Formula: the element's position, from 1, among its siblings that pass `test` and `guard`,
    passes the comparison."""

    test: NameTest
    guard: Formula
    comparison: Comparison


@dataclass(frozen=True)
class StringTest:
    """Formula: all text inside the element, as one string, passes the comparison."""

    comparison: Comparison


@dataclass(frozen=True)
class TextTest:
    """Formula: a text node directly in the element passes the comparison, or exists if that is
    None."""

    comparison: Comparison | None


@dataclass(frozen=True)
class Exists:
    """Formula: something below the element fits the pattern."""

    pattern: PathPattern


class Condition:
    """A fact that becomes true of an element while its content is read.

    The automaton puts conditions into formulas in place of the parts that they stand for.
    """

    __slots__ = ("home", "subscribers", "triggers")

    def __init__(self, home: Anchor) -> None:
        self.home = home
        """The anchor whose formulas contain this condition."""
        self.triggers: list[tuple[Formula, Condition]] = []
        """Formulas to test when this condition becomes true, each with the condition that follows
        from it."""
        self.subscribers: set[Hashable] = set()
        """The keys of the subscriptions that match when this condition is true of the document."""


Formula: TypeAlias = (
    And | Or | Not | AttributeTest | PositionTest | StringTest | TextTest | Exists | Condition
)

TRUE: Final = And(())


class Step(NamedTuple):
    """A step of a path to a child, or to any descendant, that passes the test and the guard."""

    descend: bool
    test: NameTest
    guard: Formula


@dataclass(frozen=True)
class PathPattern:
    steps: tuple[Step, ...]
    formula: Formula


def both(first: Formula, second: Formula) -> Formula:
    """Return the conjunction of two formulas as one flat `And`."""
    parts = [
        part
        for formula in (first, second)
        for part in (formula.parts if isinstance(formula, And) else (formula,))
    ]
    return parts[0] if len(parts) == 1 else And(tuple(parts))


def decided_at_start(formula: Formula) -> bool:
    """Return whether a formula can be decided by the start tag alone."""
    match formula:
        case And(parts) | Or(parts):
            return all(decided_at_start(part) for part in parts)
        case Not(part):
            return decided_at_start(part)
        case _:
            return isinstance(formula, AttributeTest | PositionTest)


def mentions_position(formula: Formula) -> bool:
    match formula:
        case And(parts) | Or(parts):
            return any(mentions_position(part) for part in parts)
        case Not(part):
            return mentions_position(part)
        case _:
            return isinstance(formula, PositionTest)
