"""Imports the surrogate's class that the configuration names."""

from __future__ import annotations

import re
from importlib import import_module
from typing import Any

from lasthop.surrogate.surrogate import Surrogate

PLACE = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")
"""The form of a class's name in the configuration: package.module:Class"""


class CannotLoad(Exception):
    """The error for a surrogate's class that cannot be loaded; its text says why."""


def load(place: str) -> type[Surrogate]:
    """Return the class at `package.module:Class`. Raises CannotLoad, or anything else that
    importing the module raises."""
    if not PLACE.fullmatch(place):
        raise CannotLoad(f"{place!r} does not have the form package.module:Class")
    module_name, _, path = place.partition(":")
    found: Any = import_module(module_name)
    for name in path.split("."):
        found = getattr(found, name, None)
        if found is None:
            raise CannotLoad(f"{module_name} has no {path}")
    if not (isinstance(found, type) and issubclass(found, Surrogate)):
        raise CannotLoad(f"{place} is not a subclass of lasthop.surrogate.Surrogate")
    return found
