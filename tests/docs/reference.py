"""Writes `docs/reference/` from the code: `scripts/reference`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_type_hints

import msgspec
import typer

from lasthop.runtime.cli import COMMANDS, app
from lasthop.runtime.settings.apps import NAMED, PLACEHOLDERS
from lasthop.runtime.settings.gateway import Settings
from lasthop.runtime.settings.naming import (
    IN_SECTIONS,
    allowed_words,
    described,
    is_section,
    variable,
)
from lasthop.runtime.settings.section_lists import EXAMPLES, LISTED
from lasthop.runtime.settings.writing import SPECIMENS, toml_value
from tests.sdk import features

DIRECTORY = Path(__file__).parents[2] / "docs" / "reference"

NOTE = "<!-- Written by scripts/reference from the code; change it there. -->"

WIDTH = 100


def written() -> dict[str, str]:
    """Every page, by the name of its file."""
    return {"cli.md": commands(), "settings.md": settings(), "features.md": features.page()}


def commands() -> str:
    """The help of every command."""
    lines = [
        "# Commands",
        "",
        NOTE,
        "",
        "Every command takes `--help`. It exits with 0 only if it did what was asked, and says in",
        "one line on standard error why not. With `--json` it prints JSON, for machines.",
        "",
    ]
    lines += [f"- [`lasthop {name}`](#lasthop-{name}): {about}" for name, about in COMMANDS.items()]
    root: Any = typer.main.get_command(app)
    for name in COMMANDS:
        command = root.get_command(None, name)
        lines += ["", f"## lasthop {name}", ""]
        for path, found in leaves(command, f"lasthop {name}"):
            if path != f"lasthop {name}":
                lines += [f"### {path}", ""]
            lines += ["```text", help_of(found, path), "```", ""]
        lines.pop()
    return "\n".join(lines) + "\n"


def leaves(command: Any, path: str) -> Iterator[tuple[str, Any]]:
    """A command, or all of a group."""
    if not hasattr(command, "list_commands"):
        yield path, command
        return
    for name in command.list_commands(None):
        yield from leaves(command.get_command(None, name), f"{path} {name}")


def help_of(command: Any, path: str) -> str:
    context = command.make_context(
        path, [], resilient_parsing=True, max_content_width=WIDTH, terminal_width=WIDTH
    )
    text: str = command.get_help(context)
    return "\n".join(line.rstrip() for line in text.strip().splitlines())


def settings() -> str:
    """Every setting, its default, its variable and what it is for."""
    lines = [
        "# Settings",
        "",
        NOTE,
        "",
        "`lasthop up --config FILE` reads them from a TOML file; `lasthop config` prints one with",
        "all of them. A variable overrides the file, an option overrides both. Times end in d, h,",
        "m, s or ms; sizes in B, KiB, MiB or GiB.",
    ]
    hints = get_type_hints(Settings, include_extras=True)
    top = {
        name: hint
        for name, hint in hints.items()
        if not is_section(hint) and name not in IN_SECTIONS
    }
    lines += _table("", top, Settings())
    for section, kind in hints.items():
        if not is_section(kind):
            continue
        lines += ["", f"## [{section}]", "", " ".join((kind.__doc__ or "").split())]
        of_section = get_type_hints(kind, include_extras=True)
        lines += _table(f"{section}.", of_section, getattr(Settings(), section))
    for part, kind in NAMED.items():
        lines += [
            "",
            f"## [{part}.{PLACEHOLDERS[part]}]",
            "",
            " ".join((kind.__doc__ or "").split()),
        ]
        names = {field.name: field.encode_name for field in msgspec.structs.fields(kind)}
        of_app = get_type_hints(kind, include_extras=True)
        lines += _table("", of_app, SPECIMENS[part], names=names, variables=False)
    for part, kind in LISTED.items():
        lines += ["", f"## [[{part}]]", "", " ".join((kind.__doc__ or "").split())]
        hints = get_type_hints(kind, include_extras=True)
        lines += _table("", hints, EXAMPLES[part], variables=False)
    return "\n".join(lines) + "\n"


def _table(
    prefix: str,
    hints: dict[str, Any],
    values: Any,
    *,
    names: dict[str, str] | None = None,
    variables: bool = True,
) -> list[str]:
    lines = ["", "| setting | default | what it is for |", "|---|---|---|"]
    for name, hint in hints.items():
        words = allowed_words(hint)
        value = getattr(values, name)
        about = (described(hint).description or "").rstrip(".").replace("|", "\\|") + "."
        if words:
            several = "Some" if isinstance(value, tuple) else "One"
            about += f" {several} of {', '.join(f'`{word}`' for word in words)}."
        if variables:
            about += f" `{variable(prefix + name)}`"
        shown = (names or {}).get(name, prefix + name)
        default = "none" if value is None else f"`{toml_value(value)}`"
        lines.append(f"| `{shown}` | {default} | {about} |")
    return lines


def main() -> None:
    DIRECTORY.mkdir(exist_ok=True)
    for name, text in written().items():
        (DIRECTORY / name).write_text(text)


if __name__ == "__main__":
    main()
