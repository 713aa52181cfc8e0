"""What the command line needs to know of an operation, beside what the operation says itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, TypeAlias

Row: TypeAlias = dict[str, Any]
"""An answer together with what was asked: the parts of the path, the query, the body's fields."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """How a field is given on the command line, where its name and its description do not say it.
    One that is required is an argument, any other one an option; that of a field which is true by
    default makes it false."""

    flag: str = ""
    """The option, if it has another name than the field."""
    about: str = ""
    """The help, where the field's own description is for another reader."""
    form: str | None = None
    """How a value looks, for people."""
    many: bool = False
    """There may be several, and the operation is asked for once for each."""
    size: bool = False
    """It is a number of bytes and may have a unit."""
    default: list[str] | None = None
    """What an option stands for that is not given, although the field is required."""


@dataclass(frozen=True, slots=True)
class Command:
    """A command that asks for one operation and shows the answer. Its help is the summary of the
    operation; its options are the fields of the body and the parameters of the query."""

    words: str
    """The resource, and what is done about it: `device list`."""
    examples: str = ""
    """What may follow the words, one example a line."""
    _: KW_ONLY
    more: str = ""
    """What the help says beside the summary."""
    given: Mapping[str, Given] = field(default_factory=dict)
    """Fields and parts of the path that need words of their own."""
    fixed: Mapping[str, object] = field(default_factory=dict)
    """Fields that nobody is asked for, with their values; None leaves them out."""
    file: bool = False
    """The body is a file with JSON."""
    app: bool = True
    """It is about one app, the one of `--app`; otherwise it is about the gateway."""
    offline: bool = True
    """It can work on a data directory that no gateway is using."""
    says: str | Callable[[Row], str] = ""
    """What people are told: a format, or a text that is made of the row. If it is empty and there
    are no columns, they are told every field."""
    nothing: str = ""
    """What they are told when there is no field."""
    rows: str = ""
    """The field of the answer with the rows of the table; if nothing else is said, they are the
    whole result."""
    columns: str = ""
    """The table for people: its headings, with `=` and the field where that has another name."""
    derived: Mapping[str, Callable[[Row], object]] = field(default_factory=dict)
    """Columns that are made of a row rather than found in it."""
    each: bool = False
    """Machines get a line for every row, and otherwise one line for all of them."""
    result: Callable[[Row], Row] | None = None
    """What machines get, where it is not the answer."""
    fails: Callable[[Row], str] | None = None
    """Why the command fails although it was answered; empty if it does not."""
