"""Both ends of a session follow a document through the states of a schema.

The receiving end treats every event that was sent like this: first come all foreseen events, up to
the first state that expects the event or foresees nothing; then the event itself. Comments,
instructions, entity references and prefix mappings are expected everywhere, and change no state.

Where that would not restore the document, the sending end puts a `Foreseen` before the event, with
the number of foreseen events that come before it. This is how documents that the schema does not
allow can be sent.
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
    """The exact number of foreseen events that come before the next event that is sent."""

    events: int


Sent: TypeAlias = Event | Foreseen


class Coming(NamedTuple):
    """An event without its value: the part that decides how many foreseen events come before it."""

    kind: Kind
    name: Name | None = None
    """The name of an element or an attribute; SAME_TEXT for a continuation of a text."""
    announced: bool = True
    """For a value, whether xsi:type gives its type."""


END_OF_DOCUMENT: Final = Coming(DOCUMENT_END_KIND)
_PLACED: Final = frozenset(
    {ELEMENT_START, ELEMENT_END, ATTRIBUTE, CONTENT, TYPED_CONTENT, DOCUMENT_END_KIND}
)


def expects(state: State, coming: Coming) -> bool:
    """Return whether a state allows an event that is different from the event that it foresees."""
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
    """Return the event that a state foresees before `coming`, or None."""
    if coming.kind is TYPED_CONTENT and coming.announced and state.announcement is not None:
        return state.announcement
    return state.foreseen


class DocumentPosition:
    """A place in a document: a state, and the states in which the open elements around it
    continue."""

    __slots__ = ("_automaton", "_outer", "state")

    def __init__(self, automaton: Automaton) -> None:
        self._automaton = automaton
        self.state = automaton.start
        self._outer: list[tuple[State, Event]] = []

    @property
    def depth(self) -> int:
        return len(self._outer)

    def end(self) -> Event:
        """Return the end event of the innermost open element."""
        if not self._outer:
            raise MalformedEvents("an element ends that is not open")
        return self._outer[-1][1]

    def next_foreseen(self, coming: Coming) -> Event | None:
        """Move past the event that is foreseen before `coming` and return it; None if there is
        none."""
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
        """Move past an event if it is the foreseen one; return whether it was."""
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
        """Move past an event, whether it was foreseen, expected or neither."""
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


class EncodingAutomaton:
    """The sending end (the Encoding Omission Automaton of the thesis): leaves out the events that
    the other end foresees."""

    __slots__ = ("_announcement", "_omitted", "_place")

    def __init__(self, automaton: Automaton) -> None:
        self._place = DocumentPosition(automaton)
        # The states in which events were left out since the last event was sent.
        self._omitted: list[State] = []
        # The event that was left out last, if it is an xsi:type: a value must follow it.
        self._announcement: Event | None = None

    @property
    def state(self) -> State:
        return self._place.state

    @property
    def depth(self) -> int:
        """Return the number of open elements."""
        return self._place.depth

    def leaves_out(self, event: Event) -> bool:
        """Move past an event if it is foreseen and return True; otherwise `send` must be called for
        it."""
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
        """Return what must be sent up to and including an event; nothing if it can be left out
        after all."""
        sent = self._unless_announced(coming)
        if self.leaves_out(event):
            return sent
        sent += self._before(coming, self._place.state)
        sent.append(event)
        self._place.move(event)
        return sent

    def finish(self) -> list[Sent]:
        """Return what must be sent before the end of the document."""
        sent = self._unless_announced(END_OF_DOCUMENT)
        return sent + self._before(END_OF_DOCUMENT, self._place.state)

    def _unless_announced(self, coming: Coming) -> list[Sent]:
        """Return the xsi:type that was left out last, to be sent after all, if no value follows
        it."""
        event, self._announcement = self._announcement, None
        if event is None or (coming.kind is TYPED_CONTENT and coming.announced):
            return []
        state = self._omitted.pop()
        return [*self._before(Coming(ATTRIBUTE, event.name), state), event]

    def _before(self, coming: Coming, state: State) -> list[Sent]:
        """Return what makes the other end restore all events that were left out before `coming`.

        Nothing must be sent if the other end stops by itself in this state, and in none before.
        """
        omitted, self._omitted = self._omitted, []
        stops_here = expects(state, coming) or foreseen(state, coming) is None
        stops_before = any(expects(before, coming) for before in omitted)
        return [] if stops_here and not stops_before else [Foreseen(len(omitted))]


class DecodingAutomaton:
    """The receiving end (the Decoding Omission Automaton of the thesis): restores the events that
    were left out."""

    __slots__ = ("_place",)

    def __init__(self, automaton: Automaton) -> None:
        self._place = DocumentPosition(automaton)

    @property
    def state(self) -> State:
        return self._place.state

    def before(self, coming: Coming) -> Iterator[Event]:
        """Yield the events that were left out before an event that was sent."""
        place = self._place
        while not expects(place.state, coming):
            event = place.next_foreseen(coming)
            if event is None:
                return
            yield event

    def exactly(self, count: int, coming: Coming) -> Iterator[Event]:
        """Yield exactly `count` foreseen events; raise MalformedEvents if fewer are foreseen."""
        for _ in range(count):
            event = self._place.next_foreseen(coming)
            if event is None:
                raise MalformedEvents("more events were left out than the schema foresees")
            yield event

    def end(self) -> Event:
        """Return the end event of the innermost open element; its name is never sent."""
        return self._place.end()

    def take(self, event: Event) -> None:
        """Move past an event that was sent."""
        self._place.move(event)
