"""Stand-ins for modules and their contents that are imported when they are needed.

The table of operations names handlers and types of the whole gateway. The command line reads the
table too, and would wait for all of these imports without using them.
"""

from __future__ import annotations

from importlib import import_module
from operator import attrgetter
from typing import Any


class Deferred:
    """A stand-in for an object in a module that is not imported yet; an attribute of the stand-in
    is a stand-in for the object's attribute."""

    def __init__(self, module: str, place: str = "") -> None:
        self._module = module
        self._place = place

    def __getattr__(self, name: str) -> Deferred:
        return Deferred(self._module, f"{self._place}.{name}".lstrip("."))


def resolve(value: Any) -> Any:
    """Return the object that a stand-in stands for, importing its module; return any other value
    unchanged."""
    if not isinstance(value, Deferred):
        return value
    return attrgetter(value._place)(import_module(value._module))


def deferred(*names: str) -> tuple[Deferred, ...]:
    """Return stand-ins for modules of the REST door, without importing them."""
    return tuple(Deferred(f"lasthop.access.rest.{name}") for name in names)
