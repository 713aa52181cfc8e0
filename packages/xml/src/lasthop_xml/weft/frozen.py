"""All that an end has learned, in plain values that can be written to a disk.

A snapshot can be used by both engines, and by both kinds of end. It may come from a disk or from
another host: what does not fit together is refused, so that a restored memory obeys the same rules
as one that has learned from messages.
"""

from __future__ import annotations

from collections.abc import Sized
from typing import Any, Final

import msgspec

from lasthop_xml.weft.dense.letters import MAX_CONTEXTS, Letters
from lasthop_xml.weft.dense.models import LEAST, MOST, Bits, ColumnModel, Counts
from lasthop_xml.weft.engine.columns import Column, Entry, Link
from lasthop_xml.weft.engine.forms import MAX_WORDS
from lasthop_xml.weft.engine.memory import KNOWN_SPACES, MAX_ENTRIES, MAX_TABLE, Memory
from lasthop_xml.weft.engines import Engine
from lasthop_xml.weft.errors import WeftStateError
from lasthop_xml.weft.exact import exact
from lasthop_xml.weft.learned import Learned, Models
from lasthop_xml.weft.runs import NAME, TEXT, TIME, Run, run_of
from lasthop_xml.xas.errors import InvalidValue, MalformedEvents, UnknownType
from lasthop_xml.xas.events import Event, Kind
from lasthop_xml.xas.limits import Limits
from lasthop_xml.xas.names import XSI_TYPE, Name, check_name, check_text
from lasthop_xml.xas.types.table import PRIMITIVES, lexical

VERSION: Final = 1
MAX_SNAPSHOT: Final = 16 * 2**20
"""The largest number of bytes of a snapshot: a memory takes 4 MB at most, and level max as much
again for its models."""
_NOWHERE: Final = -1
_THE_END: Final = -1

_Item = tuple[int, str, str, str]
"""An event of a run: its kind, its name, and the value of an xsi:type."""
_Link = tuple[int, int]
"""A link: the numbers of a run and of a column."""
_Counts = tuple[list[int], list[int]]
_Pairs = list[tuple[int, int, int]]


class _Model(msgspec.Struct, array_like=True):
    bits: _Pairs
    steps: _Pairs
    digits: _Pairs
    after: _Counts
    all: _Counts
    words: _Counts
    by_key: list[tuple[int, _Counts]]
    by_word: list[tuple[int, _Counts]]
    by_place: list[tuple[int, _Counts]]


class _Column(msgspec.Struct, array_like=True):
    place: int
    run: int
    selector: int
    selected: int
    parent: int
    current: int
    stamp: int
    credit: int
    scale: int
    base: int
    linked: int
    changes: int
    selects: bool
    last: int
    usual: _Link
    other: tuple[_Link, bool]
    links: list[_Link]
    entries: list[tuple[str, _Link, bool]]
    guess: list[tuple[int, int]]
    words: list[str]
    model: _Model | None


class _Letters(msgspec.Struct, array_like=True):
    contexts: list[tuple[int, int]]
    weights: list[tuple[int, tuple[int, int, int]]]


class Snapshot(msgspec.Struct, array_like=True):
    """A memory and its models, in plain values."""

    version: int
    message: int
    size: int
    clock: int
    spaces: list[str]
    names: list[tuple[str, str]]
    types: list[str]
    places: list[tuple[int, str, str]]
    runs: list[tuple[list[_Item], int, str, str]]
    columns: list[_Column]
    common: _Pairs
    counts: _Pairs
    sizes: _Pairs
    letters: _Letters
    run_letters: _Letters


def frozen(learned: Learned) -> Snapshot:
    """Return what was learned, in plain values."""
    memory, models = learned.memory, learned.models
    keys = {column.number: key for key, column in memory.columns.items()}
    return Snapshot(
        VERSION,
        memory.message,
        memory.size,
        memory.clock.number,
        memory.space_list,
        [(name.ns, name.local) for name in memory.name_list],
        memory.type_list,
        [
            (place.outer.number, place.name.ns, place.name.local)
            for place in memory.place_list[1:]
            if place.outer is not None and place.name is not None
        ],
        [_plain_run(run) for run in memory.run_list],
        [_plain_column(memory, column, keys) for column in memory.column_list],
        _plain_bits(models.common),
        _plain_bits(models.counts),
        _plain_bits(models.sizes),
        _plain_letters(models.letters),
        _plain_letters(models.runs),
    )


def _plain_run(run: Run) -> tuple[list[_Item], int, str, str]:
    items = [
        (int(kind), *(name or ("", "")), value if kind is Kind.ATTRIBUTE else "")
        for kind, name, value in run.events
    ]
    return items, -1 if run.slot is None else int(run.slot), *(run.name or ("", ""))


def _plain_column(
    memory: Memory, column: Column, keys: dict[int, tuple[int, Any, int, int]]
) -> _Column:
    def link(found: Link) -> _Link:
        if found.run is None:
            return _NOWHERE, _THE_END
        return memory.runs[found.run], found.column.number if found.column.shape else _THE_END

    _, _, selector, selected = keys.get(column.number, (0, None, 0, 0))
    return _Column(
        column.place.number,
        -1 if column.run is None else memory.runs[column.run],
        selector,
        selected,
        column.parent.number,
        column.current,
        column.stamp,
        column.credit,
        column.scale,
        column.base.number,
        column.linked,
        column.changes,
        column.selects,
        column.last.index,
        link(column.usual),
        (link(column.other.link), column.other.linked),
        [link(each) for each in column.links.values()],
        [
            (_plain_value(column, entry), link(entry.link), entry.linked)
            for entry in column.entries[1:]
        ],
        [(key, entry.index) for key, entry in column.guess.items()],
        # Encoders keep words by their text, decoders by their number.
        max(list(column.words), column.word_list, key=len),
        None if column.model is None else _plain_model(column.model),
    )


def _plain_value(column: Column, entry: Entry) -> str:
    value = entry.value
    return str(value) if isinstance(value, str) else lexical(column.type, value)


def _plain_bits(models: Bits) -> _Pairs:
    return [(key, *model) for key, model in models.items()]  # type: ignore[misc]


def _plain_counts(counts: Counts) -> _Counts:
    return list(counts.places), counts.weights


def _plain_model(model: ColumnModel) -> _Model:
    return _Model(
        _plain_bits(model.bits),
        _plain_bits(model.steps),
        _plain_bits(model.digits),
        _plain_counts(model.after),
        _plain_counts(model.all),
        _plain_counts(model.words),
        [(key, _plain_counts(counts)) for key, counts in model.by_key.items()],
        [(key, _plain_counts(counts)) for key, counts in model.by_word.items()],
        [(key, _plain_counts(counts)) for key, counts in model.by_place.items()],
    )


def _plain_letters(letters: Letters) -> _Letters:
    return _Letters(list(letters.contexts.items()), list(letters.weights.items()))


def thawed(snapshot: Snapshot, engine: Engine, limits: Limits) -> Learned:
    """Return what was learned, ready for use; raise WeftStateError if the snapshot does not fit
    together."""
    try:
        return _Thaw(snapshot, engine, limits).learned()
    except (IndexError, KeyError, ValueError, OverflowError, AttributeError) as error:
        raise WeftStateError("a snapshot is damaged", reason=str(error)) from None
    except (MalformedEvents, InvalidValue, UnknownType) as error:
        raise WeftStateError("a snapshot is damaged", reason=error.detail) from None


class _Thaw:
    """The restoring of one snapshot."""

    def __init__(self, snapshot: Snapshot, engine: Engine, limits: Limits) -> None:
        self._state = snapshot
        self._engine = engine
        self._limits = limits
        self._memory: Memory = engine.memory.Memory(limits.depth)
        self._links: dict[_Link, Link] = {}

    def learned(self) -> Learned:
        state = self._state
        if state.version != VERSION:
            raise ValueError("the snapshot is of another version")
        self._tables()
        self._places()
        for each in state.columns[1:]:
            self._begin(each)
        for column, saved in zip(self._memory.column_list, state.columns, strict=True):
            self._fill(column, saved)
        self._memory.message = _count(state.message)
        self._memory.size = _count(state.size)
        self._memory.clock.number = state.clock
        models = Models()
        models.common = _bits(state.common)
        models.counts = _bits(state.counts)
        models.sizes = _bits(state.sizes)
        models.letters = _letters(state.letters)
        models.runs = _letters(state.run_letters)
        return Learned(self._engine, self._memory, models, self._limits)

    def _tables(self) -> None:
        state, memory = self._state, self._memory
        tables: tuple[Sized, ...] = state.spaces, state.names, state.types, state.runs
        if max(map(len, (*tables, state.columns))) > 2 * MAX_TABLE or not state.columns:
            raise ValueError("a snapshot has a table that is too large")
        if tuple(state.spaces[: len(KNOWN_SPACES)]) != KNOWN_SPACES:
            raise ValueError("a snapshot lacks a namespace that every memory has")
        for ns in state.spaces[len(KNOWN_SPACES) :]:
            memory.add_space(check_text(ns))
        for ns, local in state.names:
            memory.add_name(_name(ns, local, prefix=True))
        for text in state.types:
            memory.add_type(check_text(text))
        for items, slot, ns, local in state.runs:
            events = tuple(self._event(*item) for item in items)
            name = _name(ns, local, prefix=True) if local else None
            memory.add_run(run_of(events, None if slot < 0 else Kind(slot), name))
        found: tuple[Sized, ...] = memory.spaces, memory.names, memory.types, memory.runs
        if list(map(len, found)) != list(map(len, tables)):
            raise ValueError("a snapshot gives a namespace, a name, a type or a run two numbers")

    def _event(self, kind: int, ns: str, local: str, value: str) -> Event:
        name = _name(ns, local, prefix=kind == Kind.PREFIX_MAPPING)
        if kind == Kind.ATTRIBUTE:
            return Event(Kind.ATTRIBUTE, XSI_TYPE, check_text(value))
        if kind not in {Kind.ELEMENT_START, Kind.ELEMENT_END, Kind.PREFIX_MAPPING}:
            raise ValueError("a run may not have an event of this kind")
        return Event(Kind(kind), name, None)

    def _places(self) -> None:
        memory = self._memory
        for outer, ns, local in self._state.places:
            memory.inside(memory.place_list[_count(outer)], _name(ns, local))
        if len(memory.place_list) != len(self._state.places) + 1:
            raise ValueError("a snapshot gives one place two numbers")

    def _begin(self, saved: _Column) -> None:
        memory = self._memory
        run = memory.run_list[_count(saved.run)]
        memory.new_column(
            memory.place_list[_count(saved.place)], run, saved.selector, saved.selected
        )

    def _fill(self, column: Column, saved: _Column) -> None:
        memory = self._memory
        if len(saved.entries) >= MAX_ENTRIES or len(saved.words) > MAX_WORDS:
            raise ValueError("a snapshot has a column that is too large")
        column.parent = memory.column_list[_count(saved.parent)]
        column.current = _count(saved.current)
        column.stamp = _count(saved.stamp)
        column.credit = saved.credit
        column.scale = _count(saved.scale)
        if column.shape != TIME:
            column.base.number = saved.base
        column.linked = _count(saved.linked)
        column.changes = _count(saved.changes)
        column.selects = saved.selects and column.shape == TEXT
        column.usual = self._link(column, saved.usual)
        column.other.link = self._link(column, saved.other[0])
        column.other.linked = saved.other[1]
        for pair in saved.links:
            link = self._link(column, pair)
            column.links[memory.run_list[_count(pair[0])]] = link
        for text, pair, linked in saved.entries:
            value = _value(column, text)
            link = self._link(column, pair)
            entry = self._engine.columns.Entry(column, value, len(column.entries), link)
            entry.linked = linked
            column.entries.append(entry)
            column.tokens[value] = entry
        column.last = column.entries[_count(saved.last)]
        column.guess.update({key: column.entries[_count(at)] for key, at in saved.guess})
        for word in saved.words:
            column.words[check_text(word)] = len(column.word_list)
            column.word_list.append(word)
        if saved.model is not None:
            column.model = _model(
                saved.model, len(column.entries), len(column.word_list), len(memory.run_list)
            )

    def _link(self, column: Column, pair: _Link) -> Link:
        if pair[0] == _NOWHERE:
            nowhere: Link = self._engine.columns.NOWHERE
            return nowhere
        found = self._links.get(pair)
        memory = self._memory
        run = memory.run_list[_count(pair[0])]
        ends = pair[1] == _THE_END
        target = self._engine.columns.DEAD_END if ends else memory.column_list[_count(pair[1])]
        place, tail = memory.moved(column.place, run), run.tail or run
        if ends != (run.slot is None) or place is not (memory.outside if ends else target.place):
            raise ValueError("a link and its run lead to different places")
        if not ends and (target.run is None or (target.run.tail or target.run) is not tail):
            raise ValueError("a link and its run lead to different places")
        if found is None:
            found = self._links[pair] = self._engine.columns.Link(run, target)
        return found


def _count(number: int) -> int:
    if number < 0:
        raise ValueError("a number is negative")
    return number


def _name(ns: str, local: str, *, prefix: bool = False) -> Name:
    name = Name(check_text(ns), local)
    if local or not prefix:
        check_name(name)
    return XSI_TYPE if name == XSI_TYPE else name


def _value(column: Column, text: str) -> Any:
    check_text(text)
    if column.shape in {TEXT, NAME}:
        return text
    if column.type is None:
        raise ValueError("a snapshot has a column without values")
    return exact(column.type, PRIMITIVES[column.type].parse(text))


def _bits(pairs: _Pairs) -> Bits:
    for _, probability, seen in pairs:
        if not (LEAST <= probability <= MOST and 0 <= seen <= 60):
            raise ValueError("a snapshot has a probability that cannot be")
    return {key: [probability, seen] for key, probability, seen in pairs}


def _counts(saved: _Counts, below: int) -> Counts:
    numbers, weights = saved
    counts = Counts()
    for number, weight in zip(numbers, weights, strict=True):
        if not (0 <= number < below and 0 < weight <= 2**16) or number in counts.places:
            raise ValueError("a snapshot has a count that cannot be")
        counts.add(number, weight, 2**30)
    return counts


def _model(saved: _Model, entries: int, words: int, runs: int) -> ColumnModel:
    model = ColumnModel()
    model.bits = _bits(saved.bits)
    model.steps = _bits(saved.steps)
    model.digits = _bits(saved.digits)
    model.after = _counts(saved.after, runs)
    model.all = _counts(saved.all, entries)
    model.words = _counts(saved.words, words)
    model.by_key = {key: _counts(each, entries) for key, each in saved.by_key}
    model.by_word = {key: _counts(each, words) for key, each in saved.by_word}
    model.by_place = {key: _counts(each, words) for key, each in saved.by_place}
    return model


def _letters(saved: _Letters) -> Letters:
    letters = Letters()
    if len(saved.contexts) > 2 * MAX_CONTEXTS:
        raise ValueError("a snapshot has a table that is too large")
    for key, model in saved.contexts:
        if not (0 <= model < 2**21 and model & 31 <= 24):
            raise ValueError("a snapshot has a probability that cannot be")
        letters.contexts[key] = model
    letters.weights = dict(saved.weights)
    return letters
