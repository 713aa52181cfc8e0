"""A state of the automaton: a place inside an element, what can come there, and what is
foreseen."""

from __future__ import annotations

from typing import Final, NamedTuple

from lasthop_xml.relaxng.nameclass import NameClass
from lasthop_xml.relaxng.patterns import ElementPattern
from lasthop_xml.xas.events import Event
from lasthop_xml.xas.names import Name


class ForeseenEnd:
    """The foreseen end of the innermost open element, whatever its name."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "END"


END: Final = ForeseenEnd()


class Child(NamedTuple):
    """An element that can come next, and the state of its parent afterwards."""

    element: ElementPattern
    then: State


class Forward(NamedTuple):
    """The state that a foreseen event leads to."""

    state: State
    outer: tuple[State, Event] | None
    """If the event opens an element: the state in which its parent continues, and its end event."""


class State:
    """A place inside an element, with the events that it allows and the one that it foresees."""

    __slots__ = (
        "announcement",
        "attributes",
        "children",
        "ends",
        "foreseen",
        "forward",
        "has_values",
        "index",
        "open_attributes",
        "open_children",
        "text",
        "type",
    )

    def __init__(self, index: int) -> None:
        self.index = index
        self.children: dict[Name, Child] = {}
        self.open_children: list[tuple[NameClass, Child]] = []
        """Child elements whose names are not listed one by one."""
        self.attributes: dict[Name, State] = {}
        self.open_attributes: list[NameClass] = []
        self.text: State | None = None
        """The state after a text or a value; None if neither is allowed."""
        self.has_values = False
        """Whether a value of a type that Xebu knows is allowed."""
        self.type: Name | None = None
        """The type of a value here, if there is only one type and no xsi:type that would give
        it."""
        self.ends = False
        """Whether the element can end here."""
        self.foreseen: Event | ForeseenEnd | None = None
        """The event that comes here unless the sender says otherwise."""
        self.forward: Forward | None = None
        """The state that the foreseen event leads to; None for an end."""
        self.announcement: Event | None = None
        """The xsi:type that is foreseen before a value that has one; it is foreseen before nothing
        else."""

    def child(self, name: Name) -> Child | None:
        """Return the child element of this name, or None if it cannot come here."""
        found = self.children.get(name)
        if found is None:
            for names, child in self.open_children:
                if names.contains(name):
                    return child
        return found

    def has_attribute(self, name: Name) -> bool:
        """Return whether an attribute of this name can come here."""
        return name in self.attributes or any(
            names.contains(name) for names in self.open_attributes
        )


LOST: Final = State(-1)
"""The state inside an element that the schema does not have: nothing is foreseen until it ends."""
