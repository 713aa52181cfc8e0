"""What runs with how much installed: a device with next to nothing, and a line for the rest."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from lasthop.extras import EXTRAS, install_line

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

BARE = """
import sys

ALLOWED = {"httptools", "msgspec", "typing_extensions", "websockets", "cython_runtime"}


class Missing:
    def find_spec(self, name, path=None, target=None):
        library = name.partition(".")[0]
        ours = name == "lasthop" or name.startswith("lasthop.")
        known = library in sys.stdlib_module_names or library in ALLOWED
        if not (ours or known or library.startswith("_")):
            raise ModuleNotFoundError(f"No module named {library!r}", name=library)


sys.meta_path.insert(0, Missing())
"""
"""Python as it is after `pip install lasthop` without an extra."""


def bare(code: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", BARE + code]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_a_device_needs_no_extra() -> None:
    modules = [
        ".".join(path.relative_to(ROOT / "src").with_suffix("").parts)
        for path in (ROOT / "src/lasthop/device").rglob("*.py")
        if path.name not in ("__init__.py", "xml.py", "xml_message.py")
    ]
    assert len(modules) > 50
    done = bare("\n".join(f"import {module}" for module in modules))
    assert (done.returncode, done.stderr) == (0, "")


def test_without_the_gateways_libraries_the_command_says_how_to_get_them() -> None:
    done = bare("from lasthop.__main__ import main\nmain()")
    assert done.returncode == 1
    assert done.stderr == (
        "lasthop: the command line needs typer: pip install 'lasthop[gateway]'\n"
    )


@pytest.mark.parametrize(
    "library, line",
    [
        ("starlette.routing", "pip install 'lasthop[gateway]'"),
        ("pyspark.sql", "pip install 'lasthop[pipeline]'"),
        ("lasthop_xml.xas", "pip install 'lasthop[xml]'"),
        (None, "pip install 'lasthop[gateway]'"),
    ],
)
def test_a_missing_library_is_found_in_its_extra(library: str | None, line: str) -> None:
    assert install_line(ModuleNotFoundError("gone", name=library)) == line


def test_every_extra_that_is_named_exists_and_has_the_library() -> None:
    extras = PROJECT["optional-dependencies"]
    names = {"google": "opentelemetry", "jwt": "pyjwt", "lasthop_xml": "lasthop-xml"}
    for library, extra in EXTRAS.items():
        wanted = names.get(library, library)
        assert any(line.startswith(wanted) for line in extras[extra]), library


def test_a_command_that_misses_a_library_says_which_and_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from lasthop.runtime import cli  # noqa: PLC0415

    def missing(name: str) -> None:
        raise ModuleNotFoundError("No module named 'pyspark'", name="pyspark")

    monkeypatch.setattr(cli, "import_module", missing)
    with pytest.raises(SystemExit) as ended:
        cli.main(["pipeline", "run"])
    assert ended.value.code == 1
    line = "lasthop: this command needs pyspark: pip install 'lasthop[pipeline]'\n"
    assert capsys.readouterr().err == line


def test_a_module_of_our_own_that_is_missing_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    from lasthop.runtime import cli  # noqa: PLC0415

    def missing(name: str) -> None:
        raise ModuleNotFoundError("No module named 'lasthop.core'", name="lasthop.core")

    monkeypatch.setattr(cli, "import_module", missing)
    with pytest.raises(ModuleNotFoundError):
        cli.main(["status"])
