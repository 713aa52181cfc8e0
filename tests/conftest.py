"""Fixtures for the whole suite: asynchronous tests run on asyncio, with uvloop where it exists."""

import gc
import os
from importlib.util import find_spec

import pytest
from hypothesis import HealthCheck, settings

from tests.groups import GroupScheduling
from tests.quick import NIGHTLY, left_out

# How long a draw or an example takes says how busy the machine is, not whether the code is right.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")
# For people who wait (`make quick`): what ten examples do not find, `make test` will.
settings.register_profile("quick", settings.get_profile("patient"), max_examples=10)

USE_UVLOOP = find_spec("uvloop") is not None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what `make quick` leaves out, and skip what only `make nightly` runs."""
    for item in items:
        if item.nodeid in NIGHTLY:
            item.add_marker(pytest.mark.nightly)
        if item.get_closest_marker("nightly") and "NIGHTLY" not in os.environ:
            item.add_marker(pytest.mark.skip(reason="takes minutes: make nightly"))
        if left_out(item):
            item.add_marker(pytest.mark.full)


def pytest_collection_finish() -> None:
    """Thousands of collected tests are no garbage: the collector need not look at them again."""
    gc.collect()
    gc.freeze()


def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> GroupScheduling | None:
    """Keep the tests of a group on one worker of a parallel run."""
    return GroupScheduling(config, log) if config.getvalue("dist") == "loadgroup" else None


@pytest.fixture(scope="session")
def anyio_backend() -> tuple[str, dict[str, bool]]:
    return "asyncio", {"use_uvloop": USE_UVLOOP}
