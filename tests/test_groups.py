"""Tests that share something expensive run on one worker, whatever pytest and xdist do."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.groups import GROUPS, group_of

ROOT = Path(__file__).parent.parent

CONFTEST = """
import pytest
from tests import groups

groups.GROUPS = {"shared/": "shared"}

def pytest_xdist_make_scheduler(config, log):
    return groups.GroupScheduling(config, log)

@pytest.fixture(scope="session")
def expensive(tmp_path_factory):
    groups.claim_group("shared", tmp_path_factory)
"""

SCATTERED = CONFTEST.replace("return groups.GroupScheduling(config, log)", "return None")

TESTS = """
import pytest

@pytest.mark.parametrize("number", range(8))
def test_it(number, expensive):
    pass
"""


def run(folder: Path, conftest: str) -> subprocess.CompletedProcess[str]:
    """Run a suite of two files that share something, on two workers."""
    (folder / "shared").mkdir()
    (folder / "conftest.py").write_text(conftest)
    (folder / "pytest.ini").write_text("[pytest]")
    for name in ("test_one.py", "test_two.py"):
        (folder / "shared" / name).write_text(TESTS)
    command = [sys.executable, "-m", "pytest", "-n", "2", "-p", "no:cacheprovider"]
    options = ["--import-mode=importlib", "--rootdir", str(folder), str(folder)]
    environment = {"PYTHONPATH": str(ROOT), "PATH": ""}
    return subprocess.run(
        [*command, *options],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_group_stays_on_one_worker(tmp_path: Path) -> None:
    done = run(tmp_path, CONFTEST)
    assert done.returncode == 0, done.stdout


def test_a_group_that_is_spread_is_noticed(tmp_path: Path) -> None:
    done = run(tmp_path, SCATTERED)
    assert "the group 'shared' is spread over several workers" in done.stdout


@pytest.mark.parametrize("path", GROUPS)
def test_every_group_has_tests(path: str) -> None:
    assert (ROOT / path).exists()
    assert group_of(f"{path}::test_something") == GROUPS[path]


def test_other_tests_run_anywhere() -> None:
    assert group_of("tests/wire/hop/test_frames.py::test_round_trip[tests/pipeline/]") is None
