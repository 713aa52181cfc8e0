"""Which tests `make quick` leaves to `make test`.

No test has to say so. One that starts a process is found by what its code refers to, and so is one
that works with Spark or a browser; what takes long all the same is listed in `tests/slow.txt`.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Final

import pytest

STARTERS: Final = ("subprocess", "multiprocessing", "concurrent", "playwright", "pyspark")
"""Packages that start processes. Who refers to one of them, starts one."""

OURS: Final = ("tests", "bench")
"""Packages whose functions and classes are followed into; the gateway itself is not."""


def _listed(name: str) -> frozenset[str]:
    """Return the tests that a list beside this module names."""
    lines = Path(__file__).with_name(name).read_text().splitlines()
    return frozenset(line for line in lines if line and not line.startswith("#"))


SLOW: Final = _listed("slow.txt")
"""Tests that take about a second or more, with all their parameters; or whole files."""

NIGHTLY: Final = _listed("nightly.txt")
"""Tests, each with its parameters, that only `make nightly` runs."""

MARKS: Final = ("nightly", "peer", "slow")
"""What a test says of itself."""


def left_out(item: pytest.Item) -> bool:
    """Whether a test is too long for people who wait."""
    if any(item.get_closest_marker(mark) for mark in MARKS):
        return True
    file, _, name = item.nodeid.partition("::")
    return file in SLOW or f"{file}::{name.partition('[')[0]}" in SLOW or _starts(item)


def _starts(item: pytest.Item) -> bool:
    """Whether a test or one of its fixtures starts a process."""
    if not isinstance(item, pytest.Function):
        return False
    fixtures = (
        each.func for several in item._fixtureinfo.name2fixturedefs.values() for each in several
    )
    return any(starts(each) for each in (item.obj, *fixtures))


@cache
def starts(thing: object) -> bool:
    """Whether a function or a class can start a process, as far as its code tells."""
    seen: set[int] = set()
    left = [thing]
    while left:
        each = left.pop()
        if id(each) in seen:
            continue
        seen.add(id(each))
        package = _package(each)
        if package in STARTERS:
            return True
        if each is thing or package in OURS:
            left.extend(_references(each))
    return False


def _package(thing: object) -> str:
    name = thing.__name__ if isinstance(thing, ModuleType) else getattr(thing, "__module__", None)
    return name.partition(".")[0] if isinstance(name, str) else ""


def _references(thing: object) -> Iterator[object]:
    """What the code of a function, of a method or of all methods of a class refers to."""
    function = inspect.unwrap(getattr(thing, "__func__", thing))  # type: ignore[arg-type]
    if isinstance(function, type):
        yield from function.__bases__
        yield from function.__dict__.values()
    elif isinstance(function, FunctionType):
        scope = function.__globals__
        yield from (scope[name] for name in _names(function.__code__) if name in scope)


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _names(inner)
