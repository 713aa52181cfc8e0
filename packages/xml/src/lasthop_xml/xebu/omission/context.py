"""The context that a value's type depends on: the prefixes in scope, and the xsi:type of its
element."""

from __future__ import annotations

from lasthop_xml.xas.events import ATTRIBUTE, ELEMENT_END, ELEMENT_START, PREFIX_MAPPING, Event
from lasthop_xml.xas.names import XSI_TYPE, Name
from lasthop_xml.xas.scope import Scope


class Context:
    """Follows a sequence of events, and keeps what the types of values depend on."""

    __slots__ = ("_mappings", "_outer", "_scoped", "declared", "depth", "scope")

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.declared: str | None = None
        """The xsi:type of the innermost open element, if nothing but its attributes has come."""
        self._outer: list[tuple[Scope, int]] = []
        self._scoped = -1  # the depth at which the innermost prefix mappings end
        self.depth = 0
        """The number of elements that are open here."""
        self._mappings: list[Name] = []

    @property
    def is_pending(self) -> bool:
        """Return whether an element must come next, since prefixes were declared for it."""
        return bool(self._mappings)

    def take(self, event: Event) -> None:
        """Move past an event and update the context."""
        kind, name, value = event
        if kind is ATTRIBUTE:
            if name == XSI_TYPE:
                self.declared = value
        elif kind is ELEMENT_START:
            self.declared = None
            if self._mappings:
                self._outer.append((self.scope, self._scoped))
                self.scope, self._scoped = self.scope.declare(self._mappings), self.depth
                self._mappings = []
            self.depth += 1
        elif kind is ELEMENT_END:
            self.declared = None
            self.depth -= 1
            if self.depth == self._scoped:
                self.scope, self._scoped = self._outer.pop()
        elif kind is PREFIX_MAPPING and name is not None:
            self._mappings.append(name)
