"""What all tests of interconnects share."""

from __future__ import annotations

import pytest

from lasthop.transport import dial
from tests.transport.certificates import Authority


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """Signs the gateway's certificate."""
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture
def unchecked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let devices offer no checksums, as older ones do: what damage does to frames is then seen by
    whoever decodes them."""
    monkeypatch.setattr(dial, "offers_checksums", lambda address: False)
