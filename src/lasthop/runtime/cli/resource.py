"""Commands that administer a resource. They are made from the table of operations, so that every
operation of the REST interface also has a command."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from inspect import Parameter, Signature
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
from typer.core import TyperGroup

from lasthop.access.rest.operations import OPERATIONS, Ask, Operation
from lasthop.access.rest.operations.command import Command, Given, Row
from lasthop.access.rest.operations.deferred import resolve
from lasthop.runtime.cli import options
from lasthop.runtime.cli.client import RestClient, segment
from lasthop.runtime.cli.field_options import CommandInput, declared, of_field, of_path
from lasthop.runtime.cli.result import show
from lasthop.runtime.failure import Failure

_ORDINARY = Given()
_FILE = typer.Argument(metavar="FILE", help="A file with JSON; - reads standard input.")


class Resource(TyperGroup):
    """The commands of a resource. Commands that perform more than one operation are in the module
    of the resource's name, which is imported only for them."""

    def __init__(self, name: str, about: str, by_hand: dict[str, str]) -> None:
        super().__init__(name=name, help=about, no_args_is_help=True, rich_markup_mode=None)
        self._by_hand = by_hand
        self._made = {
            words[1]: operation
            for operation in OPERATIONS
            if isinstance(operation.command, Command)
            and (words := operation.command.words.split())[0] == name
        }

    def list_commands(self, ctx: Any) -> list[str]:
        return [*self._by_hand, *self._made]

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        about = self._by_hand | {name: f"{made.summary}." for name, made in self._made.items()}
        with formatter.section("Commands"):
            formatter.write_dl(list(about.items()))

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name in self._made:
            found: Any = typer.main.get_command(_made(self._made[cmd_name]))
        elif cmd_name in self._by_hand:
            module = import_module(f"lasthop.runtime.cli.{self.name}")
            found = typer.main.get_command(module.commands)
            found = getattr(found, "commands", {}).get(cmd_name, found)
        else:
            return None
        found.name = cmd_name
        return found


def _made(operation: Operation) -> typer.Typer:
    """Make the command for an operation."""
    command = operation.command
    assert isinstance(command, Command)
    inputs = [*_inputs(operation, command)]

    def run(**said: Any) -> None:
        _run(operation, command, inputs, said)

    signature = Signature([*(each.declared for each in inputs), *_shared(command)])
    run.__signature__ = signature  # type: ignore[attr-defined]
    run.__annotations__ = {}
    examples = [f"lasthop {command.words} {rest}".rstrip() for rest in command.examples.split("\n")]
    about = f"{operation.summary}. {command.more}".rstrip()
    made = options.new_commands()
    made.command(help=options.described(about, *examples))(run)
    return made


def _inputs(operation: Operation, command: Command) -> Iterator[CommandInput]:
    """Yield the options and arguments of an operation's command."""
    for name, about in operation.path_parameters.items():
        if name != "app" or not command.app:
            yield of_path(name, about, command.given.get(name, _ORDINARY))
    if command.file:
        yield CommandInput("file", "file", declared("file", Annotated[str, _FILE]))
        return
    kinds = {"body": operation.body, "query": None if command.fixed else operation.query}
    for place, kind in kinds.items():
        info: Any = kind and msgspec.inspect.type_info(resolve(kind))
        for field in info.fields if info else ():
            if field.name not in command.fixed:
                yield from of_field(place, field, command.given.get(field.name, _ORDINARY))


def _shared(command: Command) -> Iterator[Parameter]:
    """Yield the options that all of these commands have."""
    yield declared("url", options.Url, options.DEFAULT_URL)
    yield declared("token", options.Token, None)
    if command.app:
        yield declared("app", options.App, options.DEFAULT_APP)
    if command.offline:
        yield declared("data", options.Data, None)
    yield declared("as_json", options.Json, False)


def _run(operation: Operation, command: Command, inputs: list[CommandInput], said: Row) -> None:
    """Perform the operation, and show its answer."""
    fixed = {name: value for name, value in command.fixed.items() if value is not None}
    asked: dict[str, Row] = {"path": {}, "query": fixed, "body": {}, "file": {}}
    for each in inputs:
        value = said[each.declared.name]
        if value is not None and value is not False and value != []:
            asked[each.place][each.field] = value if each.value is None else each.value(value)
    fields = asked["body"]
    if operation.method == "PATCH" and not fields:
        flags = ", ".join(each.flag for each in inputs if each.flag)
        raise Failure(f"nothing to change: give one of {flags}", exit_code=2)
    body: object = fields
    if command.file:
        body = _content(said["file"])
    elif operation.body is None or (operation.optional and not fields):
        body = None
    if command.app and "app" in operation.path_parameters:
        asked["path"]["app"] = said["app"]
    known = {**asked["query"], **fields, **asked["file"], "given": ", ".join(fields)}
    path, many = asked["path"], [name for name, given in command.given.items() if given.many]
    paths = [path | {name: value} for name in many for value in path[name]] or [path]
    with _asking(said) as ask:
        for path in paths:
            answer = _whole(command, operation, ask, path, asked["query"], body)
            row = known | path | answer | {"answered": list(answer)}
            show(command, row, answer, as_json=said["as_json"])


def _whole(
    command: Command, operation: Operation, ask: Ask, path: Row, query: Row, body: object
) -> Row:
    """Return the answer; a list that comes in pages is fetched whole."""
    answer = ask(operation, path, query, body)
    while command.rows and (after := answer.pop("next", None)) is not None:
        page = ask(operation, path, query | {"after": after}, body)
        answer[command.rows] += page.pop(command.rows)
        answer |= page
    return answer


def _content(file: str) -> msgspec.Raw:
    """Return the JSON in a file without parsing it: the gateway checks it."""
    try:
        return msgspec.Raw(sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes())
    except OSError as error:
        raise Failure(f"cannot read {file}: {error.strerror}") from None


@contextmanager
def _asking(said: Row) -> Iterator[Ask]:
    """Yield a function that asks a running gateway, or a data directory that no gateway is
    using."""
    if said.get("data") is not None:
        # Imported here because it loads a whole gateway, which commands for a running one do not
        # need.
        from lasthop.runtime.cli.at_store import asking  # noqa: PLC0415

        with asking(said["data"], said["app"]) as ask:
            yield ask
        return
    with RestClient(said["url"], token=said["token"], app=said.get("app")) as client:

        def ask_gateway(operation: Operation, path: Row, query: Row, body: object) -> Row:
            place = operation.path.format(**{name: segment(path[name]) for name in path})
            answer: Row = client.call(operation.method, place, query=query, body=body)
            return answer

        yield ask_gateway
