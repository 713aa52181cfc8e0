"""The run of one document through the automaton: a sink for events that finds the subscriptions
which match.

For each open element there is a frame with the states that it has reached. A state comes with the
anchors that its path started from, as a set of bits: bit 0 is the document, bit n the open element
of depth n. The work for an element is that of the states its parent has reached, whatever the
number of subscriptions; the number of states is at most that of the automaton, so no document can
make it explode.
"""

from __future__ import annotations

from collections.abc import Hashable

from lasthop_xml.xas.errors import MalformedEvents, XmlTooLarge
from lasthop_xml.xas.events import (
    ATTRIBUTE,
    CONTENT,
    ELEMENT_END,
    ELEMENT_START,
    TYPED_CONTENT,
    Event,
)
from lasthop_xml.xas.limits import DEFAULT_LIMITS, Limits
from lasthop_xml.xas.names import Name
from lasthop_xml.xas.types.table import lexical
from lasthop_xml.xpath.automaton import Anchor, PathState, guarded, is_true
from lasthop_xml.xpath.pattern import Condition, Formula, NameTest, PositionTest

_NOWHERE = Name("", "")


class _Frame:
    """The matching state of an open element, or of the document."""

    __slots__ = (
        "_counted",
        "_parent",
        "_positions",
        "anchors",
        "attributes",
        "before",
        "first",
        "loops",
        "name",
        "states",
        "true",
    )

    def __init__(
        self,
        name: Name,
        attributes: dict[Name, str],
        parent: _Frame | None,
        *,
        first: int = 0,
        before: int = 0,
    ) -> None:
        self.name = name
        self.attributes = attributes
        self.states: dict[PathState, int] = {}
        """States whose steps to children may be taken from here, with the bits of their anchors."""
        self.loops: dict[PathState, int] = {} if parent is None else parent.loops
        """States whose steps to descendants may be taken from here; shared with the parent until
        more are added."""
        self.anchors: dict[Anchor, int] = {}
        self.true: set[Condition] = set()
        self.first = first
        """The index of the first piece of text inside the element."""
        self.before = before
        """The number of characters in the pieces before the element."""
        self._parent = parent
        self._positions: dict[tuple[NameTest, Formula], int] = {}
        self._counted: dict[tuple[NameTest, Formula], int] = {}

    def position(self, position: PositionTest) -> int:
        key = position.test, position.guard
        found = self._positions.get(key)
        if found is None:
            found = 0
            if self._parent is not None and guarded(position.guard, self):
                counted = self._parent._counted
                found = counted[key] = counted.get(key, 0) + 1
            self._positions[key] = found
        return found


class Matcher:
    """Takes the events of one document and finds the keys of the subscriptions that match it."""

    def __init__(self, root: PathState, *, limits: Limits = DEFAULT_LIMITS) -> None:
        self._limits = limits
        document = _Frame(_NOWHERE, {}, None)
        self._frames = [document]
        self._reach(document, {root: 1})
        self._name: Name | None = None  # of a start tag whose attributes are still coming
        self._attributes: dict[Name, str] = {}
        self._text: list[str] = []
        self._wanted = 0  # open elements whose text is wanted
        self._pieces: list[str] = []
        self._length = 0  # of all pieces, in characters
        self._most_compared = 16 * limits.size

    def append(self, event: Event) -> None:
        """Process the next event of the document."""
        kind, name, value = event
        if kind is ATTRIBUTE and name is not None:
            self._attributes[name] = value
            return
        if self._name is not None:
            self._start()
        if kind is CONTENT:
            self._text.append(value)
        elif kind is TYPED_CONTENT:
            self._text.append(lexical(name, value))
        else:
            if self._text:
                self._end_text()
            if kind is ELEMENT_START:
                self._name = name
            elif kind is ELEMENT_END:
                self._end()

    @property
    def matched(self) -> set[Hashable]:
        """Return the keys of the subscriptions that match the events so far; the set only grows."""
        conditions = self._frames[0].true
        return set().union(*(condition.subscribers for condition in conditions))

    def _start(self) -> None:
        frames = self._frames
        parent = frames[-1]
        if len(frames) > self._limits.depth:
            raise XmlTooLarge("elements are too deeply nested", most=self._limits.depth)
        frame = _Frame(
            self._name or _NOWHERE,
            self._attributes,
            parent,
            first=len(self._pieces),
            before=self._length,
        )
        frames.append(frame)
        self._name, self._attributes = None, {}
        reached: dict[PathState, int] = {}
        for state, mask in parent.states.items():
            for target in state.children.reached(frame):  # type: ignore[union-attr]
                reached[target] = reached.get(target, 0) | mask
        for state, mask in parent.loops.items():
            for target in state.descendants.reached(frame):  # type: ignore[union-attr]
                reached[target] = reached.get(target, 0) | mask
        if reached:
            self._reach(frame, reached)

    def _reach(self, frame: _Frame, reached: dict[PathState, int]) -> None:
        here = 1 << (len(self._frames) - 1)
        inner: dict[PathState, int] = {}
        for state, mask in reached.items():
            for condition in state.accepted:
                self._hold(condition, mask)
            anchor = state.anchor
            if anchor is not None:
                frame.anchors[anchor] = mask
                inner[anchor.inner] = here
                self._wanted += anchor.strings is not None
        loops = {}
        for state, mask in (*reached.items(), *inner.items()):
            if state.children is not None:
                frame.states[state] = mask
            if state.descendants is not None:
                loops[state] = mask | frame.loops.get(state, 0)
        if loops:
            frame.loops = {**frame.loops, **loops}

    def _hold(self, condition: Condition, mask: int) -> None:
        """Record that a condition is true of the open elements whose bits are in `mask`."""
        frames = self._frames
        while mask:
            lowest = mask & -mask
            frames[lowest.bit_length() - 1].true.add(condition)
            mask ^= lowest

    def _end_text(self) -> None:
        text = "".join(self._text)
        self._text.clear()
        if not text:
            return
        if self._wanted:
            self._pieces.append(text)
            self._length += len(text)
        frame = self._frames[-1]
        for anchor in frame.anchors:
            if anchor.texts is not None:
                frame.true.update(anchor.texts.found(text))

    def _end(self) -> None:
        if len(self._frames) == 1:
            raise MalformedEvents("an element ends that is not open")
        frame = self._frames.pop()
        for anchor in frame.anchors:
            if anchor.strings is not None:
                self._compare(anchor, frame)
        for anchor, mask in frame.anchors.items():
            for formula, condition in anchor.always:
                if is_true(formula, frame.true, frame.attributes):
                    self._hold(condition, mask)
        for true in frame.true:
            mask = frame.anchors[true.home]
            for formula, condition in true.triggers:
                if is_true(formula, frame.true, frame.attributes):
                    self._hold(condition, mask)
        if not self._wanted:
            self._pieces.clear()
            self._length = 0

    def _compare(self, anchor: Anchor, frame: _Frame) -> None:
        self._wanted -= 1
        strings = anchor.strings
        if strings is None:
            return
        length = self._length - frame.before
        if strings.longest is not None and length > strings.longest:
            return
        # A text is compared again for every element around it, so the total is limited here.
        self._most_compared -= length
        if self._most_compared < 0:
            raise XmlTooLarge("comparing texts takes too long", most=16 * self._limits.size)
        frame.true.update(strings.found("".join(self._pieces[frame.first :])))
