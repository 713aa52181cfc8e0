"""All subscriptions in one automaton, which contains their common parts once.

A state is a place that paths can reach. From a state, groups lead on by the name of an element, and
within a group guards by the element's attributes; both are found by hashing, so states that a
document does not reach cost nothing. Where a path ends, its condition holds, or an anchor waits for
what its formula says about content. Patterns inside of that formula start from the anchor, as the
subscriptions themselves start from the document.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from lasthop_xml.xas.names import Name
from lasthop_xml.xpath.comparing import ComparisonIndex, compares, holds
from lasthop_xml.xpath.pattern import (
    TRUE,
    And,
    AttributeTest,
    Condition,
    Exists,
    Formula,
    NameTest,
    Not,
    Or,
    PathPattern,
    PositionTest,
    Step,
    StringTest,
    TextTest,
)


class Start(Protocol):
    """A start tag, of which guards test the name, the attributes and the position."""

    name: Name
    attributes: dict[Name, str]

    def position(self, position: PositionTest) -> int:
        """Return the element's position among its siblings that a `PositionTest` counts. It counts
        calls, so it must be called for each sibling."""
        ...


class StepGroup:
    """The steps from one state that have the same name test, by their guards."""

    __slots__ = ("_by_attribute", "_others", "_positions", "_target", "_targets")

    def __init__(self) -> None:
        self._positions: list[PositionTest] = []
        self._target: PathState | None = None
        self._targets: dict[Formula, PathState] = {}
        self._by_attribute: dict[Name, ComparisonIndex[tuple[Formula, PathState]]] = {}
        self._others: list[tuple[Formula, PathState]] = []

    def state_for(self, guard: Formula) -> PathState:
        """Return the state that a step with this guard leads to, which is made if it is new."""
        if guard == TRUE:
            self._target = self._target or PathState()
            return self._target
        state = self._targets.get(guard)
        if state is None:
            state = self._targets[guard] = PathState()
            self._positions += _positions(guard)
            self._enter(guard, state)
        return state

    def _enter(self, guard: Formula, state: PathState) -> None:
        """Index a guard by one of its comparisons, an equality if it has one; the rest is tested on
        a hit."""
        parts = guard.parts if isinstance(guard, And) else (guard,)
        indexed = [
            part for part in parts if isinstance(part, AttributeTest) and None not in part.test
        ]
        if not indexed:
            self._others.append((guard, state))
            return
        key = min(indexed, key=lambda part: part.comparison is None or part.comparison[0] != "=")
        rest = And(tuple(part for part in parts if part is not key))
        index = self._by_attribute.setdefault(
            Name(key.test.ns or "", key.test.local or ""), ComparisonIndex()
        )
        index.add(key.comparison, (rest, state))

    def reached(self, start: Start) -> Iterator[PathState]:
        """Yield the states that this element leads to."""
        if self._target is not None:
            yield self._target
        # Positions count every sibling, so they are counted before any guard is tested.
        for position in self._positions:
            start.position(position)
        if self._by_attribute:
            for name, value in start.attributes.items():
                index = self._by_attribute.get(name)
                if index is not None:
                    for rest, state in index.found(value):
                        if rest == TRUE or guarded(rest, start):
                            yield state
        for guard, state in self._others:
            if guarded(guard, start):
                yield state


class Branches:
    """The groups of steps from one state, by their name tests."""

    __slots__ = ("_any", "_by_name", "_by_ns")

    def __init__(self) -> None:
        self._by_name: dict[Name, StepGroup] = {}
        self._by_ns: dict[str, StepGroup] = {}
        self._any: StepGroup | None = None

    def group(self, test: NameTest) -> StepGroup:
        if test.ns is None:
            self._any = self._any or StepGroup()
            return self._any
        if test.local is None:
            return self._by_ns.setdefault(test.ns, StepGroup())
        return self._by_name.setdefault(Name(test.ns, test.local), StepGroup())

    def reached(self, start: Start) -> Iterator[PathState]:
        group = self._by_name.get(start.name)
        if group is not None:
            yield from group.reached(start)
        if self._by_ns and (group := self._by_ns.get(start.name.ns)) is not None:
            yield from group.reached(start)
        if self._any is not None:
            yield from self._any.reached(start)


class PathState:
    """A place in the automaton that paths can reach."""

    __slots__ = ("accepted", "anchor", "children", "descendants")

    def __init__(self) -> None:
        self.children: Branches | None = None
        self.descendants: Branches | None = None
        self.accepted: list[Condition] = []
        self.anchor: Anchor | None = None

    def add(self, pattern: PathPattern, condition: Condition) -> None:
        """Make `condition` hold where the pattern fits below this state."""
        state = self
        for step in pattern.steps:
            state = state._after(step)
        if pattern.formula == TRUE:
            state.accepted.append(condition)
        else:
            if state.anchor is None:
                state.anchor = Anchor()
            state.anchor.add(pattern.formula, condition)

    def _after(self, step: Step) -> PathState:
        if step.descend:
            self.descendants = self.descendants or Branches()
            branches = self.descendants
        else:
            self.children = self.children or Branches()
            branches = self.children
        return branches.group(step.test).state_for(step.guard)


class Anchor:
    """The formulas about an element's content at the end of paths, and the patterns inside of
    them."""

    __slots__ = ("_conditions", "always", "inner", "strings", "texts")

    def __init__(self) -> None:
        self.inner = PathState()
        self.always: list[tuple[Formula, Condition]] = []
        self.strings: ComparisonIndex[Condition] | None = None
        self.texts: ComparisonIndex[Condition] | None = None
        self._conditions: dict[Formula, Condition] = {}

    def add(self, formula: Formula, condition: Condition) -> None:
        compiled = self._compiled(formula)
        needed = _needed(compiled)
        if needed is None:
            self.always.append((compiled, condition))
        for each in needed or ():
            each.triggers.append((compiled, condition))

    def _compiled(self, formula: Formula) -> Formula:
        match formula:
            case And(parts):
                return And(tuple(self._compiled(part) for part in parts))
            case Or(parts):
                return Or(tuple(self._compiled(part) for part in parts))
            case Not(part):
                return Not(self._compiled(part))
            case StringTest() | TextTest() | Exists():
                return self._condition(formula)
            case _:
                return formula

    def _condition(self, formula: StringTest | TextTest | Exists) -> Condition:
        condition = self._conditions.get(formula)
        if condition is None:
            condition = self._conditions[formula] = Condition(self)
            if isinstance(formula, StringTest):
                self.strings = self.strings or ComparisonIndex()
                self.strings.add(formula.comparison, condition)
            elif isinstance(formula, TextTest):
                self.texts = self.texts or ComparisonIndex()
                self.texts.add(formula.comparison, condition)
            else:
                self.inner.add(formula.pattern, condition)
        return condition


def _needed(formula: Formula) -> set[Condition] | None:
    """Return conditions of which at least one holds whenever the formula does; None if there are
    none.

    Of several that an `and` needs, it returns the one with the fewest formulas waiting: testing a
    formula only when that condition holds keeps thousands of formulas with a common part apart.
    """
    match formula:
        case Condition():
            return {formula}
        case And(parts):
            found = [_needed(part) for part in parts]
            choices = [each for each in found if each is not None]
            return min(choices, key=_waiting, default=None)
        case Or(parts):
            needed: set[Condition] = set()
            for part in parts:
                each = _needed(part)
                if each is None:
                    return None
                needed |= each
            return needed
        case _:
            return None


def _waiting(conditions: set[Condition]) -> int:
    return sum(len(condition.triggers) for condition in conditions)


def _positions(guard: Formula) -> list[PositionTest]:
    """Return all positions in a guard, each after the positions in its own guard."""
    match guard:
        case And(parts) | Or(parts):
            return [position for part in parts for position in _positions(part)]
        case Not(part):
            return _positions(part)
        case PositionTest():
            return [guard]
        case _:
            return []


def guarded(guard: Formula, start: Start) -> bool:
    """Return whether a start tag passes a guard."""
    match guard:
        case And(parts):
            return all(guarded(part, start) for part in parts)
        case Or(parts):
            return any(guarded(part, start) for part in parts)
        case Not(part):
            return not guarded(part, start)
        case PositionTest():
            return compares(guard.comparison, float(start.position(guard)))
        case AttributeTest():
            return has_attribute(guard, start.attributes)
        case _:
            raise AssertionError("a guard must be decided by the start tag alone")


def has_attribute(wanted: AttributeTest, attributes: dict[Name, str]) -> bool:
    """Return whether one of the attributes passes the name test and the comparison of `wanted`."""
    test, comparison = wanted.test, wanted.comparison
    if test.ns is not None and test.local is not None:
        value = attributes.get(Name(test.ns, test.local))
        return value is not None and (comparison is None or holds(comparison, value))
    return any(
        test.fits(name) and (comparison is None or holds(comparison, value))
        for name, value in attributes.items()
    )


def is_true(formula: Formula, true: set[Condition], attributes: dict[Name, str]) -> bool:
    """Return whether a formula holds for an element for which the conditions in `true` hold."""
    match formula:
        case Condition():
            return formula in true
        case And(parts):
            return all(is_true(part, true, attributes) for part in parts)
        case Or(parts):
            return any(is_true(part, true, attributes) for part in parts)
        case Not(part):
            return not is_true(part, true, attributes)
        case AttributeTest():
            return has_attribute(formula, attributes)
        case _:
            raise AssertionError("a condition should have replaced this formula")
