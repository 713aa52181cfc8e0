"""Makes options and arguments of commands from the fields of a type and the parts of a path."""

from __future__ import annotations

import inspect as signatures
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Annotated, Any

import msgspec
import typer
from msgspec import inspect

from lasthop.access.rest.operations.command import Given
from lasthop.runtime.failure import Failure

UNLIMITED = 1e300
"""The bound of numbers that must be finite but have no other limit; the help does not show this
bound."""

REQUIRED = signatures.Parameter.empty

_LISTS = (inspect.ListType, inspect.VarTupleType)
_NUMBERS = {inspect.IntType: int, inspect.FloatType: float}


@dataclass(frozen=True, slots=True)
class CommandInput:
    """An option or argument of a command, and the field or part of the path that it fills."""

    place: str
    """Whether the value belongs in the path, the query or the body."""
    field: str
    declared: signatures.Parameter
    """The option or argument, as typer finds it in the signature of a function."""
    value: Callable[[Any], Any] | None = None
    """Converts what was given on the command line to the field's value; None if no conversion is
    needed."""
    flag: str = ""


def declared(name: str, annotation: Any, default: Any = REQUIRED) -> signatures.Parameter:
    """Return a parameter for the function from which typer makes a command."""
    place = signatures.Parameter.KEYWORD_ONLY
    return signatures.Parameter(name, place, default=default, annotation=annotation)


def of_path(name: str, about: str, given: Given) -> CommandInput:
    """Return the argument that fills a part of the path."""
    info = typer.Argument(metavar=given.form or name.upper(), help=given.about or about)
    kind = list[str] if given.many else str
    return CommandInput("path", name, declared(name, Annotated[kind, info]))


def of_field(place: str, field: inspect.Field, given: Given) -> Iterator[CommandInput]:
    """Yield the argument for a required field, or the option for any other field. A list that can
    be changed also has an option that empties it."""
    name, flag = field.name, given.flag or f"--{field.name.replace('_', '-')}"
    kind, about = _unwrapped(field.type)
    one = _unwrapped(kind.item_type)[0] if isinstance(kind, _LISTS) else kind
    several = kind is not one or isinstance(kind, inspect.DictType)
    words = _words(one)
    help_text = given.about or f"{about}."
    help_text += f" One of {', '.join(words)}." if words else ""
    help_text += " May be repeated." if several else ""
    if isinstance(kind, inspect.BoolType):
        option = declared(name, Annotated[bool, typer.Option(flag, help=help_text)], False)
        yield CommandInput(place, name, option, lambda _: not field.default)
        return
    parsed, form, value = _size(flag) if given.size else _form(kind, one, flag)
    details: dict[str, Any] = {"metavar": given.form or form, "help": help_text}
    details |= {} if given.size else _range(one)
    if field.required and given.default is None:
        info = typer.Argument(**details | {"metavar": given.form or name.upper()})
        yield CommandInput(place, name, declared(name, Annotated[parsed, info]), value)
        return
    if isinstance(field.default, int | float):
        details["show_default"] = f"{field.default:g}"
    info = typer.Option(flag, **details)
    option = declared(name, Annotated[parsed | None, info], given.default)
    yield CommandInput(place, name, option, value, flag)
    if several and not field.required and field.default is field.default_factory:
        # Without a default: when the option is left out, the list stays as it is.
        info = typer.Option(f"--no-{name}", help=f"Remove all {name}.")
        option = declared(f"no_{name}", Annotated[bool, info], False)
        yield CommandInput(place, name, option, lambda _: [] if kind is not one else {})


def _unwrapped(kind: Any) -> tuple[Any, str]:
    """Return a type without None and similar alternatives, and its description."""
    about = ""
    while isinstance(kind, inspect.Metadata | inspect.UnionType):
        if isinstance(kind, inspect.Metadata):
            about = about or (kind.extra_json_schema or {}).get("description", "")
            kind = kind.type
        else:
            absent = (inspect.NoneType, inspect.CustomType)
            kind = next(each for each in kind.types if not isinstance(each, absent))
    return kind, about


def _words(kind: Any) -> list[str]:
    """Return all texts that a type allows, or nothing if it is not a choice of words."""
    if isinstance(kind, inspect.EnumType):
        return [str(member.value) for member in kind.cls]
    return list(map(str, kind.values)) if isinstance(kind, inspect.LiteralType) else []


def _range(kind: Any) -> dict[str, Any]:
    """Return the least and the greatest value of a number type."""
    bounds = {"min": getattr(kind, "ge", None), "max": getattr(kind, "le", None)}
    return {n: b for n, b in bounds.items() if b is not None and abs(b) < UNLIMITED}


def _form(kind: Any, one: Any, flag: str) -> tuple[Any, str | None, Callable[[Any], Any] | None]:
    """Return how a value is written: its type for the parser, its form for help, and the function
    that converts it to the field's value."""
    if isinstance(kind, inspect.DictType):
        return list[str], "NAME=VALUE", lambda said: dict(_pairs(said, flag, "NAME=VALUE"))
    if isinstance(one, inspect.StructType) and kind is not one:
        names = [field.name for field in one.fields if field.required]
        shape = "=".join(names).upper()

        def structs(said: list[str]) -> list[dict[str, str]]:
            return [dict(zip(names, pair, strict=True)) for pair in _pairs(said, flag, shape)]

        return list[str], shape, structs
    if kind is not one:
        return list[str], None, None
    if isinstance(kind, inspect.StrType | inspect.EnumType | inspect.LiteralType):
        return str, None, None
    if type(kind) in _NUMBERS:
        return _NUMBERS[type(kind)], None, None
    return str, "JSON", lambda said: _json(said, flag)


def _pairs(said: list[str], flag: str, shape: str) -> Iterator[tuple[str, str]]:
    for text in said:
        name, equals, value = text.partition("=")
        if not name or not equals:
            raise Failure(f"{flag} takes {shape}, not {text!r}", exit_code=2)
        yield name, value


def _json(said: str, flag: str) -> Any:
    try:
        return msgspec.json.decode(said)
    except msgspec.DecodeError as error:
        raise Failure(f"{flag} takes JSON: {error}", exit_code=2) from None


def _size(flag: str) -> tuple[Any, str, Callable[[str], int]]:
    def parse(said: str) -> int:
        # Imported here because it comes with the limits of devices, which other commands do not
        # need.
        from lasthop.runtime.units import Size  # noqa: PLC0415

        try:
            return int(Size.parse(said))
        except ValueError as error:
            raise Failure(f"{flag}: {error}", exit_code=2) from None

    return str, "SIZE", parse
