"""Fixtures for the whole suite: asynchronous tests run on asyncio, with uvloop where it exists."""

import gc
from importlib.util import find_spec

import pytest
from hypothesis import HealthCheck, settings

from tests.groups import GroupScheduling

# How long a draw or an example takes says how busy the machine is, not whether the code is right.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")

USE_UVLOOP = find_spec("uvloop") is not None


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
