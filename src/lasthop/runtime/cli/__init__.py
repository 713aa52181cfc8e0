"""The command line: a table of commands, each implemented in one small module.

The module of a command is imported when the command is used, so that help appears at once. To add a
command or a group of commands, write a module with a `typer.Typer` named `commands` and enter it in
`COMMANDS`. A command that only performs one operation of the REST interface needs no module: it is
made from the table of operations (`lasthop.access.rest.operations`), and `RESOURCES` names the
resource.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import typer
from typer.completion import completion_init  # type: ignore[attr-defined]
from typer.core import TyperGroup

from lasthop import __version__
from lasthop.errors import LasthopError
from lasthop.extras import install_line
from lasthop.runtime.failure import Failure

COMMANDS = {
    "up": "Run a gateway.",
    "demo": "Show the whole system at work, and report what happened.",
    "chaos": "Break everything that can break, and count what was lost.",
    "push": "Send messages to topics, devices, users, groups and queues.",
    "device": "Run a device, and administer devices.",
    "address": "Set which device, user or topic a PAP client address stands for.",
    "pap": "Submit, cancel and query pushes at any Push Proxy Gateway.",
    "smsc": "Run a small SMSC on this machine, for trying short messages.",
    "service": "Show the services that devices offer.",
    "stream": "Send and fetch streams, such as files or continuous readings.",
    "behaviour": "Show and change how messages of an app behave.",
    "topic": "Advertise topics, set what they remember, and rank messages.",
    "history": "Set how much topics of an app remember.",
    "group": "Create, show and change groups of devices.",
    "queue": "Create, show and change queues that devices share.",
    "explain": "Explain what happened to a message for one device, and why.",
    "log": "Follow or check the event log.",
    "store": "Check the files of a store.",
    "surrogate": "Show and reload the surrogates that act for devices.",
    "credential": "Create, list and revoke credentials for the gateway.",
    "rule": "Show and change who may do what, and check what somebody may do.",
    "user": "Add, change, block and show users, and the rules about them.",
    "status": "Show whether a gateway is ready, and what its store holds.",
    "backup": "Copy the store of a gateway to one file.",
    "restore": "Create a data directory from a backup.",
    "config": "Print all settings with their explanations.",
    "doctor": "Check the installation, and report what is missing.",
    "completion": "Print the script that makes a shell complete lasthop's commands.",
    "codec": "Convert documents between a text form and a binary wire format.",
    "orl": "Generate Python classes from descriptions of their XML form.",
    "pipeline": "Build tables and learn policies from the event log, with Spark.",
    "policy": "Show which learned policies are in use, and end trials.",
    "sim": "Simulate gateways, devices and networks on virtual time.",
    "bench": "Measure lasthop and compare it with other systems.",
}
"""Every command with the sentence that help shows for it. The module of a command has the command's
name; commands of `RESOURCES` may have no module."""

RESOURCES: dict[str, dict[str, str]] = {
    "device": {"run": "Run a device, and print every message that it receives."},
    "address": {},
    "service": {},
    "stream": {
        "send": "Send a file as a stream, or continue an open stream.",
        "fetch": "Fetch a stream that a device sends to its publishers.",
    },
    "behaviour": {},
    "topic": {},
    "history": {},
    "group": {},
    "queue": {},
    "surrogate": {},
    "credential": {},
    "rule": {},
    "user": {},
    "policy": {},
}
"""The resources whose commands are made from the table of operations. Further commands, which the
module of the resource's name implements, are listed here with their help, so that help need not
import the module."""

ASKED_BY_A_SHELL = "_LASTHOP_COMPLETE"
"""The environment variable with which a shell asks for completions: see `completion`."""

INTERRUPTED = 130
"""The exit code that shells report for a command which Ctrl-C ended."""


class Commands(TyperGroup):
    """The root command, which finds the other commands in the table and imports them when used."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in COMMANDS:
            return None
        if cmd_name in RESOURCES:
            # Imported here because the table of operations is slow to import and most commands do
            # not need it.
            from lasthop.runtime.cli.resource import Resource  # noqa: PLC0415

            return Resource(cmd_name, COMMANDS[cmd_name], RESOURCES[cmd_name])
        module = import_module(f"{__name__}.{cmd_name}")
        command = typer.main.get_command(module.commands)
        command.name = cmd_name
        return command

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


app = typer.Typer(
    cls=Commands,
    name="lasthop",
    help="Push and messaging for devices that come and go.",
    no_args_is_help=True,
    rich_markup_mode=None,
    add_completion=False,
)


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"lasthop {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: bool = typer.Option(
        False, "--version", callback=_show_version, is_eager=True, help="Show the version."
    ),
) -> None:
    """Push and messaging for devices that come and go."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command; report an error in one line on standard error and exit with its code."""
    if ASKED_BY_A_SHELL in os.environ:
        completion_init()
    try:
        code = app(args=arguments, prog_name="lasthop", standalone_mode=False)
    except (Failure, LasthopError) as error:
        _say(str(error))
        sys.exit(getattr(error, "exit_code", 1))
    except (KeyboardInterrupt, typer.Abort):
        sys.exit(INTERRUPTED)
    except BrokenPipeError:
        # The reader of our output has closed the pipe: avoid a second error when Python flushes it.
        sys.stdout = sys.stderr
        sys.exit(1)
    except OSError as error:
        _say(str(error))
        sys.exit(1)
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("lasthop."):
            raise  # A module of our own is missing: a fault that no extra mends.
        _say(f"this command needs {error.name}: {install_line(error)}")
        sys.exit(1)
    except Exception as error:
        # A mistake in the command line; the parser's library has several classes for it.
        message = getattr(error, "format_message", None)
        if message is None:
            raise
        _say_usage(message(), getattr(error, "ctx", None))
        sys.exit(getattr(error, "exit_code", 2))
    sys.exit(code or 0)


def _say_usage(message: str, context: Any) -> None:
    if "\n" in message:  # The help of a group that was called without a command.
        print(message, file=sys.stderr)
    else:
        _say(message + (f" (see {context.command_path} --help)" if context is not None else ""))


def _say(line: str) -> None:
    print(f"lasthop: {' '.join(line.split())}", file=sys.stderr)
