"""Every recording of every version, to be read and played again."""

from __future__ import annotations

import pytest

from tests.compat.files import HERE, VERSIONS
from tests.compat.playing import Recording
from tests.compat.scenarios import SCENARIOS

RECORDINGS = [
    Recording(HERE / version, name)
    for version in VERSIONS
    for name in SCENARIOS
    if (HERE / version / "stores" / f"{name}.db.gz").exists()
]


@pytest.fixture(params=RECORDINGS, ids=str)
def recording(request: pytest.FixtureRequest) -> Recording:
    found: Recording = request.param
    return found
