"""From the body of a message to runs and values: the reverse of `writing`.

The peer may be hostile: every number is checked before it is used, and what the reader learns from
a message is limited by the message's size.
"""

from __future__ import annotations

from typing import Any

from lasthop_xml.weft.engine.columns import Column, Entry, Link
from lasthop_xml.weft.engine.forms import read_value
from lasthop_xml.weft.engine.memory import Memory
from lasthop_xml.weft.engine.octets import ByteSource
from lasthop_xml.weft.errors import WeftFormatError, WeftLimitError
from lasthop_xml.weft.layout import (
    ATTRIBUTE_SLOT,
    END,
    OTHER_SLOT,
    PREFIX,
    SLOT_LIST,
    START,
    TYPE,
    TYPED_SLOT,
)
from lasthop_xml.weft.runs import MAX_RUN, Run, RunSequence, run_of
from lasthop_xml.xas.events import (
    ATTRIBUTE,
    TYPED_CONTENT,
    Event,
    attribute,
    end,
    prefix,
    start,
)
from lasthop_xml.xas.limits import Limits
from lasthop_xml.xas.names import XSI_TYPE, Name, check_name, check_text


class BodyReader:
    """Reads the bodies of one direction of a session, at levels fast and deflate."""

    __slots__ = ("events", "limits", "memory", "room", "source")

    def __init__(self, memory: Memory, limits: Limits) -> None:
        self.memory = memory
        self.limits = limits
        self.events = limits.events
        self.room = limits.size
        self.source = ByteSource()

    def document(self, data: bytes, start: int) -> RunSequence:
        """Return the document whose body starts at `start`."""
        memory = self.memory
        source = self.source
        memory.message += 1
        source.data = data
        source.pos = start
        source.room = self.room
        count = source.number()
        if count > self.events:
            raise WeftLimitError("a message has too many events", most=self.events)
        flags = source.flags(count + 1)
        pos = source.pos
        runs: list[Run] = []
        values: list[Any] = []
        before = entry = memory.start.other
        for missed in flags[:count]:
            if not missed:
                link = entry.link
                column = link.column
                before = entry
                found = column.guess.get(column.parent.current)
                entry = column.last if found is None else found
                index = entry.index
                if index == 0:
                    raise WeftFormatError(
                        "a message asks for a guess where none is known", offset=pos
                    )
                column.current = index
                runs.append(link.run)
                values.append(entry.value)
                continue
            code = data[pos]
            pos += 1
            if code != 0:
                link = entry.link
                column = link.column
                if column.shape == 0:
                    raise WeftFormatError("a value comes after the end of the document", offset=pos)
                before = entry
            else:
                source.pos = pos
                link = self._follow(before.column, entry)
                pos = source.pos
                column = link.column
                if column.shape == 0:
                    raise WeftFormatError("a value comes after the end of the document", offset=pos)
                before = entry
                code = data[pos]
                pos += 1
                if code == 0:
                    found = column.guess.get(column.parent.current)
                    entry = column.last if found is None else found
                    index = entry.index
                    if index == 0:
                        raise WeftFormatError(
                            "a message asks for a guess where none is known", offset=pos
                        )
                    column.current = index
                    runs.append(link.run)
                    values.append(entry.value)
                    continue
            if code >= 0x80:
                source.pos = pos - 1
                code = source.number()
                pos = source.pos
            code -= 1
            runs.append(link.run)
            if code & column.mask:
                source.pos = pos
                value = read_value(column, source, code)
                pos = source.pos
                if column.credit > 0:
                    entry = memory.keep(before.column, column, value, source.size)
                else:
                    column.current = 0
                    entry = column.other
                values.append(value)
            else:
                index = code >> column.shift
                if not 0 < index < len(column.entries):
                    raise WeftFormatError("no value has this number", offset=pos)
                entry = column.entries[index]
                column.credit += 2
                column.guess[column.parent.current] = entry
                column.last = entry
                column.current = index
                values.append(entry.value)
        if flags[count]:
            source.pos = pos
            link = self._follow(before.column, entry)
            pos = source.pos
        else:
            link = entry.link
        if link.run is None or link.column.shape != 0 or pos != len(data):
            raise WeftFormatError("a message does not end where its document does", offset=pos)
        runs.append(link.run)
        return RunSequence(runs, values)

    def _follow(self, before: Column, entry: Entry) -> Link:
        memory = self.memory
        source = self.source
        index = source.number()
        if index == 0:
            run = self._run(entry.column)
            if run in memory.runs:
                raise WeftFormatError("a run is written twice", offset=source.pos)
            memory.add_run(run)
        elif index <= len(memory.run_list):
            run = memory.run_list[index - 1]
        else:
            raise WeftFormatError("no run has this number", offset=source.pos)
        return memory.follow(before, entry, run)

    def run_in(self, data: bytes, column: Column) -> Run:
        """Return a run that is written in full in `data` and follows a value of `column`."""
        source = self.source
        source.data = data
        source.pos = 0
        run = self._run(column)
        if source.pos != len(data):
            raise WeftFormatError("a run does not end where it should", offset=source.pos)
        return run

    def _string(self) -> str:
        return check_text(self.source.octets(self.source.number()).decode())

    def _run(self, column: Column) -> Run:
        """Read a run in full. Ends have no names: they belong to the open elements."""
        source = self.source
        events: list[Event] = []
        place = column.place
        opened: list[Name] = []
        while True:
            item = source.data[source.pos]
            source.pos += 1
            kind = item & 7
            index = item >> 3
            if index == 31:
                index += source.number()
            if len(events) > MAX_RUN:
                raise WeftLimitError("a run has too many events", most=MAX_RUN)
            if kind == END:
                if index >= MAX_RUN:
                    raise WeftLimitError("a run has too many events", most=MAX_RUN)
                for _ in range(index + 1):
                    if opened:
                        events.append(end(opened.pop()))
                    elif place.outer is None or place.name is None:
                        raise WeftFormatError("more elements end than were open", offset=source.pos)
                    else:
                        events.append(end(place.name))
                        place = place.outer
            elif kind == START:
                name = self._name(index)
                opened.append(name)
                events.append(start(name))
            elif kind == PREFIX:
                name = self._name(index, prefix=True)
                events.append(prefix(*name))
            elif kind == TYPE:
                events.append(attribute(XSI_TYPE, self._type(index)))
            elif kind == ATTRIBUTE_SLOT:
                return run_of(tuple(events), ATTRIBUTE, self._name(index))
            elif kind == TYPED_SLOT:
                return run_of(tuple(events), TYPED_CONTENT, self._name(index))
            elif kind == OTHER_SLOT and index < len(SLOT_LIST):
                return run_of(tuple(events), *SLOT_LIST[index])
            else:
                raise WeftFormatError("a run has an unknown item", offset=source.pos)

    def _name(self, index: int, prefix: bool = False) -> Name:
        memory = self.memory
        source = self.source
        if index:
            return memory.name_list[index - 1]
        space = source.number()
        if space:
            ns = memory.space_list[space - 1]
        else:
            ns = self._string()
            memory.add_space(ns)
        local = self._string()
        if len(ns) > self.limits.name or len(local) > self.limits.name:
            raise WeftLimitError("a name is too long", most=self.limits.name)
        name = Name(ns, local)
        if local or not prefix:
            check_name(name)
        memory.add_name(name)
        return name

    def _type(self, index: int) -> str:
        memory = self.memory
        if index:
            return memory.type_list[index - 1]
        text = self._string()
        memory.add_type(text)
        return text
