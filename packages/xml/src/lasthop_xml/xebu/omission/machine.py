"""Following a document through the states of a schema, at both ends.

Every event that is sent is taken by the other end like this: first comes everything that is
foreseen, up to the first state that expects the event or foresees nothing; then the event itself.
Comments, instructions, entity references and prefix mappings are expected everywhere, and change no
state.

Where that would not give the document again, a `Foreseen` goes before the event, with the number of
foreseen events that come before it. This is how documents pass that the schema does not allow.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple, TypeAlias

from lasthop_xml.xas.errors import MalformedEvents
from lasthop_xml.xas.events import (
    ATTRIBUTE,
    CONTENT,
    DOCUMENT_END_KIND,
    ELEMENT_END,
    ELEMENT_START,
    SAME_TEXT,
    TYPED_CONTENT,
    Event,
    Kind,
    end,
)
from lasthop_xml.xas.names import XSI_TYPE, Name
from lasthop_xml.xebu.omission.automaton import Automaton
from lasthop_xml.xebu.omission.states import END, LOST, ForeseenEnd, State


class Foreseen(NamedTuple):
    """Exactly so many foreseen events come before the next one that is sent."""

    events: int


Sent: TypeAlias = Event | Foreseen


class Coming(NamedTuple):
    """What has to be known of an event before it can be placed: not its value."""

    kind: Kind
    name: Name | None = None
    """Of an element or an attribute; SAME_TEXT for more of the same text."""
    announced: bool = True
    """Of a value: whether xsi:type tells its type."""


END_OF_DOCUMENT: Final = Coming(DOCUMENT_END_KIND)
_PLACED: Final = frozenset(
    {ELEMENT_START, ELEMENT_END, ATTRIBUTE, CONTENT, TYPED_CONTENT, DOCUMENT_END_KIND}
)


def expects(state: State, coming: Coming) -> bool:
    """Whether an event can come here, and is not just what is foreseen."""
    kind, name = coming.kind, coming.name
    foreseen = state.foreseen
    if kind is ELEMENT_START and name is not None:
        if isinstance(foreseen, Event) and foreseen.name == name and foreseen.kind is kind:
            return False
        return state.child(name) is not None
    if kind is CONTENT or kind is TYPED_CONTENT:
        if name is SAME_TEXT:
            return True
        if kind is TYPED_CONTENT and coming.announced and state.announcement is not None:
            return False
        return state.text is not None and not (
            isinstance(foreseen, Event) and foreseen.kind is CONTENT
        )
    if kind is ELEMENT_END:
        return state.ends and foreseen is not END
    if kind is ATTRIBUTE and name is not None:
        if isinstance(foreseen, Event) and foreseen.name == name and foreseen.kind is kind:
            return False
        return state.has_attribute(name)
    return kind not in _PLACED


def foreseen(state: State, coming: Coming) -> Event | ForeseenEnd | None:
    """What comes before `coming`, if anything does."""
    if coming.kind is TYPED_CONTENT and coming.announced and state.announcement is not None:
        return state.announcement
    return state.foreseen


class Place:
    """Where we are in a document: a state, and those in which the elements around us go on."""

    __slots__ = ("_automaton", "_outer", "state")

    def __init__(self, automaton: Automaton) -> None:
        self._automaton = automaton
        self.state = automaton.start
        self._outer: list[tuple[State, Event]] = []

    @property
    def depth(self) -> int:
        return len(self._outer)

    def end(self) -> Event:
        """The end of the element that we are in."""
        if not self._outer:
            raise MalformedEvents("an element ends that is not open")
        return self._outer[-1][1]

    def next_foreseen(self, coming: Coming) -> Event | None:
        """Past what is foreseen before `coming`; None if nothing is."""
        state = self.state
        if state.announcement is not None and coming.kind is TYPED_CONTENT and coming.announced:
            self.state = state.attributes[XSI_TYPE]
            return state.announcement
        event = state.foreseen
        if isinstance(event, ForeseenEnd):
            self.state, event = self._outer.pop()
        elif state.forward is not None:
            self.state, outer = state.forward
            if outer is not None:
                self._outer.append(outer)
        return event

    def moves_as_foreseen(self, event: Event) -> bool:
        """Past an event, if it is the one that is foreseen."""
        state = self.state
        forward = state.forward
        if forward is not None:
            if event != state.foreseen:
                return False
            self.state, outer = forward
            if outer is not None:
                self._outer.append(outer)
            return True
        if state.foreseen is not END or self._outer[-1][1] != event:
            return False
        self.state, _ = self._outer.pop()
        return True

    def move(self, event: Event) -> None:
        """Past an event, whether it was foreseen, expected or neither."""
        kind, name, _ = event
        state = self.state
        if kind is ELEMENT_START and name is not None:
            child = state.child(name)
            self._outer.append((state if child is None else child.then, end(name)))
            self.state = LOST if child is None else self._automaton.inside(child.element)
        elif kind is ELEMENT_END:
            if self.end() != event:
                raise MalformedEvents("an element ends that is not open", name=str(name))
            self.state, _ = self._outer.pop()
        elif kind is ATTRIBUTE and name is not None:
            self.state = state.attributes.get(name, state)
        elif kind is TYPED_CONTENT or (kind is CONTENT and name is None):
            self.state = state.text or state


class Omitter:
    """The sending end: leaves out what the other end will foresee."""

    __slots__ = ("_announcement", "_omitted", "_place")

    def __init__(self, automaton: Automaton) -> None:
        self._place = Place(automaton)
        # The states in which events were left out since the last one was sent.
        self._omitted: list[State] = []
        # What was left out last, if it only makes sense before a value.
        self._announcement: Event | None = None

    @property
    def state(self) -> State:
        return self._place.state

    @property
    def depth(self) -> int:
        """Of open elements."""
        return self._place.depth

    def leaves_out(self, event: Event) -> bool:
        """Go past an event if it is foreseen; otherwise `send` has to be asked."""
        if self._announcement is not None:
            return False
        place = self._place
        state = place.state
        if not place.moves_as_foreseen(event):
            if state.announcement is None or event != state.announcement:
                return False
            self._announcement = event
            place.move(event)
        self._omitted.append(state)
        return True

    def send(self, event: Event, coming: Coming) -> list[Sent]:
        """What has to be sent up to and including an event; nothing if it is left out after all."""
        sent = self._unless_announced(coming)
        if self.leaves_out(event):
            return sent
        sent += self._before(coming, self._place.state)
        sent.append(event)
        self._place.move(event)
        return sent

    def finish(self) -> list[Sent]:
        """What has to be sent before the end of the document."""
        sent = self._unless_announced(END_OF_DOCUMENT)
        return sent + self._before(END_OF_DOCUMENT, self._place.state)

    def _unless_announced(self, coming: Coming) -> list[Sent]:
        """Send an announcement after all, if no value comes right behind it."""
        event, self._announcement = self._announcement, None
        if event is None or (coming.kind is TYPED_CONTENT and coming.announced):
            return []
        state = self._omitted.pop()
        return [*self._before(Coming(ATTRIBUTE, event.name), state), event]

    def _before(self, coming: Coming, state: State) -> list[Sent]:
        """What makes the other end put in all that was left out, when something comes here.

        Nothing has to be said if it stops by itself in this state, and in none before.
        """
        omitted, self._omitted = self._omitted, []
        stops_here = expects(state, coming) or foreseen(state, coming) is None
        stops_before = any(expects(before, coming) for before in omitted)
        return [] if stops_here and not stops_before else [Foreseen(len(omitted))]


class Restorer:
    """The receiving end: puts in what was left out."""

    __slots__ = ("_place",)

    def __init__(self, automaton: Automaton) -> None:
        self._place = Place(automaton)

    @property
    def state(self) -> State:
        return self._place.state

    def before(self, coming: Coming) -> Iterator[Event]:
        """Everything that comes before an event that was sent."""
        place = self._place
        while not expects(place.state, coming):
            event = place.next_foreseen(coming)
            if event is None:
                return
            yield event

    def exactly(self, count: int, coming: Coming) -> Iterator[Event]:
        """So many foreseen events."""
        for _ in range(count):
            event = self._place.next_foreseen(coming)
            if event is None:
                raise MalformedEvents("more was left out than is foreseen")
            yield event

    def end(self) -> Event:
        """The end of the element that we are in; its name is never sent."""
        return self._place.end()

    def take(self, event: Event) -> None:
        """Go past an event that was sent."""
        self._place.move(event)
