"""`lasthop completion`: print the script that makes a shell complete our commands."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer
from typer.completion import get_completion_script  # type: ignore[attr-defined]

from lasthop.runtime.cli import ASKED_BY_A_SHELL
from lasthop.runtime.cli.options import Json, described, new_commands
from lasthop.runtime.cli.output import say, say_json

commands = new_commands()


class Shell(StrEnum):
    """The shells for which there is a completion script."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


@commands.command(
    help=described(
        "Print the script that makes a shell complete lasthop's commands and options.",
        'eval "$(lasthop completion bash)"    # in ~/.bashrc',
        'eval "$(lasthop completion zsh)"     # in ~/.zshrc, after compinit',
        "lasthop completion fish > ~/.config/fish/completions/lasthop.fish",
    )
)
def completion(
    shell: Annotated[Shell, typer.Argument(help="The shell to print the script for.")],
    as_json: Json = False,
) -> None:
    script = get_completion_script(
        prog_name="lasthop", complete_var=ASKED_BY_A_SHELL, shell=shell.value
    )
    if as_json:
        say_json({"shell": shell.value, "script": script})
    else:
        say(script)
