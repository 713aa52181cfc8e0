"""The reference is what the code says, and every command explains itself with an example."""

from __future__ import annotations

from typing import Any

import pytest
import typer

from lasthop.runtime.cli import COMMANDS, app
from lasthop.runtime.settings import names, variable
from tests.docs import reference
from tests.docs.blocks import arguments
from tests.docs.test_commands import parse


def every_command() -> list[tuple[str, Any]]:
    root: Any = typer.main.get_command(app)
    return [
        leaf
        for name in COMMANDS
        for leaf in reference.leaves(root.get_command(None, name), f"lasthop {name}")
    ]


@pytest.mark.parametrize("name", ["cli.md", "settings.md", "features.md"])
def test_it_is_up_to_date(name: str) -> None:
    written = (reference.DIRECTORY / name).read_text()
    assert written == reference.written()[name], "run scripts/reference"


def test_every_setting_is_there() -> None:
    page = reference.settings()
    for name in names():
        assert f"`{name}`" in page
        assert variable(name) in page


@pytest.mark.parametrize("path, command", every_command(), ids=str)
def test_help_has_an_example_that_works_and_explains_every_option(path: str, command: Any) -> None:
    text = reference.help_of(command, path)
    shown = text.partition("Examples:\n")[2].partition("\n\n")[0]
    assert path in " ".join(shown.split()), f"{path} has no example"
    for option in command.params:
        assert option.hidden or option.help or option.name == "help", f"{path} {option.name}"
    for line in (command.help or "").partition("Examples:\n")[2].splitlines():
        if (words := arguments(line)) is not None:
            parse(words)
