"""An automaton as the thesis draws it (figure 5.1): one table for the encoder, one for the decoder.

Elements that call one another are written out here, so only schemas without recursion have tables.
Codecs do not use them; they follow `machine`, which also handles events for which a table has no
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
"""The largest number of states of a table; nobody would read more."""

END_OF_MESSAGE = "EOF"


class Edge(NamedTuple):
    """A line of the table: in a state, on an event, take an action and go to another state.

    `del` leaves an event out, `out` sends it; `read` takes an event that was sent, `peek` only
    looks at it. The decoder adds the events in `push` before it and those in `queue` after it.
    """

    state: int
    action: str
    event: str
    push: tuple[str, ...]
    queue: tuple[str, ...]
    then: int

    def __str__(self) -> str:
        """Return the edge in the notation of the code that was published with the thesis."""
        lists = f"[{' '.join(self.push)}][{' '.join(self.queue)}]"
        return f"{self.state}:{self.action} {self.event}{lists}:{self.then}"


class _Spot(NamedTuple):
    """A state, and the states in which the open elements around it continue."""

    state: State
    outer: tuple[tuple[State, Event], ...]


class _Tables:
    """Visits all spots of a document and gives them numbers."""

    def __init__(self, automaton: Automaton) -> None:
        self._automaton = automaton
        self.numbers: dict[_Spot, int] = {}
        self.waiting: list[_Spot] = []
        self.start = _Spot(automaton.start, ())

    def number(self, spot: _Spot) -> int:
        """Return the number of a spot; after the root, the next document begins at the start."""
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
        """Return the event that is left out at a spot: an announcement, if it has one."""
        event = spot.state.announcement or spot.state.foreseen
        return spot.outer[-1][1] if isinstance(event, ForeseenEnd) else event

    def expected(self, spot: _Spot) -> Iterator[Event]:
        """Yield the events that are sent at a spot."""
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
        """Yield every spot that has a number, once."""
        self.number(self.start)
        while self.waiting:
            yield self.waiting.pop(0)


def encoder_table(automaton: Automaton) -> list[Edge]:
    """Return the Encoding Omission Automaton as a table.

    An event that has no edge is sent and changes nothing: the default transition.
    """
    tables = _Tables(automaton)
    edges = []
    for place in tables.all_from_start():
        here = tables.number(place)
        # Where only a value can come, sending it is the default, so the edges after it belong here.
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
    """Return the Decoding Omission Automaton as a table.

    An event that has no edge is read and changes nothing: the default transition. The thesis does
    not say what happens to events that were left out after the last one that was sent; here the end
    of a message is treated like an event.
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
    """Return the spot after the ends that must come now, and their labels."""
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
