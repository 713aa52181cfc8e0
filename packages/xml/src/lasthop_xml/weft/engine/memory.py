"""The memory of both ends of a session: columns of values, and what followed what.

A *column* is a place where values occur: the open elements, what was opened for the value, and in
lists of names and values the name. Each value of a column is an *entry*, and has the *link* (run
and next column) that followed it. So a right guess of a value is also a guess of what comes next,
and a message that brings nothing new is a walk along links.

Both ends take the same steps in the same order, and learn only where a guess was wrong: a right
guess changes nothing but the current place.
"""

from __future__ import annotations

from typing import Any, Final

from lasthop_xml.weft.engine.columns import DEAD_END, NOWHERE, Base, Column, Entry, Link, Place
from lasthop_xml.weft.errors import WeftLimitError
from lasthop_xml.weft.runs import TEXT, TIME, Run
from lasthop_xml.xas.errors import MalformedEvents
from lasthop_xml.xas.names import XML_NS, XSD_NS, XSI_NS, Name

MAX_SIZE: Final = 4 * 2**20
"""The largest number of bytes of a memory, by a rough count; above it, both ends start again."""
MAX_TABLE: Final = 4096
"""The largest number of runs, names, namespaces, types or columns, each; above it, both ends start
again."""
MAX_ENTRIES: Final = 1024
"""The largest number of entries of a column, which then starts again. A value that did not come
back among so many is no loss."""
LONGEST_KEPT: Final = 256
"""The largest number of characters of a value that is kept; longer ones seldom repeat."""
LONGEST_SELECTOR: Final = 32
"""The largest number of characters of a name that has a column of its own for the values that
follow it."""
KNOWN_SPACES: Final = ("", XML_NS, XSD_NS, XSI_NS)
"""Namespaces that have a number from the start."""


class Memory:
    """All that one direction of a session has learned, at any level."""

    __slots__ = (
        "clock",
        "column_list",
        "columns",
        "depth",
        "longest",
        "message",
        "name_list",
        "names",
        "outside",
        "place_list",
        "run_list",
        "runs",
        "size",
        "space_list",
        "spaces",
        "start",
        "type_list",
        "types",
    )

    def __init__(self, depth: int) -> None:
        self.depth = depth
        self.size = 0
        """The rough size in bytes. Above MAX_SIZE both ends start again before the next message."""
        self.message = 0
        self.longest = 1
        """The largest number of events that one step can stand for."""
        self.runs: dict[Run, int] = {}
        self.run_list: list[Run] = []
        self.names: dict[Name, int] = {}
        self.name_list: list[Name] = []
        self.space_list: list[str] = list(KNOWN_SPACES)
        self.spaces: dict[str, int] = {ns: at for at, ns in enumerate(KNOWN_SPACES)}
        self.types: dict[str, int] = {}
        self.type_list: list[str] = []
        self.clock = Base()
        self.outside = Place(None, None, 0, 0)
        self.place_list = [self.outside]
        self.start = Column(0, self.outside, None, self.clock, NOWHERE)
        self.column_list: list[Column] = [self.start]
        self.columns: dict[tuple[int, Any, int, int], Column] = {}

    def grow(self, size: int, count: int) -> None:
        """Count `size` more bytes; a table with more than MAX_TABLE items makes both ends start
        again."""
        self.size += size
        if count > MAX_TABLE:
            self.size += MAX_SIZE

    def add_run(self, run: Run) -> None:
        """Give a run the next number."""
        self.runs[run] = len(self.run_list)
        self.run_list.append(run)
        self.longest = max(self.longest, len(run.events) + 1)
        self.grow(200 + 100 * len(run.events), len(self.run_list))

    def add_name(self, name: Name) -> None:
        """Give a name the next number."""
        self.names[name] = len(self.name_list)
        self.name_list.append(name)
        self.grow(200 + len(name.local), len(self.name_list))

    def add_space(self, ns: str) -> None:
        """Give a namespace the next number."""
        self.spaces[ns] = len(self.space_list)
        self.space_list.append(ns)
        self.grow(150 + len(ns), len(self.space_list))

    def add_type(self, text: str) -> None:
        """Give the value of an xsi:type the next number."""
        self.types[text] = len(self.type_list)
        self.type_list.append(text)
        self.grow(150 + len(text), len(self.type_list))

    def follow(self, before: Column, entry: Entry, run: Run) -> Link:
        """Learn that `run` came after `entry`, where something else was guessed; return the link to
        it."""
        column = entry.column
        if entry.linked:
            column.changes += 1
        elif entry.index:
            entry.linked = True
            column.linked += 1
        link = column.links.get(run)
        if link is None:
            link = column.links[run] = Link(run, self._column(before, column, 0, run))
            self.size += 150
            # The members of a list are followed by different runs, so they may be names that select
            # values.
            if column.parent is column and column.shape == TEXT:
                column.selects = len(column.links) > 1
        if column.selects:
            if 4 * column.changes > column.linked:
                column.selects = False
            elif entry.index:
                link = self._selected(before, entry, run)
        entry.link = link
        column.usual = link
        return link

    def _selected(self, before: Column, entry: Entry, run: Run) -> Link:
        """Return the link to a column whose values only follow this entry."""
        column = entry.column
        if run.slot is None or len(entry.value) > LONGEST_SELECTOR:
            return column.links[run]
        return Link(run, self._column(before, column, entry.index, run))

    def _column(self, before: Column, column: Column, index: int, run: Run) -> Column:
        """Return the column of the value after `run`; raise MalformedEvents if the run does not fit
        the open elements."""
        place = self.moved(column.place, run)
        if run.slot is None:
            if place is not self.outside:
                raise MalformedEvents("a document ends inside an element")
            return DEAD_END
        found = self.columns.get(
            (place.number, run.tail or run, column.number if index else 0, index)
        )
        if found is None:
            found = self.new_column(place, run, column.number if index else 0, index)
            # What a name selects depends on the value before the name.
            found.parent = before if index else column
        elif found.stamp == self.message and found.parent is not found and index == 0:
            # The column occurs twice in one message: it is a list, whose members predict one
            # another.
            found.parent = found
            found.guess.clear()
        found.stamp = self.message
        return found

    def new_column(self, place: Place, run: Run, selector: int, selected: int) -> Column:
        """Add a column for values after `run`, perhaps only for those that an entry of another
        column selects."""
        base = self.clock if run.shape == TIME else Base()
        column = Column(len(self.column_list), place, run, base, NOWHERE)
        self.columns[place.number, run.tail or run, selector, selected] = column
        self.column_list.append(column)
        self.grow(1500, len(self.column_list))
        return column

    def moved(self, place: Place, run: Run) -> Place:
        """Return the place after a run; raise MalformedEvents if the run does not fit the open
        elements."""
        for name in run.closes:
            if place.outer is None or place.name != name:
                raise MalformedEvents("an element ends that is not open", name=str(name))
            place = place.outer
        if place.depth + run.rises > self.depth:
            raise WeftLimitError("elements are too deeply nested", most=self.depth)
        for name in run.opens:
            place = place.inner.get(name) or self.inside(place, name)
        return place

    def inside(self, outer: Place, name: Name) -> Place:
        """Return a new place inside an element `name`."""
        place = Place(outer, name, outer.depth + 1, len(self.place_list))
        self.place_list.append(place)
        outer.inner[name] = place
        self.size += 300
        return place

    def keep(self, before: Column, column: Column, value: Any, size: int) -> Entry:
        """Learn a value that is new in its column, if it is worth it; return its entry."""
        key = column.parent.current
        guess = column.guess
        if key in guess:
            # There was a guess and it was wrong: a column of ids loses its credit like this.
            column.credit -= 1
        if column.credit <= 0 or size > LONGEST_KEPT:
            column.current = 0
            return column.other
        entries = column.entries
        index = len(entries)
        if index >= MAX_ENTRIES:
            column.forget()
            entries = column.entries
            index = 1
        usual = column.usual
        entry = Entry(column, value, index, usual)
        if column.selects and usual.run is not None:
            entry.link = self._selected(before, entry, usual.run)
        entries.append(entry)
        guess[key] = entry
        column.last = entry
        column.current = index
        self.size += 250 + size
        return entry
