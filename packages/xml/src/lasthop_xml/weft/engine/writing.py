"""From runs and values to the body of a message: a bit for every step, and what was not guessed.

number of values n
n + 1 bits, least significant first: 1 where the run or the value was not guessed
for every such step, in order
    0, the run, and the value's code + 1 or 0 if it was guessed;
    or the value's code + 1, if only the value was not
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lasthop_xml.weft.engine.columns import Column, Entry, Link
from lasthop_xml.weft.engine.forms import write_value
from lasthop_xml.weft.engine.memory import Memory
from lasthop_xml.weft.engine.octets import put_flags, put_number
from lasthop_xml.weft.layout import (
    ATTRIBUTE_SLOT,
    END,
    OTHER_SLOT,
    PREFIX,
    SLOTS,
    START,
    TYPE,
    TYPED_SLOT,
)
from lasthop_xml.weft.runs import Run
from lasthop_xml.xas.events import ATTRIBUTE, ELEMENT_END, ELEMENT_START, TYPED_CONTENT


class BodyWriter:
    """Writes the bodies of one direction of a session, at levels fast and deflate."""

    __slots__ = ("memory", "out")

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self.out = bytearray()

    def body(self, runs: Sequence[Run], values: Sequence[Any]) -> bytes:
        """Return the body of one document."""
        memory = self.memory
        memory.message += 1
        # Copies, so that the values are read from main memory together and not as they are met.
        items = list(values)
        count = len(items)
        steps = runs if type(runs) is list else list(runs)
        # The number of values, and space for the bits.
        if count < 0x80:
            out = bytearray((count >> 3) + 2)
            out[0] = count
            start = 1
        else:
            out = bytearray()
            put_number(out, count)
            start = len(out)
            out += bytes((count >> 3) + 1)
        self.out = out
        missed = bytearray(b"0") * (count + 1)
        before = entry = memory.start.other
        for at, value in enumerate(items):
            link = entry.link
            if link.run is steps[at]:
                column = link.column
                found = column.guess.get(column.parent.current)
                guess = column.last if found is None else found
                if guess.value == value:
                    column.current = guess.index
                    before = entry
                    entry = guess
                    continue
                missed[at] = 0x31
            else:
                missed[at] = 0x31
                out.append(0)
                column = self._follow(before.column, entry, steps[at]).column
                found = column.guess.get(column.parent.current)
                guess = column.last if found is None else found
                if guess.value == value:
                    out.append(0)
                    column.current = guess.index
                    before = entry
                    entry = guess
                    continue
            found = column.tokens.get(value)
            if found is not None:
                guess = found
                code = guess.code
                if code < 0x80:
                    out.append(code)
                else:
                    put_number(out, code)
                column.credit += 2
                column.guess[column.parent.current] = guess
                column.last = guess
                column.current = guess.index
            else:
                size = write_value(column, out, value)
                if column.credit > 0:
                    guess = memory.keep(entry.column, column, value, size)
                    if guess.index:
                        column.tokens[value] = guess
                else:
                    column.current = 0
                    guess = column.other
            before = entry
            entry = guess
        if entry.link.run is not steps[count]:
            missed[count] = 0x31
            self._follow(before.column, entry, steps[count])
        put_flags(out, start, missed)
        return bytes(out)

    def _follow(self, before: Column, entry: Entry, run: Run) -> Link:
        memory = self.memory
        index = memory.runs.get(run)
        if index is not None:
            put_number(self.out, index + 1)
        else:
            self.out.append(0)
            self._run(run)
            memory.add_run(run)
        return memory.follow(before, entry, run)

    def run_octets(self, run: Run) -> bytes:
        """Return the bytes of a run that is written in full."""
        self.out = bytearray()
        self._run(run)
        return bytes(self.out)

    def _string(self, text: str) -> None:
        data = text.encode()
        put_number(self.out, len(data))
        self.out += data

    def _run(self, run: Run) -> None:
        """Write a run in full, with numbers for names that were seen before."""
        ends = 0
        for kind, name, value in run.events:
            if kind is ELEMENT_END:
                ends += 1
                continue
            if ends:
                self._item(END, ends - 1)
                ends = 0
            if kind is ATTRIBUTE:
                self._type(value)
            else:
                self._named(START if kind is ELEMENT_START else PREFIX, name)
        if ends:
            self._item(END, ends - 1)
        if run.slot is ATTRIBUTE:
            self._named(ATTRIBUTE_SLOT, run.name)
        elif run.slot is TYPED_CONTENT:
            self._named(TYPED_SLOT, run.name)
        else:
            self._item(OTHER_SLOT, SLOTS[run.slot, run.name])

    def _item(self, kind: int, index: int) -> None:
        """Write an item: three bits for its kind, five for a small number."""
        if index < 31:
            self.out.append(index << 3 | kind)
        else:
            self.out.append(31 << 3 | kind)
            put_number(self.out, index - 31)

    def _named(self, kind: int, name: Any) -> None:
        memory = self.memory
        index = memory.names.get(name)
        if index is not None:
            self._item(kind, index + 1)
            return
        self._item(kind, 0)
        space = memory.spaces.get(name.ns)
        if space is not None:
            put_number(self.out, space + 1)
        else:
            put_number(self.out, 0)
            self._string(name.ns)
            memory.add_space(name.ns)
        self._string(name.local)
        memory.add_name(name)

    def _type(self, text: str) -> None:
        memory = self.memory
        index = memory.types.get(text)
        if index is not None:
            self._item(TYPE, index + 1)
        else:
            self._item(TYPE, 0)
            self._string(text)
            memory.add_type(text)
