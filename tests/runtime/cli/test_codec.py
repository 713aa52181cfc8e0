"""`lasthop codec` on files, as a user types it, and everything that its page shows."""

from __future__ import annotations

import io
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from lasthop.runtime.cli import codec
from lasthop.runtime.formats import FORMATS
from tests.runtime.conftest import Lasthop

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs/how-to/codec.md").read_text()

SI = "<si><indication>Hi</indication></si>"
SIC = "03056a004546034869000101"


def blocks_shown() -> list[tuple[str, str]]:
    """The blocks of the page: what stands behind the fence, and what is inside."""
    return re.findall(r"^```(.+?)\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def shell(command: str, folder: Path) -> tuple[int, str]:
    """The status and the output of a line that needs a shell."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["sh", "-c", command],
        cwd=folder,
        env={**os.environ, "PATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=60,
        check=False,
    )
    return done.returncode, done.stdout


def test_the_page_shows_what_happens(
    lasthop: Lasthop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    commands = 0
    for head, content in blocks_shown():
        if (name := re.search(r"file=(\S+)", head)) is not None:
            (tmp_path / name.group(1)).write_text(content)
            continue
        assert head == "console"
        for shown in content.removeprefix("$ ").split("\n$ "):
            command, _, expected = shown.partition("\n")
            fails = expected.startswith("lasthop: ")
            if command.startswith("lasthop "):
                done = lasthop(*shlex.split(command)[1:], fails=fails)
                code, said = done.code, done.out + done.err
            else:
                code, said = shell(command, tmp_path)
            assert said.rstrip("\n") == expected.rstrip("\n"), command
            assert (code == 0) is not fails
            commands += 1
    assert commands > 10


def test_a_document_goes_through_files_both_ways(lasthop: Lasthop, tmp_path: Path) -> None:
    text, octets, back = (str(tmp_path / name) for name in ("a.xml", "a.sic", "b.xml"))
    Path(text).write_text(SI)
    lasthop("codec", "encode", "--format", "wbxml", text, "-o", octets)
    assert Path(octets).read_bytes().hex() == SIC
    assert lasthop("codec", "decode", "--format", "wbxml", octets, "-o", back).out == (
        f"{back}: {Path(back).stat().st_size} octets (si)\n"
    )
    assert Path(back).read_text().endswith(f"{SI}\n")


def test_machines_get_the_octets_and_what_they_are(lasthop: Lasthop, tmp_path: Path) -> None:
    text = tmp_path / "a.xml"
    text.write_text(SI)
    said = lasthop("codec", "encode", "--format", "wbxml", str(text), "--json").json
    assert said == {"format": "wbxml", "type": "si", "size": 12, "octets": SIC}


def test_the_version_and_the_type_can_be_chosen(lasthop: Lasthop, tmp_path: Path) -> None:
    text = tmp_path / "a.xml"
    text.write_text("<news/>")
    arguments = ("codec", "encode", "--format", "wbxml", str(text), "--hex")
    assert "type is not known" in lasthop(*arguments, fails=True).error
    assert "root element" in lasthop(*arguments, "--type", "si", fails=True).error
    said = lasthop(*arguments, "--type", "si", "--version", "1.2", "--lenient").out
    assert said == "02056a056e6577730004" + "00\n"


def test_a_fault_of_a_document_is_told_and_its_text_shown(lasthop: Lasthop, tmp_path: Path) -> None:
    octets = tmp_path / "a.sic"
    octets.write_bytes(bytes.fromhex("03056a0005"))
    said = lasthop("codec", "decode", "--format", "wbxml", str(octets), "--json").json
    assert "wrong child elements" in said["fault"]
    assert said["text"].endswith("<si/>\n")


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_a_push_goes_through_files_both_ways(
    lasthop: Lasthop, tmp_path: Path, newline: str
) -> None:
    text, octets, back = (tmp_path / name for name in ("a.txt", "a.wsp", "b.txt"))
    lines = ["@transaction: 7", "@confirmed", "Content-Type: text/plain", "Push-Flag: 1", "", ""]
    text.write_bytes(newline.join(lines).encode() + b"\0\xff\n\n")
    arguments = ("--format", "wsp", "--type", "unit")
    lasthop("codec", "encode", *arguments, str(text), "-o", str(octets))
    assert octets.read_bytes().hex() == "07070383b481" + "00ff0a0a"
    lasthop("codec", "decode", *arguments, str(octets), "-o", str(back))
    assert back.read_bytes() == "\n".join(lines).encode() + b"\0\xff\n\n"


def test_standard_input_is_read(
    lasthop: Lasthop, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(SIC.encode())))
    said = lasthop("codec", "decode", "--format", "wbxml", "-", "--hex", "--json")
    assert json.loads(said.out)["type"] == "si"


def test_octets_are_not_written_to_a_terminal(
    lasthop: Lasthop, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    text = tmp_path / "a.xml"
    text.write_text(SI)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    assert (
        "terminal" in lasthop("codec", "encode", "--format", "wbxml", str(text), fails=True).error
    )


@pytest.mark.parametrize(
    "arguments,content,message,code",
    [
        (["encode", "--format", "x"], b"", "no format 'x'; there are", 2),
        (["encode", "--format", "wbxml", "--type", "x"], b"", "no type of wbxml 'x'", 2),
        (["encode", "--format", "wsp", "--version", "9"], b"", "no version of wsp '9'", 2),
        (["encode", "--format", "wbxml"], b"<si", "not well-formed", 1),
        (["encode", "--format", "wsp"], b"nonsense", "not a header", 1),
        (["encode", "--format", "wsp"], b"\xff: x", "not UTF-8", 1),
        (["encode", "--format", "wsp", "--type", "push"], b"A: b\n\n", "needs a Content-Type", 1),
        (["encode", "--format", "wsp", "--type", "unit"], b"@transaction: 256", "below 256", 1),
        (["decode", "--format", "wbxml"], b"", "ends before the version", 1),
        (["decode", "--format", "wbxml", "--hex"], b"zz", "not hexadecimal", 1),
        (["decode", "--format", "wsp", "--type", "push"], b"\x05\x01", "a Disconnect", 1),
    ],
)
def test_what_cannot_be_done_is_said_in_one_line(
    lasthop: Lasthop, tmp_path: Path, arguments: list[str], content: bytes, message: str, code: int
) -> None:
    file = tmp_path / "input"
    file.write_bytes(content)
    result = lasthop("codec", *arguments, str(file), fails=True)
    assert message in result.error
    assert result.code == code


def test_a_file_that_is_not_there_or_is_too_large_is_refused(
    lasthop: Lasthop, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "input"
    arguments = ("codec", "decode", "--format", "wsp", str(file))
    assert "No such file" in lasthop(*arguments, fails=True).error
    file.write_bytes(bytes(10))
    monkeypatch.setattr(codec, "MAX_INPUT", 9)
    assert "more than 9 octets" in lasthop(*arguments, fails=True).error


def test_every_format_says_what_it_is_for() -> None:
    for form in FORMATS.values():
        assert form.about
        assert form.types
        assert form.versions
