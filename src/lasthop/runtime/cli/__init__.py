"""The command line: a table of commands, each of them one small module.

A module is imported when its command is used, so that help comes at once. To add a command or a
group of them, write a module with a `typer.Typer` named `commands` and enter it in `COMMANDS`.
Commands that only ask for one operation of the REST interface need no module: the table of
operations has them (`lasthop.access.rest.operations`), and `RESOURCES` what they are about.
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
    "demo": "See all of it at work, with a report.",
    "push": "Send messages.",
    "device": "Run a device, and administer devices.",
    "address": "Say who client addresses of PAP stand for.",
    "pap": "Push, cancel and ask at any Push Proxy Gateway.",
    "service": "Show the services that devices offer.",
    "stream": "Send and fetch streams: files, or whatever goes on and on.",
    "behaviour": "Show and change how messages of an app behave.",
    "topic": "Advertise topics, and change what their messages are worth.",
    "group": "Make groups of devices, and show and change them.",
    "queue": "Make queues that devices share, and show and change them.",
    "explain": "What became of a message for one device, and why.",
    "log": "Follow the event log, or check it.",
    "surrogate": "Show and load the classes that act for devices at the gateway.",
    "credential": "Say who may publish and administer.",
    "status": "How a gateway is, and what its store holds.",
    "backup": "Copy the store to one file.",
    "restore": "Make a data directory from a backup.",
    "config": "All settings, explained.",
    "doctor": "Check the installation, and say what is missing.",
    "completion": "Make a shell complete these commands.",
    "codec": "Convert wire formats: text to octets, and back.",
    "orl": "Python classes from the descriptions of their XML.",
    "pipeline": "Learn from the event log, on Spark.",
    "sim": "Rehearse on virtual time.",
    "bench": "Measure against peers.",
}
"""Every command and what it is for. Its module has the same name, if it has one."""

RESOURCES: dict[str, dict[str, str]] = {
    "device": {"run": "Be a device, and print every message that comes."},
    "address": {},
    "service": {},
    "stream": {
        "send": "Send a file as a stream, or go on with one.",
        "fetch": "Fetch a stream that a device sends to its publishers.",
    },
    "behaviour": {},
    "topic": {},
    "group": {},
    "queue": {},
    "surrogate": {},
    "credential": {},
}
"""What the commands of the table of operations are about. Those that a module has beside them are
named here, so that help needs not wait for it."""

ASKED_BY_A_SHELL = "_LASTHOP_COMPLETE"
"""The variable with which a shell asks what could come next: see `completion`."""

INTERRUPTED = 130
"""What a shell reports of a command that Ctrl-C ended."""


class Commands(TyperGroup):
    """Finds commands in the table."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in COMMANDS:
            return None
        if cmd_name in RESOURCES:
            # The table of operations, which other commands need not wait for.
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
    """Run a command; what it cannot do is said in one line."""
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
        # Whoever read our output has seen enough; do not complain while closing it.
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
        # A mistake in the command line, of whichever class the parser's library has it.
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
