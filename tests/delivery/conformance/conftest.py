"""What all tests of interconnects share."""

from __future__ import annotations

import pytest

from tests.transport.certificates import Authority


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """Signs the gateway's certificate."""
    return Authority(tmp_path_factory.mktemp("authority"))
