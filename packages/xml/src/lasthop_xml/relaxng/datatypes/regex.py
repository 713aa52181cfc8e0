"""The regular expressions of XML Schema (part 2, appendix F).

The matcher follows all alternatives at once, so the time is at most the product of the lengths of
expression and text: a schema may be careless, and a document hostile.
"""

from __future__ import annotations

import re
from typing import Final

from lasthop_xml.relaxng.datatypes.charsets import CharSet, ExpressionReader, any_of
from lasthop_xml.xas.errors import InvalidValue

MOST_STATES: Final = 20_000
"""The largest number of states of one expression; a part that is repeated five times has five times
as many states."""
MOST_NESTED: Final = 50

_QUANTITY = re.compile(r"\{(?P<least>[0-9]{1,9})(?P<comma>,(?P<most>[0-9]{1,9})?)?\}")


class Expression:
    """A compiled regular expression, which has to match a whole text."""

    def __init__(self, source: str) -> None:
        # State i leads to `_next[i]` on characters of `_sets[i]`, and without a character to
        # `_free[i]`.
        self._sets: list[CharSet | None] = []
        self._next: list[int] = []
        self._free: list[list[int]] = []
        self._source = source
        self._reader = ExpressionReader(source)
        self._depth = 0
        self._start, self._end = self._choice()
        if not self._reader.at_end():
            raise self._reader.wrong()

    def matches(self, text: str) -> bool:
        """Return whether the expression matches all of `text`."""
        now = self._closure([self._start])
        for char in text:
            moved = []
            for state in now:
                chars = self._sets[state]
                if chars is not None and char in chars:
                    moved.append(self._next[state])
            now = self._closure(moved)
            if not now:
                return False
        return self._end in now

    def _closure(self, states: list[int]) -> set[int]:
        seen = set(states)
        waiting = states
        while waiting:
            for state in self._free[waiting.pop()]:
                if state not in seen:
                    seen.add(state)
                    waiting.append(state)
        return seen

    def _state(self) -> int:
        if len(self._free) >= MOST_STATES:
            raise InvalidValue("an expression is too large", most=MOST_STATES)
        self._sets.append(None)
        self._next.append(-1)
        self._free.append([])
        return len(self._free) - 1

    # Each of these methods returns the first and the last state of the part that it has read.

    def _choice(self) -> tuple[int, int]:
        self._depth += 1
        if self._depth > MOST_NESTED:
            raise InvalidValue("an expression is too deeply nested", most=MOST_NESTED)
        start, end = self._state(), self._state()
        while True:
            first, last = self._branch()
            self._free[start].append(first)
            self._free[last].append(end)
            if not self._reader.take("|"):
                self._depth -= 1
                return start, end

    def _branch(self) -> tuple[int, int]:
        start = end = self._state()
        while not self._reader.at_end() and self._reader.peek() not in "|)":
            first, last = self._piece()
            self._free[end].append(first)
            end = last
        return start, end

    def _piece(self) -> tuple[int, int]:
        """Read an atom with its quantity; the atom is read again for every copy."""
        at = self._reader.pos
        copy = self._atom()
        least, most = self._quantity()
        behind = self._reader.pos
        start = end = self._state()
        for count in range(max(least, most or 0, 1)):
            if count:
                self._reader.pos = at
                copy = self._atom()
            first, last = copy
            if most == 0:
                break
            self._free[end].append(first)
            if count >= least:
                self._free[end].append(last)
            if most is None and count >= max(least, 1) - 1:
                self._free[last].append(first)
            end = last
        self._reader.pos = behind
        return start, end

    def _quantity(self) -> tuple[int, int | None]:
        reader = self._reader
        for sign, bounds in (("?", (0, 1)), ("*", (0, None)), ("+", (1, None))):
            if reader.take(sign):
                return bounds
        if reader.at_end() or reader.peek() != "{":
            return 1, 1
        found = _QUANTITY.match(self._source, reader.pos)
        if found is None:
            raise reader.wrong()
        least = int(found["least"])
        most = least if found["comma"] is None else int(found["most"]) if found["most"] else None
        if most is not None and most < least:
            raise reader.wrong()
        reader.pos = found.end()
        return least, most

    def _atom(self) -> tuple[int, int]:
        if self._reader.take("("):
            inner = self._choice()
            if not self._reader.take(")"):
                raise self._reader.wrong()
            return inner
        start, end = self._state(), self._state()
        self._sets[start] = any_of(self._reader.atom())
        self._next[start] = end
        return start, end
