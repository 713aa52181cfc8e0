"""Functions that copy or compare the fields of a struct, generated from the fields themselves.

A loop over the fields of a message, or a call that names each of them, takes several times as long
as the same thing written out by hand; but code that is written out by hand forgets the next field.
So these functions are generated when the module that needs them is imported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from typing import Any, TypeVar

import msgspec

T = TypeVar("T", bound=msgspec.Struct)


def maker(kind: type[T], copied: Mapping[str, str], given: Iterable[str]) -> Callable[..., T]:
    """Return a function that makes a struct from an object and keyword arguments: the field `name`
    gets the object's attribute `copied[name]`, or the argument `name` if `name` is in `given`. All
    other fields keep their defaults."""
    given = tuple(given)
    values = {name: f"it.{attribute}" for name, attribute in copied.items()}
    values |= {name: name for name in given}
    fields = {field.name: field for field in msgspec.structs.fields(kind)}
    if not values.keys() <= fields.keys():
        raise TypeError(f"{kind.__name__} has no {', '.join(values.keys() - fields.keys())}")
    known: dict[str, object] = {"Struct": kind}
    for name, field in fields.items():
        if name not in values:
            values[name] = f"default_{name}"
            known[values[name]] = field.default
    # Positional arguments take a third of the time of keyword arguments; the order is the struct's
    # own.
    call = f"Struct({', '.join(values[name] for name in fields)})"
    make: Callable[..., T] = _written("make", ("it", *given), call, known)
    return make


def at_default(kind: type[T], names: Iterable[str]) -> Callable[[T], bool]:
    """Return a function that tells whether these fields of a struct are all at their defaults."""
    defaults = {field.name: field.default for field in msgspec.structs.fields(kind)}
    known = {f"default_{name}": defaults[name] for name in names}
    tests = [_test(f"it.{name[8:]}", name, default) for name, default in known.items()]
    test: Callable[[T], bool] = _written("test", ("it",), " and ".join(tests), known)
    return test


def _test(value: str, name: str, default: object) -> str:
    """Return the source of a test whether a value is a default, in the quickest form for such a
    default."""
    if default is None:
        return f"{value} is None"
    if isinstance(default, Enum):
        return f"{value} is {name}"
    return f"{value} == {default!r}" if default else f"not {value}"


def _written(name: str, parameters: tuple[str, ...], result: str, known: Mapping[str, Any]) -> Any:
    scope = dict(known)
    exec(f"def {name}({', '.join(parameters)}):\n    return {result}\n", scope)
    return scope[name]
