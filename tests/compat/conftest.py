"""Every recording of every version, to be read and played again."""

from __future__ import annotations

import pytest

from tests.compat.playing import RECORDINGS, Recording


@pytest.fixture(params=RECORDINGS, ids=str)
def recording(request: pytest.FixtureRequest) -> Recording:
    found: Recording = request.param
    return found
