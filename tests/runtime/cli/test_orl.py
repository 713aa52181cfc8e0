"""`lasthop orl generate`: a module where it was asked for, or one line that says what is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.runtime.conftest import Lasthop

PEOPLE = "packages/xml/tests/orl/people.orl"


def test_a_module_is_written_to_a_file(lasthop: Lasthop, tmp_path: Path) -> None:
    output = tmp_path / "people.py"
    assert lasthop("orl", "generate", PEOPLE, "-o", str(output)).out == f"{output}: 2 types\n"
    compile(output.read_text(), "people.py", "exec")
    assert lasthop("orl", "generate", PEOPLE).out == output.read_text()
    said = lasthop("orl", "generate", PEOPLE, "--json").json
    assert said["types"] == ["{urn:example:people}name", "{urn:example:people}person"]
    assert said["text"] == output.read_text()
    assert said["output"] is None


def test_a_folder_gets_the_module_at_its_place(lasthop: Lasthop, tmp_path: Path) -> None:
    source = tmp_path / "x.orl"
    source.write_text("codec-package my.codecs codec-name OfPeople type a { string b }")
    lasthop("orl", "generate", str(source), "-o", str(tmp_path))
    assert "class OfPeopleEncoder:" in (tmp_path / "my/codecs/of_people.py").read_text()


@pytest.mark.parametrize(
    "data, message",
    [
        (
            b"type a {\n  strin b\n}",
            "{file}:2:3: this type is neither primitive nor defined in this file (type='strin')",
        ),
        (b"type a { string \xff }", "{file} is not UTF-8 (offset 16)"),
    ],
)
def test_a_mistake_is_said_in_one_line(
    lasthop: Lasthop, tmp_path: Path, data: bytes, message: str
) -> None:
    source, output = tmp_path / "x.orl", tmp_path / "x.py"
    source.write_bytes(data)
    said = lasthop("orl", "generate", str(source), "-o", str(output), fails=True).error
    assert said == f"lasthop: {message.format(file=source)}"
    assert not output.exists()
