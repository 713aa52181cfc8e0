"""Every command that the documentation names exists, with every option that it is given.

About `docs/` and `runtime/cli/`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import typer

from lasthop.runtime.cli import app
from tests.docs.blocks import ROOT, blocks, commands, pages

SHOWN = [
    pytest.param(page, arguments, id=f"{page.relative_to(ROOT)}:{line}")
    for page in pages()
    for line, arguments in commands(page)
]


@pytest.mark.parametrize("page, arguments", SHOWN)
def test_a_command_is_one_that_the_parser_takes(page: Path, arguments: list[str]) -> None:
    parse(arguments)


def test_commands_are_found_at_all() -> None:
    assert len(SHOWN) > 80


def test_one_that_is_misspelt_would_be_noticed() -> None:
    for wrong in (["pusch", "x"], ["push", "--frobnicate", "x"], ["device", "walk"]):
        with pytest.raises(AssertionError):
            parse(wrong)


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_python_on_a_page_is_python(page: Path) -> None:
    for block in blocks(page):
        if block.language == "python":
            compile(block.text, str(block), "exec")


def parse(arguments: list[str]) -> None:
    """Let the command line's own parser read them; nothing is run."""
    command: Any = typer.main.get_command(app)
    rest = [word for word in arguments if word not in ("--version", "...")]
    name = "lasthop"
    while hasattr(command, "get_command") and rest and not rest[0].startswith("-"):
        name, rest = rest[0], rest[1:]
        found = command.get_command(None, name)
        assert found is not None, f"there is no command {name}"
        command = found
    try:
        command.make_context(name, [*rest], resilient_parsing=not rest)
    except typer.Exit:
        return  # --help
    except Exception as error:
        complaint = getattr(error, "format_message", None)
        if complaint is None:
            raise
        if "does not exist" in complaint():
            return  # A file of the reader.
        raise AssertionError(f"{' '.join(arguments)}: {complaint()}") from None
