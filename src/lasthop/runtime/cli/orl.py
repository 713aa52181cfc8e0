"""`lasthop orl`: generate Python modules from descriptions in the Object Representation
Language."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lasthop.runtime.cli.options import Json, described, new_commands
from lasthop.runtime.cli.output import say, say_json
from lasthop.runtime.failure import Failure
from lasthop_xml.orl.errors import MalformedOrl
from lasthop_xml.orl.generator import codec_name, generate as generated
from lasthop_xml.orl.model import Description
from lasthop_xml.orl.naming import snake_case
from lasthop_xml.orl.parser import MAX_SIZE, parse

commands = new_commands("Generate Python classes from descriptions of their XML form.")


@commands.callback()
def _group() -> None:
    """Keep `generate` a subcommand: typer merges a group that has a single command."""


@commands.command(
    help=described(
        "Write a Python module with the classes of a description, their encoder and their decoder.",
        "lasthop orl generate people.orl -o people.py",
        "lasthop orl generate people.orl -o src/    # in its codec-package",
    )
)
def generate(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="The description, in the Object Representation Language.",
            dir_okay=False,
        ),
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="The file or folder to write to. [standard output]",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    with file.open("rb") as opened:
        data = opened.read(4 * MAX_SIZE + 1)
    try:
        description = parse(data.decode())
        module = generated(description, source=file.name)
    except UnicodeDecodeError as error:
        raise Failure(f"{file} is not UTF-8 (offset {error.start})") from None
    except MalformedOrl as error:
        place = f"{error.fields.pop('line')}:{error.fields.pop('column')}"
        raise Failure(f"{file}:{place}: {error}") from None
    if output is not None:
        output = _place(output, description, file.name)
        output.parent.mkdir(parents=True, exist_ok=True)
        output.write_text(module, encoding="utf-8")
    if as_json:
        types = [str(each.name) for each in description.structures]
        say_json(
            {"output": None if output is None else str(output), "types": types, "text": module}
        )
    elif output is None:
        print(module, end="")
    else:
        say(f"{output}: {len(description.structures)} types")


def _place(output: Path, description: Description, source: str) -> Path:
    """Return the file to write: in a folder, the path of the description's package below it."""
    if not output.is_dir():
        return output
    packages = (description.codec_package or "").split(".")
    return output.joinpath(*packages, f"{snake_case(codec_name(description, source))}.py")
