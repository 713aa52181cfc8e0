"""Describes the command of an operation: everything that the command line needs to know and that
the operation does not say."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, TypeAlias

Row: TypeAlias = dict[str, Any]
"""An answer together with the request: the parts of the path, the query, the body's fields."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """How a field is given on the command line, if that does not follow from the field's name and
    description. A required field is an argument, any other field an option; if a field is true by
    default, its option makes it false."""

    flag: str = ""
    """The name of the option, if it differs from the name of the field."""
    about: str = ""
    """The help text, if the field's own description does not suit the command line."""
    form: str | None = None
    """The form of a value, as help shows it."""
    many: bool = False
    """Whether several values may be given; the operation is then performed once for each."""
    size: bool = False
    """Whether the value is a number of bytes that may have a unit."""
    default: list[str] | None = None
    """The values that a required field has if its option is not given."""


@dataclass(frozen=True, slots=True)
class Command:
    """A command that performs one operation and shows the answer. Its help is the summary of the
    operation; its options are the fields of the body and the parameters of the query."""

    words: str
    """The words of the command, a resource and a verb: `device list`."""
    examples: str = ""
    """Example arguments of the command, one example per line."""
    _: KW_ONLY
    more: str = ""
    """Sentences of the help that follow the summary."""
    given: Mapping[str, Given] = field(default_factory=dict)
    """Descriptions of the options and arguments that do not follow from the field or the part of
    the path."""
    fixed: Mapping[str, object] = field(default_factory=dict)
    """Fields that have no option, with their values; None leaves a field out."""
    file: bool = False
    """Whether the body is read from a file with JSON."""
    app: bool = True
    """Whether the command is about one app, which `--app` names; otherwise it is about the whole
    gateway."""
    offline: bool = True
    """Whether the command can work on a data directory that no gateway is using."""
    says: str | Callable[[Row], str] = ""
    """The text printed for people: a format, or a function that makes it from the row. If it is
    empty and there are no columns, every field is printed."""
    nothing: str = ""
    """The text printed for people when the answer has no fields."""
    rows: str = ""
    """The field of the answer with the rows of the table; if `says` is empty, the rows are the
    whole result."""
    columns: str = ""
    """The columns of the table: headings, each followed by `=` and the name of the field if the two
    differ."""
    derived: Mapping[str, Callable[[Row], object]] = field(default_factory=dict)
    """Columns whose value is computed from a row rather than found in it."""
    each: bool = False
    """Whether JSON output has one line for every row; otherwise it has one line for all rows."""
    result: Callable[[Row], Row] | None = None
    """Computes the JSON output, if the output differs from the answer."""
    fails: Callable[[Row], str] | None = None
    """Returns why the command fails although the operation succeeded; empty if it does not fail."""
