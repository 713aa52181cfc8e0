"""An automaton as the thesis draws it (figure 5.1): one for the encoder, one for the decoder.

Elements that call one another are written out here, so only schemas without recursion have tables.
Codecs do not need them; they follow `machine`, which also knows what to do where a table has no
edge. Values are taken to be announced by xsi:type.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from lasthop_xml.relaxng.errors import SchemaTooLarge
from lasthop_xml.xas.events import (
    ATTRIBUTE,
    CONTENT,
    ELEMENT_END,
    ELEMENT_START,
    TYPED_CONTENT,
    Event,
    end,
)
from lasthop_xml.xebu.omission.automaton import Automaton
from lasthop_xml.xebu.omission.states import LOST, ForeseenEnd, State

MOST_DRAWN = 2000
"""States of a table; nobody would look at more."""

END_OF_MESSAGE = "EOF"


class Edge(NamedTuple):
    """A line of the table: in a state, on an event, do something and go to another state.

    `del` leaves an event out, `out` sends it; `read` takes an event that was sent, `peek` only
    looks at it. Before and behind it, the decoder puts in what is in `push` and `queue`.
    """

    state: int
    action: str
    event: str
    push: tuple[str, ...]
    queue: tuple[str, ...]
    then: int

    def __str__(self) -> str:
        """In the notation of the published code."""
        lists = f"[{' '.join(self.push)}][{' '.join(self.queue)}]"
        return f"{self.state}:{self.action} {self.event}{lists}:{self.then}"


class _Spot(NamedTuple):
    """A state, and those in which the elements around it go on."""

    state: State
    outer: tuple[tuple[State, Event], ...]


class _Tables:
    """Walks through all spots of a document."""

    def __init__(self, automaton: Automaton) -> None:
        self._automaton = automaton
        self.numbers: dict[_Spot, int] = {}
        self.waiting: list[_Spot] = []
        self.start = _Spot(automaton.start, ())

    def number(self, spot: _Spot) -> int:
        """Of a spot; behind the root, the next document begins."""
        if not spot.outer and spot.state is not self.start.state:
            spot = self.start
        if spot not in self.numbers:
            if len(self.numbers) >= MOST_DRAWN:
                raise SchemaTooLarge("an automaton is too large to be drawn", most=MOST_DRAWN)
            self.numbers[spot] = len(self.numbers)
            self.waiting.append(spot)
        return self.numbers[spot]

    def after(self, spot: _Spot, event: Event) -> _Spot:
        state, outer = spot
        kind, name, _ = event
        if kind is ELEMENT_END:
            return _Spot(outer[-1][0], outer[:-1])
        if kind is ATTRIBUTE and name is not None:
            return _Spot(state.attributes.get(name, state), outer)
        if kind is ELEMENT_START and name is not None:
            child = state.children[name]
            inside = self._automaton.inside(child.element)
            return _Spot(inside, (*outer, (child.then, end(name))))
        return _Spot(state.text or LOST, outer)

    def foreseen(self, spot: _Spot) -> Event | None:
        """What is left out here: an announcement, if there is one."""
        event = spot.state.announcement or spot.state.foreseen
        return spot.outer[-1][1] if isinstance(event, ForeseenEnd) else event

    def expected(self, spot: _Spot) -> Iterator[Event]:
        """What is sent here."""
        state, left_out = spot.state, self.foreseen(spot)
        for name in state.children:
            event = Event(ELEMENT_START, name, None)
            if event != left_out:
                yield event
        for name in state.attributes:
            if left_out is None or left_out.name != name:
                yield Event(ATTRIBUTE, name, None)
        if state.text is not None and state.announcement is None and left_out is None:
            yield Event(TYPED_CONTENT if state.has_values else CONTENT, None, None)
        if state.ends and left_out != spot.outer[-1][1]:
            yield spot.outer[-1][1]

    def all_from_start(self) -> Iterator[_Spot]:
        """Every spot that gets a number, once."""
        self.number(self.start)
        while self.waiting:
            yield self.waiting.pop(0)


def encoder_table(automaton: Automaton) -> list[Edge]:
    """The Encoding Omission Automaton.

    An event that has no edge is sent and changes nothing: the default transition.
    """
    tables = _Tables(automaton)
    edges = []
    for place in tables.all_from_start():
        here = tables.number(place)
        # Where only a value can come, sending it is the default, and what follows belongs here.
        spot = _behind_value(tables, place)
        event = tables.foreseen(spot)
        if event is not None:
            then = tables.number(tables.after(spot, event))
            edges.append(Edge(here, "del", _label(event), (), (), then))
        for event in tables.expected(spot):
            then = tables.number(tables.after(spot, event))
            edges.append(Edge(here, "out", _label(event), (), (), then))
    return edges


def _behind_value(tables: _Tables, spot: _Spot) -> _Spot:
    events = list(tables.expected(spot))
    if tables.foreseen(spot) is None and len(events) == 1 and events[0].kind is TYPED_CONTENT:
        return tables.after(spot, events[0])
    return spot


def decoder_table(automaton: Automaton) -> list[Edge]:
    """The Decoding Omission Automaton.

    An event that has no edge is read and changes nothing: the default transition. The thesis does
    not say what happens to events that were left out behind the last one that was sent; here the
    end of a message is looked at like an event.
    """
    tables = _Tables(automaton)
    edges = []
    for spot in tables.all_from_start():
        here = tables.number(spot)
        for event in tables.expected(spot):
            then, queue = _closed(tables, tables.after(spot, event))
            edges.append(Edge(here, "read", _label(event), (), queue, tables.number(then)))
        push: list[str] = []
        before = spot
        while (left_out := tables.foreseen(before)) is not None:
            push.append(_label(left_out))
            before = tables.after(before, left_out)
            if not before.outer:
                edges.append(Edge(here, "peek", END_OF_MESSAGE, tuple(push), (), 0))
                break
            for event in tables.expected(before):
                then_number = tables.number(before)
                edges.append(Edge(here, "peek", _label(event), tuple(push), (), then_number))
    return edges


def _closed(tables: _Tables, spot: _Spot) -> tuple[_Spot, tuple[str, ...]]:
    """Past the ends that have to come now."""
    queue = []
    while spot.outer and (event := tables.foreseen(spot)) is not None:
        if event.kind is not ELEMENT_END or any(tables.expected(spot)):
            break
        queue.append(_label(event))
        spot = tables.after(spot, event)
    return spot, tuple(queue)


_SHORT = {ELEMENT_START: "ES", ELEMENT_END: "EE", ATTRIBUTE: "A", TYPED_CONTENT: "TC", CONTENT: "C"}


def _label(event: Event) -> str:
    kind, name, value = event
    inside = "" if name is None else name.local
    if kind is ATTRIBUTE and value is not None:
        inside += f"={value}"
    return f"{_SHORT[kind]}({inside})" if inside else _SHORT[kind]
