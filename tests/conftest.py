"""Fixtures for the whole suite: asynchronous tests run on asyncio, with uvloop where it exists."""

from importlib.util import find_spec

import pytest

USE_UVLOOP = find_spec("uvloop") is not None


@pytest.fixture(scope="session")
def anyio_backend() -> tuple[str, dict[str, bool]]:
    return "asyncio", {"use_uvloop": USE_UVLOOP}
