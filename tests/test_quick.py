"""`make quick` runs most tests, and none that makes people wait."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.quick import NIGHTLY, SLOW, starts
from tests.runtime.processes import GatewayProcess, eventually

ROOT = Path(__file__).parent.parent


def calls_it() -> None:
    subprocess.run(["true"], check=True)


def calls_a_helper() -> None:
    def inside() -> None:
        calls_it()

    inside()


def makes_a_gateway() -> None:
    with GatewayProcess(Path("data")):
        pass


def only_says_so() -> str:
    """It runs no subprocess."""
    return f"subprocess {os.sep}"


def waits() -> None:
    eventually(lambda: True, "nothing is started")


@pytest.mark.parametrize("test", [calls_it, calls_a_helper, makes_a_gateway, GatewayProcess])
def test_what_starts_a_process_is_found_by_its_code(test: object) -> None:
    assert starts(test)


@pytest.mark.parametrize("test", [only_says_so, waits, None, pytest.fail])
def test_what_starts_none_is_not(test: object) -> None:
    assert not starts(test)


def test_most_tests_are_quick_and_none_that_has_a_gateway(request: pytest.FixtureRequest) -> None:
    items = request.session.items
    if len(items) < 9_000:
        pytest.skip("this is about a run of everything")
    left_out = [item for item in items if item.get_closest_marker("full")]
    assert len(left_out) < 0.2 * len(items)
    assert not [item for item in items if "up" in item.fixturenames and item not in left_out]  # type: ignore[attr-defined]


@pytest.mark.parametrize("line", sorted(SLOW | NIGHTLY))
def test_what_is_listed_as_slow_exists(line: str) -> None:
    file, _, name = line.partition("::")
    test, _, parameter = name.partition("::")[0].partition("[")
    text = (ROOT / file).read_text()
    assert test in text
    assert parameter.rstrip("]") in text
