"""A state: a place inside an element, what can come there, and what is foreseen."""

from __future__ import annotations

from typing import Final, NamedTuple

from lasthop_xml.relaxng.nameclass import NameClass
from lasthop_xml.relaxng.patterns import Element
from lasthop_xml.xas.events import Event
from lasthop_xml.xas.names import Name


class ForeseenEnd:
    """The end of the element that we are in, whatever its name."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "END"


END: Final = ForeseenEnd()


class Child(NamedTuple):
    """An element that can come next, and where its parent is then."""

    element: Element
    then: State


class Forward(NamedTuple):
    """Where an event leads to that was foreseen."""

    state: State
    outer: tuple[State, Event] | None
    """If it opens an element: where its parent goes on, and how it ends."""


class State:
    """A place inside an element."""

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
        """Elements of names that are not listed."""
        self.attributes: dict[Name, State] = {}
        self.open_attributes: list[NameClass] = []
        self.text: State | None = None
        """Behind a text or a value."""
        self.has_values = False
        """Whether that can be a value of a type that Xebu knows."""
        self.type: Name | None = None
        """Of a value here, if there is one type only and no xsi:type that would tell."""
        self.ends = False
        """Whether the element can end here."""
        self.foreseen: Event | ForeseenEnd | None = None
        """What will come, unless we are told otherwise."""
        self.forward: Forward | None = None
        """Where that leads to, unless it is an end."""
        self.announcement: Event | None = None
        """The xsi:type that is foreseen if a value comes that has one; nothing else is then."""

    def child(self, name: Name) -> Child | None:
        """The element of this name, if it can come here."""
        found = self.children.get(name)
        if found is None:
            for names, child in self.open_children:
                if names.contains(name):
                    return child
        return found

    def has_attribute(self, name: Name) -> bool:
        """Whether an attribute of this name can come here."""
        return name in self.attributes or any(
            names.contains(name) for names in self.open_attributes
        )


LOST: Final = State(-1)
"""Inside an element that the schema does not have: nothing is foreseen until it ends."""
