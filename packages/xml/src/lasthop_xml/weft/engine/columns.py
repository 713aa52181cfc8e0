"""Columns of values, their entries, and the links between them."""

from __future__ import annotations

from typing import Any, Final

from lasthop_xml.weft.exact import LARGEST
from lasthop_xml.weft.runs import NUMBER, TIME, Run
from lasthop_xml.xas.names import Name
from lasthop_xml.xas.types.numbers import Integer
from lasthop_xml.xas.types.table import PRIMITIVES

FIRST_CREDIT: Final = 16
"""The number of new values that a column may keep before any of them occurs again; ids and times
never occur again."""


class Nothing:
    """A value that is equal to no other value."""

    __slots__ = ()


NOTHING: Final = Nothing()


class Place:
    """The open elements at one point of a document: the innermost element, and the `Place` outside
    of it."""

    __slots__ = ("depth", "inner", "name", "number", "outer")

    def __init__(self, outer: Place | None, name: Name | None, depth: int, number: int) -> None:
        self.outer = outer
        self.name = name
        self.depth = depth
        self.number = number
        self.inner: dict[Name, Place] = {}


class Link:
    """A run, and the column of the value that it leads to, which is DEAD_END at the end of a
    document."""

    __slots__ = ("column", "run")

    def __init__(self, run: Any, column: Column) -> None:
        self.run = run
        self.column = column


class Entry:
    """A value of a column. Number 0 stands for all values that are not kept."""

    __slots__ = ("code", "column", "index", "link", "linked", "value")

    def __init__(self, column: Column, value: Any, index: int, link: Link) -> None:
        self.column = column
        self.value = value
        self.index = index
        self.code = (index << column.shift) + 1
        self.link = link
        self.linked = False


class Base:
    """The number from which the next number of a column is written as a step."""

    __slots__ = ("number",)

    def __init__(self) -> None:
        self.number = 0


class Column:
    """The values that occurred at one place of documents, and the guesses of the next one."""

    __slots__ = (
        "base",
        "changes",
        "credit",
        "current",
        "entries",
        "guess",
        "highest",
        "last",
        "linked",
        "links",
        "lowest",
        "mask",
        "model",
        "number",
        "other",
        "parent",
        "place",
        "run",
        "scale",
        "selects",
        "shape",
        "shift",
        "stamp",
        "tokens",
        "type",
        "usual",
        "word_list",
        "words",
    )

    def __init__(
        self, number: int, place: Place, run: Run | None, base: Base, usual: Link | None
    ) -> None:
        self.number = number
        self.place = place
        self.run = run
        shape = 0 if run is None else run.shape
        self.shape = shape
        self.type: Any = None if run is None else run.name
        self.shift = 2 if NUMBER <= shape <= TIME else 1
        self.mask = (1 << self.shift) - 1
        self.base = base
        self.scale = 0
        self.lowest = 0
        self.highest = 1
        if shape == NUMBER:
            primitive = PRIMITIVES[self.type]  # type: ignore[index]
            assert isinstance(primitive, Integer)
            self.lowest = max(primitive.lowest, 1 - LARGEST)
            self.highest = min(primitive.highest, LARGEST - 1)
        self.parent: Column = self
        self.current = 0
        self.stamp = 0
        self.selects = False
        self.linked = 0
        self.changes = 0
        self.links: dict[Run, Link] = {}
        self.usual: Link = usual or Link(None, self)
        self.forget()

    def forget(self) -> None:
        """Forget all values of the column."""
        self.credit = FIRST_CREDIT
        self.model: Any = None
        self.other = Entry(self, NOTHING, 0, self.usual)
        self.last = self.other
        self.entries: list[Entry] = [self.other]
        self.tokens: dict[Any, Entry] = {}
        self.guess: dict[int, Entry] = {}
        self.words: dict[str, int] = {}
        self.word_list: list[str] = []


DEAD_END: Final = Column(0, Place(None, None, 0, 0), None, Base(), None)
"""The column at the end of a document, which has no values."""
NOWHERE: Final = DEAD_END.usual
"""The guess when nothing is known: a link whose run is equal to no run."""
