"""`lasthop codec`: convert documents from the text form of a wire format to its octets, and
back."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, BinaryIO, TypeAlias

import typer

from lasthop.runtime.cli.options import Json, described, new_commands
from lasthop.runtime.cli.output import say, say_json
from lasthop.runtime.failure import Failure
from lasthop.runtime.formats import FORMATS
from lasthop.runtime.formats.format import TextFormat, WantedForm
from lasthop.runtime.schemas import load_schema
from lasthop_xml.relaxng.schema import Schema

commands = new_commands("Convert documents between a text form and a binary wire format.")

MAX_INPUT = 16 * 1024 * 1024
"""The largest input in octets: more than any format needs, and small enough to hold several copies
in memory."""

STANDARD = "-"

File: TypeAlias = Annotated[
    str, typer.Argument(metavar="FILE", help="The file to convert; - reads standard input.")
]
Name: TypeAlias = Annotated[
    str,
    typer.Option(
        "--format",
        metavar="NAME",
        help="; ".join(f"{name}: {each.about}" for name, each in FORMATS.items()) + ".",
    ),
]
Output: TypeAlias = Annotated[
    str,
    typer.Option("--output", "-o", metavar="FILE", help="The file to write; - is standard output."),
]
Type: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--type",
        help="The kind of document, where the document does not name it: "
        + "; ".join(f"{name}: {', '.join(each.types)}" for name, each in FORMATS.items())
        + ".",
    ),
]
State: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--state",
        metavar="FILE",
        help="File with the state of this end of a session; created if missing, updated by each"
        " run. For " + ", ".join(name for name, each in FORMATS.items() if each.stateful) + ".",
        dir_okay=False,
    ),
]
SchemaFile: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--schema",
        metavar="FILE",
        help="A schema of the documents in RELAX NG compact syntax; both ends need the same"
        " one. For " + ", ".join(name for name, each in FORMATS.items() if each.uses_schema) + ".",
        exists=True,
        dir_okay=False,
    ),
]
ProfileFile: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--profile",
        metavar="FILE",
        help="A profile written by `lasthop codec train`; both ends need the same one. For "
        + ", ".join(name for name, each in FORMATS.items() if each.train)
        + ".",
        exists=True,
        dir_okay=False,
    ),
]
Level: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--level",
        help="How much effort to spend on compression: "
        + "; ".join(
            f"{name}: {', '.join(each.levels)}" for name, each in FORMATS.items() if each.levels
        )
        + ".",
    ),
]
Hex: TypeAlias = Annotated[
    bool, typer.Option("--hex", help="Read or write octets as hexadecimal digits.")
]


@commands.command(
    help=described(
        "Encode a text document as octets.",
        "lasthop codec encode --format wbxml news.xml -o news.sic",
        "echo 'X-Wap-Application-Id: 2' | lasthop codec encode --format wsp - --hex",
        "lasthop codec encode --format xebu --schema event.rnc --state sender event.xml -o out",
        "lasthop codec encode --format weft --level max --state sender event.xml -o out",
    )
)
def encode(
    file: File,
    name: Name,
    output: Output = STANDARD,
    kind: Type = None,
    version: Annotated[
        str | None,
        typer.Option(
            "--version",
            help="The version of the format: "
            + "; ".join(f"{name}: {', '.join(each.versions)}" for name, each in FORMATS.items())
            + ".",
        ),
    ] = None,
    lenient: Annotated[
        bool, typer.Option("--lenient", help="Also accept what the document type forbids.")
    ] = False,
    state: State = None,
    schema: SchemaFile = None,
    profile: ProfileFile = None,
    level: Level = None,
    as_hex: Hex = False,
    as_json: Json = False,
) -> None:
    wanted = WantedForm(
        kind,
        version,
        lenient,
        _remembered(name, state),
        _schema(name, schema),
        _profile(name, profile),
        level,
    )
    encoded = _chosen(name, wanted).encode(_read(file), wanted)
    _remember(state, encoded.state)
    octets = encoded.octets
    if not as_json or output != STANDARD:
        _write(output, octets.hex().encode() + b"\n" if as_hex else octets, binary=not as_hex)
    if as_json:
        say_json(
            {"format": name, "type": encoded.type, "size": len(octets), "octets": octets.hex()}
        )
    elif output != STANDARD:
        say(f"{output}: {len(octets)} octets ({encoded.type})")


@commands.command(
    help=described(
        "Decode octets to a text document.",
        "lasthop codec decode --format wbxml news.sic",
        "lasthop codec decode --format wsp --type unit datagram.bin --json",
    )
)
def decode(
    file: File,
    name: Name,
    output: Output = STANDARD,
    kind: Type = None,
    state: State = None,
    schema: SchemaFile = None,
    profile: ProfileFile = None,
    as_hex: Hex = False,
    as_json: Json = False,
) -> None:
    wanted = WantedForm(
        kind,
        state=_remembered(name, state),
        schema=_schema(name, schema),
        profile=_profile(name, profile),
    )
    form = _chosen(name, wanted)
    octets = _from_hex(_read(file)) if as_hex else _read(file)
    decoded = form.decode(octets, wanted)
    _remember(state, decoded.state)
    if not as_json or output != STANDARD:
        _write(output, decoded.text)
    if as_json:
        say_json({"format": name, "type": decoded.type, "size": len(octets), **decoded.facts})
    elif output != STANDARD:
        say(f"{output}: {len(decoded.text)} octets ({decoded.type})")


@commands.command(
    help=described(
        "Learn from sample documents a profile that both ends of a session know beforehand.",
        "lasthop codec train --format weft samples/*.xml -o notifications.profile",
    )
)
def train(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...", help="Sample documents to learn from.", exists=True, dir_okay=False
        ),
    ],
    name: Name,
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="FILE", help="The file for the profile.")
    ],
    as_json: Json = False,
) -> None:
    form = _chosen(name, WantedForm())
    if form.train is None:
        raise Failure(f"{name} cannot be trained", exit_code=2)
    data = form.train([_read(str(file)) for file in files])
    _write(output, data, binary=True)
    if as_json:
        say_json({"format": name, "samples": len(files), "size": len(data)})
    elif output != STANDARD:
        say(f"{output}: {len(data)} octets from {len(files)} samples")


def _chosen(name: str, wanted: WantedForm) -> TextFormat:
    form = FORMATS.get(name)
    if form is None:
        raise _no_such("format", name, tuple(FORMATS))
    if wanted.level is not None and wanted.level not in form.levels:
        if not form.levels:
            raise Failure(f"{name} has no levels; leave out --level", exit_code=2)
        raise _no_such(f"level of {name}", wanted.level, form.levels)
    if wanted.type is not None and wanted.type not in form.types:
        raise _no_such(f"type of {name}", wanted.type, form.types)
    if wanted.version is not None and wanted.version not in form.versions:
        raise _no_such(f"version of {name}", wanted.version, form.versions)
    return form


def _remembered(name: str, state: Path | None) -> bytes | None:
    form = FORMATS.get(name)
    if state is not None and form is not None and not form.stateful:
        raise Failure(f"{name} keeps no state; leave out --state", exit_code=2)
    if state is None or not state.exists():
        return None
    with state.open("rb") as source:
        return _bounded(source, str(state))


def _schema(name: str, file: Path | None) -> Schema | None:
    form = FORMATS.get(name)
    if file is not None and form is not None and not form.uses_schema:
        raise Failure(f"{name} uses no schema; leave out --schema", exit_code=2)
    return None if file is None else load_schema(file)


def _profile(name: str, file: Path | None) -> bytes | None:
    form = FORMATS.get(name)
    if file is not None and form is not None and form.train is None:
        raise Failure(f"{name} cannot be trained; leave out --profile", exit_code=2)
    return None if file is None else _read(str(file))


def _remember(state: Path | None, data: bytes | None) -> None:
    if state is not None and data is not None:
        # Written beside and renamed: a session could not continue with a half-written state.
        scratch = state.with_name(f"{state.name}.new")
        scratch.write_bytes(data)
        scratch.replace(state)


def _no_such(what: str, name: str, known: tuple[str, ...]) -> Failure:
    return Failure(f"no {what} {name!r}; there are {', '.join(known)}", exit_code=2)


def _read(file: str) -> bytes:
    if file == STANDARD:
        return _bounded(sys.stdin.buffer, "standard input")
    with Path(file).open("rb") as source:
        return _bounded(source, file)


def _bounded(source: BinaryIO, name: str) -> bytes:
    data = source.read(MAX_INPUT + 1)
    if len(data) > MAX_INPUT:
        raise Failure(f"{name} has more than {MAX_INPUT} octets")
    return data


def _from_hex(text: bytes) -> bytes:
    try:
        return bytes.fromhex(text.decode("ascii"))
    except ValueError:
        raise Failure("the input is not hexadecimal digits") from None


def _write(output: str, data: bytes, *, binary: bool = False) -> None:
    if output != STANDARD:
        Path(output).write_bytes(data)
        return
    if binary and sys.stdout.isatty():
        raise Failure("binary output would garble the terminal; use -o FILE or --hex")
    sys.stdout.flush()
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()
