"""The recipes of `CONTRIBUTING.md` work as they stand there: all of them are applied to one copy of
the sources, which is then asked for what they add."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.blocks import ROOT
from tests.docs.recipes import PAGE, apply, recipes

FEWEST = {
    "A forwarding policy": 2,
    "A channel": 6,
    "A field of a message": 10,
    "A feature of the core": 3,
    "A REST operation, with its command": 2,
    "An error": 1,
    "A setting": 1,
}
"""Files of `src` and `sdk` that each recipe touches. More of them would be a step back."""

TRIED = {
    "A forwarding policy": """
from lasthop.decision.policies import POLICIES, Tuning
assert [POLICIES["single"](Tuning()).room(on_device=n) for n in (0, 1)] == [1, 0]
""",
    "A channel": """
from lasthop.runtime.interconnects import Sockets
from lasthop.runtime.settings import load
from lasthop.transport.address import parse
from lasthop.transport.schemes import SCHEMES
address = parse("mptcp://127.0.0.1")
assert (address.scheme, address.port) == ("mptcp", SCHEMES["mptcp"].port)
assert SCHEMES["mptcp"].dial() and SCHEMES["mptcp"].listener()
assert load(options={"mptcp.port": "7302"}).mptcp.port == 7302
assert "mptcp" in Sockets.__slots__
""",
    "A field of a message": """
from lasthop.core import envelope
from lasthop.core.contacts import inbound
from lasthop.core.publishing.submission import Submission, message_of
from lasthop.device import compose
from lasthop.message import Target, TargetKind
from lasthop.wire.hop.fields import HEADERS
asked = Submission(Target(TargetKind.DEVICE, "phone"), language="fi")
assert message_of(asked, key=1, salt=1, app="a", source="s", accepted_at=1).language == "fi"
sent = compose.message("device:phone", "moi", language="fi").headers
assert HEADERS.read(HEADERS.write(sent))["language"] == "fi"
assert envelope.COPIED["language"] == inbound.FROM_DEVICES["language"] == "language"
""",
    "A feature of the core": """
from lasthop.core.gateway import FEATURES
from lasthop.core.publishing.submission import Submission
from lasthop.core.titles.feature import TitleFeature
from lasthop.errors import InvalidRequest
from lasthop.message import Target, TargetKind
assert TitleFeature in FEATURES
try:
    TitleFeature(None).check(Submission(Target(TargetKind.DEVICE, "phone"), title="long" * 99))
except InvalidRequest as error:
    assert str(error) == "the title is too long (field='title', longest=200)"
else:
    raise AssertionError
""",
    "A REST operation, with its command": """
from lasthop.access.rest.openapi import document
from lasthop.access.rest.operations import OPERATIONS
from lasthop.runtime.cli.resource import Resource
owner = document(OPERATIONS, "1")["paths"]["/v1/devices/{name}/owner"]["get"]
assert owner["summary"] == "Show whose device it is"
assert "owner" in Resource("device", "", {}).list_commands(None)
""",
    "An error": """
from lasthop import errors
assert (errors.Gone.http_status, errors.Gone.pap_code) == (410, errors.Rejected.pap_code)
assert "Gone" in errors.__doc__
""",
    "A setting": """
from lasthop.runtime.settings import load
settings = load(environment={"LASTHOP_LIMITS_UPLOADS": "5"})
assert settings.limits.core(settings.ota).uploads == 5
""",
}
"""What is true of the sources with each recipe, and of no others."""


def touched(name: str) -> set[str]:
    """The files that a recipe changes by hand."""
    return {block.words[0] for block in recipes()[name]}


def test_every_recipe_is_tried() -> None:
    assert set(recipes()) == set(FEWEST) == set(TRIED)


@pytest.mark.parametrize("name", FEWEST)
def test_a_recipe_touches_few_files(name: str) -> None:
    assert (
        len([path for path in touched(name) if path.startswith(("src/", "sdk/"))]) == FEWEST[name]
    )


def test_every_file_that_the_page_names_is_there() -> None:
    new = set().union(*map(touched, FEWEST))
    text = PAGE.read_text()
    paths = re.findall(r"(?<!/)\b((?:src|tests|docs|scripts|packages)/[\w./-]*\w)", text)
    assert {p for p in paths if p not in new and not (ROOT / p).exists()} == set()


def test_the_recipes_do_what_they_say(tmp_path: Path) -> None:
    """The copies keep their times, so that what was compiled need not be compiled again."""
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("static", "*.so"))
    for path in set().union(*map(touched, FEWEST)):
        if (ROOT / path).exists() and not path.startswith("src/"):
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / path, tmp_path / path)
    for parts in recipes().values():
        for part in parts:
            apply(part, tmp_path)
    setup = f"import sys; sys.path[:0] = [{str(tmp_path / 'src')!r}]\n"
    done = subprocess.run(
        [sys.executable, "-c", setup + "".join(TRIED.values())],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
