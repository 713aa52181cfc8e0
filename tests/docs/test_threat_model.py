"""The threat model names a test or a module for every line, and they exist.

About `THREAT-MODEL.md`.
"""

from __future__ import annotations

import re

import pytest

from tests.docs.blocks import ROOT

PAGE = (ROOT / "THREAT-MODEL.md").read_text()

ATTACKERS = (
    "A stranger on the network",
    "On the device's link",
    "A publisher",
    "A device",
    "Another app",
    "A local user",
    "Somebody with the backup",
    "A hostile target of result notifications",
    "A hostile XML body",
    "A surrogate's code",
    "A plug-in",
    "A reverse proxy",
)

LINES = [
    line
    for line in PAGE.splitlines()
    if line.startswith("| ") and not line.startswith("| can or cannot")
]


def sections() -> dict[str, str]:
    found = re.split(r"^## (.+)$", PAGE, flags=re.MULTILINE)[1:]
    return dict(zip(found[::2], found[1::2], strict=True))


def test_every_attacker_has_a_place() -> None:
    for attacker in ATTACKERS:
        assert "\n| " in sections()[attacker], attacker
    assert {"What is trusted", "What is not defended"} <= sections().keys()


@pytest.mark.parametrize("line", LINES, ids=lambda line: line[2:60])
def test_every_line_is_held_by_something_that_exists(line: str) -> None:
    claim, held = [cell.strip() for cell in line.strip("|").split(" | ")]
    assert claim
    names = re.findall(r"`([^`]+)`", held)
    assert names, "nothing holds it"
    assert re.sub(r"`[^`]+`", "", held).strip(", ") == ""
    for name in names:
        path, _, test = name.partition("::")
        assert (ROOT / path).exists(), f"there is no {path}"
        if test:
            assert re.search(rf"def {test}\(", (ROOT / path).read_text()), f"there is no {name}"


def test_other_paths_exist_as_well() -> None:
    prose = "\n".join(line for line in PAGE.splitlines() if not line.startswith("|"))
    for path in re.findall(r"`((?:tests|src|docs|requirements|packages)/[^`]*)`", prose):
        assert (ROOT / path).exists(), path
