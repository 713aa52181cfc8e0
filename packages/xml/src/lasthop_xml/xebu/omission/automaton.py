"""The automaton of a schema: its states, and the event that each of them foresees.

There is a state for every set of things that can come next inside an element; elements call one
another, so that recursion needs no further states but a stack. A state must foresee the same event
at both ends. A wrong guess costs a byte, and the document still arrives unchanged.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from lasthop_xml.relaxng.nameclass import NameClass, OneName, is_finite, names_of
from lasthop_xml.relaxng.patterns import Data, ElementPattern, Pattern, Value
from lasthop_xml.relaxng.schema import Schema
from lasthop_xml.xas.events import Event, attribute, content, end, start
from lasthop_xml.xas.names import XSD_NS, XSI_TYPE, Name
from lasthop_xml.xas.types.table import PRIMITIVES
from lasthop_xml.xebu.omission.positions import (
    KnownAttribute,
    Positions,
    TooManyPositions,
    attributes_of,
)
from lasthop_xml.xebu.omission.states import END, LOST, Child, ForeseenEnd, Forward, State

MOST_STATES: Final = 50_000
"""The largest number of states of a schema; elements beyond that are sent without omissions."""

MOST_FORESEEN: Final = 256
"""The largest number of foreseen events in a row; after them an event has to be sent, unless the
element in which the row began ends. Messages have a dozen; without this limit a few bytes could
stand for a million events."""


class Automaton:
    """All states of a schema, by which both ends follow a document."""

    def __init__(self, schema: Schema) -> None:
        self.states: list[State] = []
        self._inside: dict[ElementPattern, State] = {}
        self.start = _Content(self.states, Positions(schema.start)).first
        """The state before the root element."""
        for element in schema.elements:
            self._inside[element] = self._element(element)
        self._avoid_loops()
        for state in self.states:
            state.forward = self._forward(state)

    def inside(self, element: ElementPattern) -> State:
        """Return the state right after the start tag of an element."""
        return self._inside.get(element, LOST)

    def _element(self, element: ElementPattern) -> State:
        try:
            positions = Positions(element.content)
        except TooManyPositions:
            return LOST
        if len(self.states) + len(positions.leaves) > MOST_STATES:
            return LOST
        attributes = attributes_of(element.content)
        return _Content(self.states, positions, attributes, can_end=True).first

    def _avoid_loops(self) -> None:
        """Foresee nothing in states from which foreseen events would go on without one that has to
        be sent.

        Ends are foreseen nevertheless: each of them leaves one element less open.
        """
        changed = True
        while changed:
            changed = False
            # States of inner elements come later in the list; correcting them first often corrects
            # the outer ones.
            for state in reversed(self.states):
                if self._loops(state):
                    state.foreseen = END if state.ends else None
                    changed = True

    def _loops(self, state: State) -> bool:
        stack: list[State] = []
        for _ in range(MOST_FORESEEN):
            forward = self._forward(state)
            if forward is not None:
                state = forward.state
                if forward.outer is not None:
                    stack.append(forward.outer[0])
            elif state.foreseen is END and stack:
                state = stack.pop()
            else:
                return False
        return True

    def _forward(self, state: State) -> Forward | None:
        event = state.foreseen
        if event is None or isinstance(event, ForeseenEnd):
            return None
        if event.name is None:  # it is a text
            return Forward(state.text or LOST, None)
        if event.value is not None:  # it is an attribute
            return Forward(state.attributes[event.name], None)
        child = state.children[event.name]
        return Forward(self.inside(child.element), (child.then, end(event.name)))


class _Content:
    """Makes the states of one element; `first` is the state right after its start tag."""

    def __init__(
        self,
        states: list[State],
        positions: Positions,
        attributes: Sequence[KnownAttribute] = (),
        *,
        can_end: bool = False,
    ) -> None:
        self._states = states
        self._positions = positions
        self._attributes = attributes
        self._can_end = can_end
        self._last = frozenset(positions.whole.last)
        self._made: dict[tuple[tuple[int, ...], bool], State] = {}
        self._empty: list[tuple[State, tuple[int, ...]]] = []
        whole = positions.whole
        behind = self._state(whole.first, ends=whole.nullable, after_text=False)
        while self._empty:
            self._fill(*self._empty.pop())
        self.first = self._before(behind)

    def _new(self) -> State:
        state = State(len(self._states))
        self._states.append(state)
        return state

    def _state(self, following: Iterable[int], *, ends: bool, after_text: bool) -> State:
        """Return the state in which these positions can come next; a text does not follow a
        text."""
        leaves = self._positions.leaves
        order = tuple(
            each
            for each in dict.fromkeys(following)
            if not after_text or isinstance(leaves[each], ElementPattern)
        )
        state = self._made.get((order, ends))
        if state is None:
            state = self._made[order, ends] = self._new()
            state.ends = ends and self._can_end
            self._empty.append((state, order))
        return state

    def _behind(self, position: int) -> State:
        after_text = not isinstance(self._positions.leaves[position], ElementPattern)
        ends = position in self._last
        return self._state(self._positions.follow[position], ends=ends, after_text=after_text)

    def _fill(self, state: State, order: tuple[int, ...]) -> None:
        types: list[Name | None] = []
        elements: list[int] = []
        for position in order:
            leaf = self._positions.leaves[position]
            if isinstance(leaf, ElementPattern):
                elements.append(position)
                child = Child(leaf, self._behind(position))
                if is_finite(leaf.names):
                    for name in names_of(leaf.names):
                        state.children.setdefault(name, child)
                else:
                    state.open_children.append((leaf.names, child))
            else:
                types.append(_primitive(leaf))
                if state.text is None:
                    state.text = self._behind(position)
        state.has_values = any(types)
        if len(set(types)) == 1:
            state.type = types[0]
        state.foreseen = self._foresee(state, order, elements)

    def _foresee(
        self, state: State, order: tuple[int, ...], elements: list[int]
    ) -> Event | ForeseenEnd | None:
        """Choose the event that a state foresees, by what messages are usually like.

        Where a text can come, it does. What is repeated goes on, what is optional is missing. Of
        alternatives, and of the parts of an interleave, none is more likely than the others.
        """
        leaves = self._positions.leaves
        if state.text is not None:
            leaf = leaves[order[0]] if len(order) == 1 and not state.ends else None
            return content(leaf.text) if isinstance(leaf, Value) and leaf.text else None
        if len(elements) == 1 and not state.ends:
            return _start(leaves[elements[0]])
        for position in elements:
            if position in self._positions.repeated and position not in self._positions.loose:
                return _start(leaves[position])
        return END if state.ends else None

    # Attributes

    def _before(self, following: State) -> State:
        """Return the state before all attributes, given the state after them."""
        following = self._announced(following)
        for pattern, required in reversed(self._attributes):
            state = self._new()
            fixed = _fixed(pattern.names, pattern.content)
            if not required or not is_finite(pattern.names):
                _copy(following, state)
            elif fixed is not None:
                state.foreseen = fixed
            if is_finite(pattern.names):
                state.attributes |= dict.fromkeys(names_of(pattern.names), following)
            else:
                state.open_attributes.append(pattern.names)
            following = state
        return following

    def _announced(self, behind: State) -> State:
        """Return the state before an xsi:type that repeats the type in the schema: in the thesis,
        typed values have one."""
        if behind.type is None:
            return behind
        if any(pattern.names.contains(XSI_TYPE) for pattern, _ in self._attributes):
            behind.type = None
            return behind
        state = self._new()
        _copy(behind, state)
        state.announcement = attribute(XSI_TYPE, f"xsd:{behind.type.local}")
        state.attributes[XSI_TYPE] = behind
        return state


def _start(leaf: Pattern) -> Event | None:
    if isinstance(leaf, ElementPattern) and isinstance(leaf.names, OneName):
        return start(leaf.names.name)
    return None


def _primitive(leaf: Pattern) -> Name | None:
    """Return the type of a value if Xebu has a binary form for it; otherwise None."""
    if not isinstance(leaf, Data) or not leaf.type.library:
        return None
    name = Name(XSD_NS, leaf.type.name)
    return name if name in PRIMITIVES else None


def _fixed(names: NameClass, value: Pattern) -> Event | None:
    """Return the event of an attribute with one name and one value; None if either can vary."""
    if isinstance(names, OneName) and isinstance(value, Value):
        return attribute(names.name, value.text)
    return None


def _copy(source: State, to: State) -> None:
    """Allow in the state `to` everything that can come in the state `source`."""
    to.children, to.open_children = source.children, source.open_children
    to.attributes = dict(source.attributes)
    to.open_attributes = list(source.open_attributes)
    to.text, to.has_values, to.type = source.text, source.has_values, source.type
    to.ends = source.ends
    to.foreseen, to.announcement = source.foreseen, source.announcement
