"""Things of modules that are imported when they are needed.

The table of operations names handlers and types of the whole gateway. The command line reads the
table too, and would wait for all of these imports without using them.
"""

from __future__ import annotations

from importlib import import_module
from operator import attrgetter
from typing import Any


class Deferred:
    """Stands for what is found at a place in a module; an attribute of it stands for the attribute
    of that."""

    def __init__(self, module: str, place: str = "") -> None:
        self._module = module
        self._place = place

    def __getattr__(self, name: str) -> Deferred:
        return Deferred(self._module, f"{self._place}.{name}".lstrip("."))


def resolve(value: Any) -> Any:
    """What a deferred thing stands for; anything else is itself."""
    if not isinstance(value, Deferred):
        return value
    return attrgetter(value._place)(import_module(value._module))


def deferred(*names: str) -> tuple[Deferred, ...]:
    """Modules of the REST door, not imported yet."""
    return tuple(Deferred(f"lasthop.access.rest.{name}") for name in names)
