"""The names of settings in files and variables, and suggestions for wrong ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from enum import StrEnum
from typing import Annotated, Any, Literal, TypeAlias, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Meta

from lasthop.runtime.settings.apps import NAMED
from lasthop.runtime.settings.gateway import Settings
from lasthop.runtime.settings.section_lists import LISTED

PREFIX = "LASTHOP_"

IN_SECTIONS = frozenset({*NAMED, *LISTED})
"""The parts of the settings that have any number of sections, and no variables."""

Section: TypeAlias = type[msgspec.Struct]


def is_section(hint: object) -> bool:
    """Whether a field of the settings is a section with settings of its own."""
    return isinstance(hint, type) and issubclass(hint, msgspec.Struct)


def names(of: Section = Settings, prefix: str = "") -> Iterator[str]:
    """Yield every setting's dotted name, in order, without the settings of named sections
    and of lists of sections."""
    for name, hint in get_type_hints(of).items():
        if is_section(hint):
            yield from names(hint, f"{prefix}{name}.")
        elif name not in IN_SECTIONS:
            yield prefix + name


def is_list(name: str) -> bool:
    """Whether a setting is a list of values."""
    hint: Any = Settings
    for part in name.split("."):
        hint = get_type_hints(hint)[part]
    return get_origin(hint) is tuple


def variable(name: str) -> str:
    """Return the name of the environment variable of a setting.

    >>> variable("http.listen")
    'LASTHOP_HTTP_LISTEN'
    """
    return PREFIX + name.replace(".", "_").upper()


def described(hint: object) -> Meta:
    """Return the description of a setting from its type."""
    (meta,) = (found for found in get_args(hint) if isinstance(found, Meta))
    return meta


def allowed_words(hint: Any) -> tuple[str, ...]:
    """Return the words that are allowed as a value of this type, or as an item of a list of this
    type; empty if any text is allowed."""
    if get_origin(hint) is Annotated:
        words = (described(hint).extra or {}).get("words")
        if words is not None:
            return tuple(words)
        hint = get_args(hint)[0]
    if get_origin(hint) is tuple:
        return allowed_words(get_args(hint)[0])
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return tuple(hint)
    return get_args(hint) if get_origin(hint) is Literal else ()


def guess(name: str, known: set[str] | Mapping[str, str]) -> str:
    """Return a suggestion to append to an error about an unknown `name`, or an empty text."""
    close = get_close_matches(name, known, n=1, cutoff=0.5)
    if not close:
        # The name may be right, but in the wrong section or in none.
        last = name.rpartition(".")[2]
        close = [other for other in sorted(known) if other.rpartition(".")[2] == last]
    return f"; did you mean {close[0]}?" if close else ""
